"""The real tasks: finding their tables, checking them, and drawing rows from them.

The logic is tested on made-up tables with the right columns; tests marked ``data`` use the real
ones where they are at hand.
"""

import gzip
import os
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from hetrisk.datasets import load_task, source
from hetrisk.datasets.car_insurance import CUSTOMERS
from hetrisk.datasets.house_price import HOUSES, PREDICTORS
from hetrisk.datasets.income import ADULT, GROUPS

REAL = Path(os.environ.get("HETRISK_DATA") or Path(__file__).parents[2] / "shared" / "data")


def made_up(table, n, seed=0, **columns):
    """A table with the right columns and random contents."""
    rng = np.random.default_rng([seed, 1])  # not the stream that the given columns were drawn from
    frame = {name: rng.integers(0, 50, n) for name in table.numbers}
    frame |= {name: rng.choice(["u", "v", "w"], n) for name in table.words}
    return pd.DataFrame(frame | columns)


def houses(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return made_up(
        HOUSES, n, seed, price=np.exp(rng.normal(12, 0.5, n)), yr_built=rng.integers(1900, 2016, n)
    )


def adults(n=9000, seed=0):
    rng = np.random.default_rng(seed)
    group = np.array(GROUPS)[np.arange(n) % 10]
    return made_up(
        ADULT,
        n,
        seed,
        race=[name.rsplit("-", 1)[0] for name in group],
        sex=[name.rsplit("-", 1)[1] for name in group],
        income=rng.choice([">50K", "<=50K"], n),
    )


def customers(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    return made_up(
        CUSTOMERS,
        n,
        seed,
        Gender=rng.choice(["Male", "Female"], n),
        Response=rng.integers(0, 2, n),
        Vehicle_Damage=rng.choice(["Yes", "No"], n),
        Region_Code=rng.integers(0, 4, n).astype(float),
        Policy_Sales_Channel=rng.integers(0, 4, n).astype(float),
    )


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No tables at hand, an empty cache, no network."""
    monkeypatch.delenv("HETRISK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def unreachable(**_):
        raise URLError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)


def saved(frame, path):
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_table_is_found_at_a_path_in_a_folder_and_in_the_cache(monkeypatch, tmp_path, ending):
    folder = tmp_path / "mine"
    folder.mkdir()
    path = saved(houses(), folder / f"kc_house_data{ending}")
    by_file = load_task("house_price", path=path, verify=False)
    by_folder = load_task("house_price", path=str(folder), verify=False)
    monkeypatch.setenv("HETRISK_DATA", str(folder))
    by_variable = load_task("house_price", verify=False)
    monkeypatch.delenv("HETRISK_DATA")
    source.cache_folder().parent.mkdir()
    folder.rename(source.cache_folder())
    by_cache = load_task("house_price", verify=False)
    for task in (by_folder, by_variable, by_cache):
        np.testing.assert_array_equal(task.train.X, by_file.train.X)


def test_the_order_of_the_rows_does_not_matter(tmp_path):
    frame = adults()
    one = load_task("income", path=saved(frame, tmp_path / "a.csv"), verify=False)
    shuffled = frame.sample(frac=1, random_state=1)
    two = load_task("income", path=saved(shuffled, tmp_path / "b.csv"), verify=False)
    np.testing.assert_array_equal(one.train.X, two.train.X)
    np.testing.assert_array_equal(one.test["Black-Male"].y, two.test["Black-Male"].y)


def test_an_edited_file_is_read_again(tmp_path):
    path = saved(houses(), tmp_path / "kc_house_data.csv")
    before = load_task("house_price", path=path, verify=False)
    saved(houses(seed=1), path)
    os.utime(path, ns=(1, 1))
    after = load_task("house_price", path=path, verify=False)
    assert len(before.train.y) != len(after.train.y)


def test_what_to_do_when_there_is_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must be a CSV file, or a folder with one"):
        load_task("house_price", path=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path must be a CSV file.*got '.*gone\.csv'"):
        load_task("house_price", path=tmp_path / "gone.csv")
    with pytest.raises(FileNotFoundError, match=r"HETRISK_DATA \(not set\).*42731.*no network"):
        load_task("house_price")
    with pytest.raises(FileNotFoundError, match=r"data set 1590 \(adult\).*Then pass path="):
        load_task("income", download=False)
    with pytest.raises(FileNotFoundError, match=r"licence is not clear.*train\.csv.*Kaggle"):
        load_task("car_insurance")


def test_altered_and_wrong_tables_are_refused(tmp_path):
    path = saved(houses(), tmp_path / "kc_house_data.csv")
    with pytest.raises(ValueError, match=r"altered copy .* 600 rows instead of 21,613.*verify=Fal"):
        load_task("house_price", path=path)
    path = saved(houses().drop(columns="grade"), tmp_path / "b.csv")
    with pytest.raises(ValueError, match=r"not the King County .* lacks the columns \['grade'\]"):
        load_task("house_price", path=path)
    path = saved(houses().assign(grade="high"), tmp_path / "c.csv")
    with pytest.raises(ValueError, match="column 'grade' must hold numbers"):
        load_task("house_price", path=path, verify=False)
    frame = houses().astype({"grade": float})
    frame.loc[3, "grade"] = np.nan
    with pytest.raises(ValueError, match="grade"):
        load_task("house_price", path=saved(frame, tmp_path / "d.csv"), verify=False)
    broken = tmp_path / "e.csv.gz"
    broken.write_bytes(gzip.compress(b"price\n1")[:-6])
    with pytest.raises(ValueError, match=r"e\.csv\.gz cannot be read as a CSV file"):
        load_task("house_price", path=broken, verify=False)
    (tmp_path / "f.csv").write_bytes(b"\xff\xfe\x00price")
    with pytest.raises(ValueError, match=r"f\.csv"):
        load_task("house_price", path=tmp_path / "f.csv", verify=False)


def test_download_is_checked_and_kept(monkeypatch):
    frame = houses()
    frame = frame.assign(zipcode=frame.zipcode.astype(str).astype("category"))
    asked = []

    def fetch_openml(**arguments):
        asked.append(arguments["data_id"])
        return SimpleNamespace(frame=frame)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    with pytest.raises(ValueError, match="OpenML data set 42731 is an altered copy"):
        load_task("house_price")
    assert not source.cache_folder().exists()
    first = load_task("house_price", verify=False)
    again = load_task("house_price", verify=False)
    assert asked == [42731, 42731]  # the third call found it in the cache
    np.testing.assert_array_equal(first.train.X, again.train.X)
    assert [path.name for path in source.cache_folder().iterdir()] == ["kc_house_data.csv.gz"]


def test_checksum_sees_values_not_formats(monkeypatch):
    frame = source.canonical(adults(), ADULT, "a table")
    printed = adults().rename(columns={"income": "class"}).astype({"age": float})
    printed["class"] = " " + printed["class"] + "."
    printed.loc[printed.workclass == "u", "workclass"] = None
    same = adults().replace({"workclass": {"u": "?"}})
    assert source.checksum(source.canonical(printed, ADULT, "other")) == source.checksum(
        source.canonical(same, ADULT, "same")
    )
    changed = frame.copy()
    changed.loc[5, "age"] += 1
    assert source.checksum(changed) != source.checksum(frame)


def test_house_price_task(tmp_path):
    frame = houses(900)
    path = saved(frame, tmp_path / "kc_house_data.csv")
    task = load_task("house_price", path=path, verify=False)
    old = frame[frame.yr_built < 1920]
    assert task.feature_names == PREDICTORS
    assert len(PREDICTORS) == 17
    assert len(task.train.y) == len(old)
    assert (task.train.environments == 1).sum() == (old.yr_built >= 1910).sum()
    assert list(task.test) == ["1920-1939", "1940-1959", "1960-1979", "1980-1999", "2000-2015"]
    assert sum(len(s.y) for s in task.test.values()) == len(frame) - len(old)
    np.testing.assert_allclose(task.train.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(task.train.X.std(axis=0), 1)
    logs = np.log(frame.price[frame.yr_built.between(1960, 1979)])
    expected = (logs - np.log(old.price).mean()) / np.log(old.price).std(ddof=0)
    np.testing.assert_allclose(np.sort(task.test["1960-1979"].y), np.sort(expected), rtol=1e-6)


def test_income_task(tmp_path):
    path = saved(adults(), tmp_path / "adult.csv")
    task = load_task("income", path=path, verify=False)
    assert np.bincount(task.train.environments).tolist() == [693, 200]
    assert list(task.test) == list(GROUPS)
    rows = {name: len(sample.y) for name, sample in task.test.items()}
    assert rows["White-Male"] == 900 - 793
    assert rows["White-Female"] == 900 - 300
    assert rows["Black-Male"] == 900
    sources = {name.split("=")[0] for name in task.feature_names}
    assert not sources & {"sex", "race", "fnlwgt", "income"}
    assert len(task.feature_groups) == task.n_features
    assert task.feature_groups.max() + 1 == 11
    other = load_task("income", seed=1, path=path, verify=False)
    assert not np.array_equal(task.train.X, other.train.X)


def test_income_takes_logs_of_capital(tmp_path):
    frame = adults().assign(**{"capital-gain": np.tile([0, 10, 1000], 3000)})
    task = load_task("income", path=saved(frame, tmp_path / "adult.csv"), verify=False)
    values = np.unique(task.train.X[:, task.feature_names.index("capital-gain")])
    steps = np.diff(values)
    expected = np.diff(np.log1p([0, 10, 1000]))
    np.testing.assert_allclose(steps / steps[0], expected / expected[0])


def correlation(task, rows, name):
    column = next(i for i, n in enumerate(task.feature_names) if n.startswith(name))
    sign = -1 if task.feature_names[column] == "Gender=Female" else 1
    return sign * np.corrcoef(rows.X[:, column], rows.y)[0, 1]


@pytest.mark.parametrize("r", [0.5, 0.7, 0.9])
def test_car_insurance_task(tmp_path, r):
    path = saved(customers(), tmp_path / "train.csv")
    task = load_task("car_insurance", path=path, r=r, n_train=800, n_test=1000, verify=False)
    assert len(task.train.y) == pytest.approx(800, abs=6)
    assert task.environment_names == ("r=0.95", "r=0.9", "r=-0.8")
    assert correlation(task, task.train, "Gender") == pytest.approx(r, abs=0.01)
    assert task.train.y.mean() == pytest.approx(0.5, abs=0.01)
    (name, test), *rest = task.test.items()
    assert name == f"r={-r:g}"
    assert not rest
    assert correlation(task, test, "Gender") == pytest.approx(-r, abs=0.01)
    for code, expected in enumerate((0.95, 0.9, -0.8)):
        rows = task.train.environments == code
        if rows.sum() >= 100:
            part = SimpleNamespace(X=task.train.X[rows], y=task.train.y[rows])
            assert correlation(task, part, "Gender") == pytest.approx(expected, abs=0.03)


def test_car_insurance_never_tests_on_training_rows(tmp_path):
    frame = customers().assign(Annual_Premium=np.arange(4000.0) ** 1.5)  # tells every row apart
    path = saved(frame, tmp_path / "train.csv")
    task = load_task("car_insurance", path=path, r=0.5, n_train=1200, n_test=1200, verify=False)
    (test,) = task.test.values()
    column = task.feature_names.index("Annual_Premium")
    seen = np.concatenate([task.train.X[:, column], test.X[:, column]])
    assert len(np.unique(seen)) == len(task.train.y) + len(test.y)


def test_car_insurance_pools_to_one_distribution(tmp_path):
    """Within a cell of (sex, label), the labelled environments are draws of the same rows."""
    path = saved(customers(20_000), tmp_path / "train.csv")
    task = load_task("car_insurance", path=path, r=0.5, n_train=6000, n_test=4000, verify=False)
    sex = task.feature_names.index(next(n for n in task.feature_names if "Gender" in n))
    age = task.feature_names.index("Age")
    X, y, environments = task.train
    cell = (X[:, sex] == 1) & (y == 1)
    means = [X[cell & (environments == e), age].mean() for e in range(3)]
    errors = [1 / np.sqrt((cell & (environments == e)).sum()) for e in range(3)]
    assert np.ptp(means) < 4 * max(errors)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"r": 0.95}, r"r must be between 0 and 0\.925; got 0\.95"),
        ({"n_train": 0}, "n_train must be at least 8; got 0"),
        ({"n_test": 100_000}, "rows with .* are needed and .* are left: lower n_train or n_test"),
    ],
)
def test_car_insurance_errors(tmp_path, setting, message):
    path = saved(customers(), tmp_path / "train.csv")
    with pytest.raises(ValueError, match=message):
        load_task("car_insurance", path=path, verify=False, **setting)


def real(table):
    path = source._in_folder(table, REAL)
    if path is None:
        pytest.skip(f"no {table.files[0]} in HETRISK_DATA")
    return path


@pytest.mark.data
def test_real_house_prices():
    task = load_task("house_price", path=real(HOUSES))
    assert np.bincount(task.train.environments).sum() == 1451
    assert [len(s.y) for s in task.test.values()] == [1722, 4216, 4945, 4520, 4759]
    X = np.column_stack([np.ones(1451), task.train.X])
    theta = np.linalg.lstsq(X, task.train.y, rcond=None)[0]
    errors = [np.sqrt(np.mean((s.y - theta[0] - s.X @ theta[1:]) ** 2)) for s in task.test.values()]
    assert np.mean(errors) == pytest.approx(0.618, abs=0.001)


@pytest.mark.data
def test_real_income():
    task = load_task("income", path=real(ADULT))
    assert len(task.train.y) == 893
    assert len(task.test) == 10
    rows = sum(len(s.y) for s in task.test.values())
    assert rows == 48_842 - 893 - 200


@pytest.mark.data
def test_real_car_insurance():
    task = load_task("car_insurance", path=real(CUSTOMERS), r=0.8)
    assert len(task.train.y) == pytest.approx(2000, abs=4)
    (test,) = task.test.values()
    assert len(test.y) == 10_000
    assert correlation(task, test, "Gender") == pytest.approx(-0.8, abs=0.001)
