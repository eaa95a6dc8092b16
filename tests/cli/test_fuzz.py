"""Generated tables through `fit` and `predict`: any answer or sentence will do, no exception.

The same few tables each time; thousands of others with

    python -m pytest --hypothesis-profile=attack tests/cli/test_fuzz.py
"""

import csv
import io
import random
import tempfile
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import run

EXAMPLES = 3 * settings.default.max_examples

# Everything a text file can hold: no NUL, no lone surrogates.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)
NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "id", "zip", "=cmd()", "<b>", "-x", "a,b", 'q"q', "é", "🙂", "\u202e"]
    ),
    TEXT,
)
ODD = st.one_of(
    st.sampled_from(
        ["", "NA", "?", "inf", "1e308", "-1e-320", "1,5", "0x1f", "007", "٣", "\x1b[0m"]
    ),
    TEXT,
)
# Ordinary columns are filled from a seed: drawing every cell would mostly give equal ones.
KINDS = {
    "number": lambda r: f"{r.gauss(0, 10):.4g}",
    "integer": lambda r: str(r.randint(-4, 4)),
    "wide integer": lambda r: str(r.randint(0, 10**9)),
    "any float": lambda r: repr(r.choice([-1, 1]) * 10 ** r.uniform(-320, 308)),
    "truth": lambda r: r.choice(["yes", "no"]),
    "category": lambda r: r.choice(["p", "q", "r s", "t;u", "v,w"]),
    "rare": lambda r: r.choice(["common"] * 9 + [f"level {r.randint(0, 99)}"]),
    "date": lambda r: f"20{r.randint(10, 24)}-0{r.randint(1, 9)}-{r.randint(10, 28)}",
    "constant": lambda r: "7",
    "empty": lambda r: "",
}
PREDICTABLE = ["number", "integer", "truth", "category"]


@st.composite
def columns(draw, rows, kinds=tuple(KINDS), oddities=3):
    """One column of some kind; now and then cells of any other."""
    kind = KINDS[draw(st.sampled_from(kinds))]
    rng = random.Random(draw(st.integers(0, 2**32)))
    cells = [kind(rng) for _ in range(rows)]
    for place, cell in draw(
        st.dictionaries(st.integers(0, rows - 1), ODD, max_size=oddities)
    ).items():
        cells[place] = cell
    return cells


@st.composite
def tables(draw):
    """A header, its columns and the name of the target: the last, and mostly one that will do."""
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique_by=str.strip))
    rows = draw(st.sampled_from([24, 40, 12, 30, 16, 9, 35]))
    body = [draw(columns(rows)) for _ in names[1:]]
    sound = draw(st.integers(0, 9)) < 9
    body.append(draw(columns(rows, PREDICTABLE, oddities=0) if sound else columns(rows)))
    return names, body, names[-1].strip()


def written(folder, name, names, body, delimiter=","):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(names)
    writer.writerows(zip(*body, strict=True))
    path = folder / name
    path.write_bytes(text.getvalue().encode())
    return path


def answered(result):
    """An answer, or one sentence: never a traceback, never a fault of ours."""
    assert result.exit_code in (0, 1), result.output
    assert "unforeseen" not in result.output, result.output
    assert "Traceback" not in result.output
    assert "\x1b" not in result.stderr
    if result.exit_code == 1:
        assert sum(line.startswith("Error: ") for line in result.stderr.splitlines()) == 1
    return result.exit_code == 0


def fit_and_predict(table, data):
    names, body, target = table
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        path = written(place, "t.csv", names, body, data.draw(st.sampled_from(",;\t")))
        model = place / "m.hetrisk"
        if not answered(run("fit", path, f"--target={target}", "--out", model)):
            assert not model.exists()
            return
        order = data.draw(st.permutations(range(len(names))))
        changed = [data.draw(st.sampled_from([c, c[::-1], ["?"] * len(c)])) for c in body]
        new = written(place, "new.csv", [names[i] for i in order], [changed[i] for i in order])
        out = place / "p.csv"
        if answered(run("predict", model, new, "--out", out)):
            assert len(out.read_text().splitlines()) >= 1 + len(body[0])


FUZZ = partial(
    settings,
    deadline=None,
    derandomize=settings.default is settings.get_profile("hetrisk"),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@FUZZ(max_examples=EXAMPLES // 3)
@given(table=tables(), data=st.data())
def test_any_table_gets_an_answer_or_a_sentence(table, data):
    fit_and_predict(table, data)


@FUZZ(max_examples=EXAMPLES // 3)
@given(st.binary(max_size=200))
def test_any_bytes_get_a_sentence(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        assert not answered(run("fit", path, "--target", "y"))
