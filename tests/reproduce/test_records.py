import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetrisk.reproduce.records import Records, RecordsError

from .made_up import cases, measure

RECORDS = [measure(case) for case in cases(2)]


def written(path, records=RECORDS):
    with Records(path).appending() as append:
        for record in records:
            append(record)
    return path


def test_what_is_appended_is_read_back(tmp_path):
    path = written(tmp_path / "deep" / "records.jsonl")
    assert list(Records(path).read().values()) == RECORDS
    assert Records(path).finished() == {record["key"] for record in RECORDS}


def test_no_file_is_no_records(tmp_path):
    assert Records(tmp_path / "none.jsonl").read() == {}
    assert Records(tmp_path / "none.jsonl").drop(lambda record: True) == 0


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_file_cut_anywhere_is_healed(tmp_path, data):
    path = tmp_path / "records.jsonl"
    path.unlink(missing_ok=True)
    whole = written(path).read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    assert len(Records(path).read()) >= complete
    with Records(path).appending() as append:
        kept = Records(path).read()
        for record in RECORDS:
            if record["key"] not in kept:
                append(record)
    assert path.read_bytes() == whole
    # Nothing that had been finished was thrown away: at most the line being written.
    assert len(kept) in (complete, complete + 1)


def test_a_whole_last_line_without_its_end_is_kept(tmp_path):
    path = written(tmp_path / "records.jsonl")
    path.write_bytes(path.read_bytes()[:-1])
    assert len(Records(path).read()) == len(RECORDS)
    with Records(path).appending():
        pass
    assert path.read_bytes().endswith(b"}\n")


def test_the_last_record_of_a_case_counts(tmp_path):
    newer = {**RECORDS[0], "train_error": 9.0}
    path = written(tmp_path / "records.jsonl", [*RECORDS, newer])
    assert Records(path).read()[newer["key"]] == newer


def test_failed_cases_are_not_finished(tmp_path):
    failed = {**RECORDS[0], "status": "failed", "reason": "no data"}
    path = written(tmp_path / "records.jsonl", [failed, RECORDS[1]])
    assert Records(path).finished() == {RECORDS[1]["key"]}


def test_a_damaged_middle_line_is_named(tmp_path):
    path = written(tmp_path / "records.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:20]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RecordsError, match=r"records.jsonl, line 2: not a record"):
        Records(path).read()


def test_json_that_is_no_record_is_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('[1, 2]\n{"key": "a", "status": "ok"}\n')
    with pytest.raises(RecordsError, match="line 1"):
        Records(path).read()


def test_two_runs_cannot_write_one_file(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    with (
        records.appending(),
        pytest.raises(RecordsError, match="is being written by another run"),
        records.appending(),
    ):
        pass


def test_nothing_is_dropped_from_under_a_run(tmp_path):
    records = Records(written(tmp_path / "records.jsonl"))
    with (
        records.appending(),
        pytest.raises(RecordsError, match="is being written by another run"),
    ):
        records.drop(lambda record: True)
    assert len(records.read()) == len(RECORDS)


def test_drop_removes_only_what_is_unwanted(tmp_path):
    path = written(tmp_path / "records.jsonl")
    gone = Records(path).drop(lambda record: record["method"] == "erm")
    assert gone == sum(record["method"] == "erm" for record in RECORDS)
    left = [json.loads(line) for line in path.read_text().splitlines()]
    assert left == [record for record in RECORDS if record["method"] != "erm"]


def test_nan_is_never_written(tmp_path):
    with (
        Records(tmp_path / "records.jsonl").appending() as append,
        pytest.raises(ValueError, match="JSON compliant"),
    ):
        append({"key": "a", "status": "ok", "errors": {"e": float("nan")}})
    assert (tmp_path / "records.jsonl").read_bytes() == b""
