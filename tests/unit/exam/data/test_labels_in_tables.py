"""Several labels in a table: in one cell, whatever parts them, or a column of 0 and 1 for each class."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, DataTypeSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.label_cells import UnclearLabelsError, split_labels
from ianvs.exam.data.sources import read_parts
from tests.errors import recorded
from tests.unit.exam.data.pictures import write_picture

SETS = [["cat"], ["dog"], ["cat", "dog"], [], ["bird", "cat", "dog"], ["bird"]]
NAMES = ("bird", "cat", "dog")
TRUTH = [[int(name in labels) for name in NAMES] for labels in SETS]
MULTILABEL = DataTypeSpec("multilabel")
SEPARATORS = ["|", ";", ",", ", ", " | ", " ", "/", "&", "+", "\t", "\n"]


def spec_of(train, test=None, data_type=MULTILABEL, **more):
    return DatasetSpec(
        train=(SourceSpec(train, "data"),), test=(SourceSpec(test or train, "data"),), data_type=data_type, **more
    )


def as_csv(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def table_of(tmp_path, cells, name="t.csv"):
    """A csv of numbers with a cell of labels for each sample."""
    path = tmp_path / name
    path.write_text(as_csv([("a", "b", "label"), *((n * n, 0.5, cell) for n, cell in enumerate(cells))]))
    return path


def truths(spec):
    train, test = read_parts(spec)
    assert train.classes == test.classes
    np.testing.assert_array_equal(train.y[: len(test.y)], test.y)
    return train.classes, train.y.tolist()


@pytest.mark.parametrize("separator", SEPARATORS)
def test_labels_in_one_cell_are_parted(separator, tmp_path):
    spec = spec_of(table_of(tmp_path, [separator.join(labels) for labels in SETS]))
    assert truths(spec) == (NAMES, TRUTH)
    remarks = [problem for problem in data.check_dataset(spec).problems if problem.place.line in (4, 5)]
    assert all(problem.warning for problem in remarks)
    assert len(remarks) == (separator != ";")


@pytest.mark.parametrize(
    "write",
    [
        str,
        json.dumps,
        lambda labels: str(tuple(labels)),
        lambda labels: str(set(labels)),
        lambda labels: str(frozenset(labels)),
        lambda labels: str(np.array(labels, dtype=object)),
        lambda labels: f"[{', '.join(labels)}]",
        lambda labels: repr(np.array(labels, dtype=object)),
    ],
)
def test_labels_in_brackets_are_lists(write, tmp_path):
    spec = spec_of(table_of(tmp_path, [write(labels) for labels in SETS]))
    assert truths(spec) == (NAMES, TRUTH)


@pytest.mark.parametrize(
    "cells", [["16 0", "3", "16"], ["16|0", "3", "16"], ["[16, 0]", "[3]", "[16]"], ["[16 0]", "[3]", "[16]"]]
)
def test_class_indices_in_one_cell(cells, tmp_path):
    names, labels = truths(spec_of(table_of(tmp_path, cells)))
    assert names == ("0", "3", "16")
    assert labels == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("separator", [";", "|", ","])
def test_names_with_blanks_stay_whole_beside_another_separator(separator, tmp_path):
    cells = [f"traffic light{separator}car", "car", "stop sign", f"stop sign{separator}traffic light"]
    assert truths(spec_of(table_of(tmp_path, cells)))[0] == ("car", "stop sign", "traffic light")


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["dog", "hot dog", "cat"], 3),
        (["cat", "cat;dog", "dog|cat"], 4),
        (["cat,dog", "bird,fish"], 2),
        (["cat", "['cat', 'dog']"], 2),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_until_it_is_said(cells, line, tmp_path):
    path = table_of(tmp_path, cells)
    [problem] = data.check_dataset(spec_of(path)).problems
    assert (problem.warning, problem.place.line) == (False, line)
    for separator in (" ", ",", ";", "none"):
        assert data.check_dataset(spec_of(path, label_separator=separator)).problems == []
    assert truths(spec_of(path, label_separator="none"))[0] == tuple(sorted(set(cells)))


def test_names_that_are_listed_tell_the_separator(tmp_path):
    path = table_of(tmp_path, ["hot dog", "dog", "hot dog cat"])
    assert truths(spec_of(path, label_separator=" "))[0] == ("cat", "dog", "hot")
    path = table_of(tmp_path, ["cat dog", "bird dog"])
    assert truths(spec_of(path, classes=NAMES))[1] == [[0, 1, 1], [1, 0, 1]]


def test_both_parts_are_split_alike(tmp_path):
    train = table_of(tmp_path, ["traffic light|car", "car"], "train.csv")
    test = table_of(tmp_path, ["traffic light", "car"], "test.csv")
    first, second = read_parts(spec_of(train, test))
    assert first.classes == second.classes == ("car", "traffic light")
    first, second = read_parts(spec_of(test, train))
    assert first.classes == second.classes == ("car", "traffic light")


def test_one_label_in_every_cell_is_told(tmp_path):
    [warning] = data.check_dataset(spec_of(table_of(tmp_path, ["cat-dog", "dog", "traffic light"]))).problems
    assert warning.warning
    names, _ = truths(spec_of(tmp_path / "t.csv", label_separator="-"))
    assert names == ("cat", "dog", "traffic light")


def test_empty_cells_are_no_label():
    assert split_labels(["cat|dog", "", " ", None, float("nan")], None, None).labels == [["cat", "dog"], [], [], [], []]


def test_lists_stay_as_they_are():
    cells = [["a;b", "c|d"], [], [1]]
    assert split_labels(cells, None, None).labels == cells


def test_unclear_labels_name_the_first_of_them():
    with pytest.raises(UnclearLabelsError) as caught:
        split_labels([None, "dog", "hot dog"], None, None)
    assert caught.value.index == 2


def test_a_separator_is_for_several_labels(tmp_path):
    path = table_of(tmp_path, ["1", "2"])
    for kind in (None, DataTypeSpec("regression")):
        with pytest.raises(DataError):
            read_parts(spec_of(path, data_type=kind, label_separator="|"))


def records(truth):
    return [{"image": f"{n}.png", **dict(zip(NAMES, row, strict=True))} for n, row in enumerate(truth)]


@pytest.fixture
def pictures(tmp_path):
    for number in range(len(SETS)):
        write_picture(tmp_path / f"{number}.png", seed=number)
    return tmp_path


def columns_in(folder, form, truth):
    made = records(truth)
    path = folder / f"t.{form}"
    if form == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(made), path)
    elif form == "csv":
        path.write_text(as_csv([made[0].keys(), *(one.values() for one in made)]))
    elif form == "json":
        path.write_text(json.dumps(made))
    else:
        path.write_text("\n".join(map(json.dumps, made)))
    return path


@pytest.mark.parametrize(
    "truth",
    [TRUTH, [[2 * bit - 1 for bit in row] for row in TRUTH], [[bool(bit) for bit in row] for row in TRUTH]],
    ids=["0 and 1", "-1 and 1", "True and False"],
)
@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
def test_a_column_for_each_class(form, truth, pictures):
    path = columns_in(pictures, form, truth)
    spec = spec_of(path, label=NAMES)
    dataset = data.load(spec, pictures / "cache")
    assert (dataset.classes, dataset.train.y.tolist()) == (NAMES, TRUTH)
    assert data.fingerprint(spec, pictures / "cache") == dataset.fingerprint
    turned = spec_of(path, label=NAMES, classes=NAMES[::-1])
    assert data.load(turned, pictures / "cache").train.y.tolist() == [row[::-1] for row in TRUTH]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_classes_beside_features(form, tmp_path):
    rows = [{"": n, "a": n / 4, "b": 1.5, **dict(zip(NAMES, row, strict=True))} for n, row in enumerate(TRUTH)]
    path = tmp_path / f"t.{form}"
    if form == "csv":
        path.write_text(as_csv([rows[0].keys(), *(row.values() for row in rows)]))
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    dataset = data.load(spec_of(path, label=NAMES), tmp_path / "cache")
    assert (dataset.classes, dataset.train.y.tolist(), dataset.train.x.shape) == (NAMES, TRUTH, (len(SETS), 2))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_without_a_label_the_remedy_works(form, pictures):
    path = columns_in(pictures, form, TRUTH)
    for kind in (None, MULTILABEL):
        [problem] = data.check_dataset(spec_of(path, data_type=kind)).problems
        assert recorded([problem]) == [("missing-column", "t.csv:1:1" if form == "csv" else "t.parquet")]
    assert [p for p in data.check_dataset(spec_of(path, label=NAMES)).problems if not p.warning] == []


@pytest.mark.parametrize(("cell", "line"), [("", 3), ("x", 3), ("2", 3), ("0.5", 3)])
def test_other_cells_of_such_columns_are_refused_with_their_line(cell, line, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,cat,dog\n1,0,1\n2,{cell},0\n")
    [problem] = data.check_dataset(spec_of(path, label=("cat", "dog"))).problems
    assert (problem.warning, problem.place.line) == (False, line)


def test_several_columns_without_a_type_and_other_classes_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,cat,dog\n1,0,1\n2,1,0\n")
    for more in ({"data_type": None}, {"classes": ("cat", "cow")}, {"label": ("cat", "cow")}):
        with pytest.raises(DataError):
            read_parts(spec_of(path, **{"label": ("cat", "dog"), **more}))


def test_columns_of_numbers_to_be_estimated(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,lat,lon\n1,0.5,-1\n2,1.5,3\n")
    train, _ = read_parts(spec_of(path, data_type=DataTypeSpec("regression"), label=("lat", "lon")))
    assert (train.y.tolist(), train.features) == ([[0.5, -1], [1.5, 3]], ("a",))


@pytest.mark.parametrize("separator", ["|", ";", ",", "list"])
def test_combinations_that_are_read_as_classes_are_told(separator, tmp_path):
    cells = [str(labels) if separator == "list" else separator.join(labels) for labels in SETS if labels]
    spec = spec_of(table_of(tmp_path, cells), data_type=None)
    [warning] = [problem for problem in read_parts(spec)[0].warnings if problem.warning]
    assert warning.place.line == 4
    assert "data_type: multilabel" in warning.message
    listed = spec_of(tmp_path / "t.csv", data_type=None, classes=tuple(sorted(cells)))
    assert read_parts(listed)[0].warnings == ()


@pytest.mark.parametrize("names", [["traffic light", "car"], ["St. Bernard", "cat/tabby"], ["0", "1"], ["a-b", "a"]])
def test_names_of_classes_are_no_combinations(names, tmp_path):
    spec = spec_of(table_of(tmp_path, names * 3), data_type=None)
    assert read_parts(spec)[0].warnings == ()
