"""A row number in a table is no feature; both parts of a dataset have the same columns."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data import csv_files
from ianvs.exam.data.row_numbers import identifies_rows, is_nameless, may_number_rows
from ianvs.exam.data.sources import read_parts
from tests.errors import errors_of

ROWS = 12
A = [0.5 * (7 * row % 5) for row in range(ROWS)]
LABELS = ["cat"] * 6 + ["dog"] * 6
RUNNING = list(range(ROWS))
SHUFFLED = [(5 * row) % ROWS + 3 for row in range(ROWS)]


def as_csv(columns, delimiter=","):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(name for name, _ in columns)
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return text.getvalue()


def table(name, values, **more):
    return [(name, values), ("a", A), *more.items(), ("label", LABELS)]


def spec_of(train, test=None, **more):
    return DatasetSpec(train=(SourceSpec(train, "data"),), test=(SourceSpec(test or train, "data"),), **more)


def features(spec):
    """The names of the columns of both parts."""
    train, test = read_parts(spec)
    assert train.features == test.features
    assert train.x.shape[1] == test.x.shape[1] == len(train.features)
    return list(train.features)


def warnings(spec):
    found = data.check_dataset(spec).problems
    assert all(problem.warning for problem in found), found
    return found


def written(path, text):
    path.write_text(text)
    return path


@pytest.fixture(params=["careful", "fast"])
def reader(request, monkeypatch):
    """Both readers of csv files."""
    if request.param == "fast":
        monkeypatch.setattr(csv_files, "WORTH_ARROW", 0)
    return request.param


@pytest.mark.parametrize("values", [RUNNING, SHUFFLED, [5] * ROWS])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_a_column_that_nobody_named_is_left_out(name, values, tmp_path, reader):
    spec = spec_of(written(tmp_path / "t.csv", as_csv(table(name, values))))
    assert features(spec) == ["a"]
    [warning] = warnings(spec)
    assert (warning.place.line, warning.place.column) == (1, 1)


@pytest.mark.parametrize("values", [RUNNING, [row + 1 for row in RUNNING], SHUFFLED, [7129300520 + r for r in RUNNING]])
@pytest.mark.parametrize("name", ["index", "idx", "id", "ID", "Id", "sample_id", "PassengerId", "Customer_ID", "row"])
def test_a_named_row_number_is_left_out(name, values, tmp_path, reader):
    spec = spec_of(written(tmp_path / "t.csv", as_csv(table(name, values))))
    assert features(spec) == ["a"]
    assert len(warnings(spec)) == 1


@pytest.mark.parametrize("values", [[row // 2 for row in RUNNING], [row + 0.5 for row in RUNNING]])
def test_a_measured_code_stays_a_feature(values, tmp_path, reader):
    spec = spec_of(written(tmp_path / "t.csv", as_csv(table("id", values))))
    assert (features(spec), warnings(spec)) == (["id", "a"], [])


@pytest.mark.parametrize("name", ["width", "grid", "paid", "humid", "covid", "rows", "x1", "notes", "0", "1"])
def test_other_names_are_no_row_numbers(name):
    assert not may_number_rows(name)
    assert not is_nameless(name)


def test_whole_numbers_above_those_of_float32_are_told_apart():
    assert identifies_rows(np.array([2**24, 2**24 + 1], dtype=np.float64))
    assert not identifies_rows(np.array([2**24, 2**24], dtype=np.float64))
    assert not identifies_rows(np.array([0.0, np.nan]))


def test_a_column_in_the_middle_is_placed(tmp_path, reader):
    text = as_csv([("a", A), ("label", LABELS), ("id", RUNNING), ("b", A[::-1])])
    spec = spec_of(written(tmp_path / "t.csv", text))
    assert features(spec) == ["a", "b"]
    np.testing.assert_array_equal(read_parts(spec)[0].x, np.column_stack([A, A[::-1]]).astype(np.float32))
    [warning] = warnings(spec)
    assert warning.place.column == len("a,label,") + 1


def test_names_of_rows_in_words_are_left_out(tmp_path):
    words = [f"row {row}" for row in RUNNING]
    for number, name in enumerate(("", "id")):
        spec = spec_of(written(tmp_path / f"{number}.csv", as_csv(table(name, words))))
        assert features(spec) == ["a"]


def test_a_frame_that_was_written_twice(tmp_path, reader):
    text = as_csv([("", RUNNING), ("Unnamed: 0", RUNNING), ("a", A), ("label", LABELS)])
    assert features(spec_of(written(tmp_path / "t.csv", text))) == ["a"]


def test_the_parts_of_a_shuffled_split_drop_the_same_columns(tmp_path, reader):
    for name in ("Unnamed: 0", "index", "id"):
        rows = as_csv(table(name, SHUFFLED)).splitlines()
        train = written(tmp_path / "train.csv", "\n".join([rows[0], *rows[1:9]]) + "\n")
        test = written(tmp_path / "test.csv", "\n".join([rows[0], *rows[9:]]) + "\n")
        assert features(spec_of(train, test)) == ["a"]
        assert features(spec_of(train, test_share=0.25)) == ["a"]


def test_what_is_a_code_in_one_part_is_a_feature_of_both(tmp_path, reader):
    train = written(tmp_path / "train.csv", as_csv(table("id", [row // 2 for row in RUNNING])))
    test = written(tmp_path / "test.csv", as_csv(table("id", RUNNING)))
    assert features(spec_of(train, test)) == features(spec_of(test, train)) == ["id", "a"]


def test_a_row_number_of_one_part_alone_is_left_out(tmp_path, reader):
    train = written(tmp_path / "train.csv", as_csv(table("PassengerId", RUNNING)))
    test = written(tmp_path / "test.csv", as_csv([("a", A), ("label", LABELS)]))
    assert features(spec_of(train, test)) == features(spec_of(test, train)) == ["a"]


def test_columns_in_another_order_are_found_by_name(tmp_path, reader):
    b = A[::-1]
    train = written(tmp_path / "train.csv", as_csv([("a", A), ("b", b), ("label", LABELS)]))
    test = written(tmp_path / "test.csv", as_csv([("label", LABELS), ("b", b), ("a", A)]))
    first, second = read_parts(spec_of(train, test))
    np.testing.assert_array_equal(first.x, second.x)
    several = DatasetSpec(train=(SourceSpec(train, "data"), SourceSpec(test, "data")), test=(SourceSpec(test, "data"),))
    np.testing.assert_array_equal(read_parts(several)[0].x, np.concatenate([first.x, first.x]))


def test_other_columns_are_refused_by_name(tmp_path):
    train = written(tmp_path / "train.csv", as_csv([("a", A), ("b", A), ("label", LABELS)]))
    test = written(tmp_path / "test.csv", as_csv([("a", A), ("c", A), ("label", LABELS)]))
    assert errors_of(read_parts, spec_of(train, test)) == [("mismatched-data", "test.csv:1:1")]
    assert features(spec_of(train, test, input=("a",))) == ["a"]


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "id"])
def test_the_dataset_can_list_the_columns(name, tmp_path, reader):
    path = written(tmp_path / "t.csv", as_csv(table(name, RUNNING, b=A)))
    chosen = (name or "Unnamed: 0", "b")
    spec = spec_of(path, input=chosen)
    assert (features(spec), warnings(spec)) == ([*chosen], [])
    np.testing.assert_array_equal(read_parts(spec)[0].x, np.column_stack([RUNNING, A]).astype(np.float32))


def test_listed_columns_that_hold_no_numbers_or_are_not_there_are_refused(tmp_path):
    path = written(tmp_path / "t.csv", as_csv(table("word", LABELS)))
    for chosen in (("word", "a"), ("a", "bb")):
        with pytest.raises(DataError):
            read_parts(spec_of(path, input=chosen))


def test_a_column_of_another_name_that_counts_the_rows_is_told(tmp_path, reader):
    spec = spec_of(written(tmp_path / "t.csv", as_csv(table("step", RUNNING))))
    assert features(spec) == ["step", "a"]
    [warning] = warnings(spec)
    assert (warning.place.line, warning.place.column) == (1, 1)
    assert warnings(spec_of(tmp_path / "t.csv", input=("step", "a"))) == []
    assert warnings(spec_of(tmp_path / "t.csv", input=("a",))) == []


def test_a_count_that_goes_on_in_the_test_part_is_told(tmp_path, reader):
    train = written(tmp_path / "train.csv", as_csv(table("key", RUNNING)))
    test = written(tmp_path / "test.csv", as_csv(table("key", [ROWS + row for row in RUNNING])))
    assert len(warnings(spec_of(train, test))) == 1


def test_tsv_json_and_jsonl(tmp_path):
    columns = dict(table("index", SHUFFLED))
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for path in (
        written(tmp_path / "t.tsv", as_csv(table("", RUNNING), "\t")),
        written(tmp_path / "t.json", json.dumps(records)),
        written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, records))),
    ):
        spec = spec_of(path)
        assert features(spec) == ["a"]
        assert len(warnings(spec)) == 1


@pytest.mark.parametrize("name", ["index", "__index_level_0__", "Unnamed: 0", "id"])
def test_parquet(name, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(dict(table(name, SHUFFLED))), tmp_path / "t.parquet")
    spec = spec_of(tmp_path / "t.parquet")
    assert features(spec) == ["a"]
    assert len(warnings(spec)) == 1
    assert features(spec_of(tmp_path / "t.parquet", input=("a", name))) == ["a", name]


def test_a_table_of_one_column_keeps_it(tmp_path, reader):
    path = written(tmp_path / "t.csv", as_csv([("id", RUNNING), ("label", LABELS)]))
    assert features(spec_of(path)) == ["id"]


def test_what_is_left_out_is_part_of_what_the_samples_are(tmp_path):
    path = written(tmp_path / "t.csv", as_csv(table("id", RUNNING)))
    cache = tmp_path / "cache"
    dropped, listed = spec_of(path), spec_of(path, input=("id", "a"))
    assert data.fingerprint(dropped, cache) == data.load(dropped, cache).fingerprint
    assert data.fingerprint(dropped, cache) != data.fingerprint(listed, cache)
    assert len(data.load(dropped, cache).notes) == 1
