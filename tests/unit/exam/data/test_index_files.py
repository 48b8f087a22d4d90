"""What an index file may look like, and what is said about one that doesn't."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.sources import read_part
from tests.errors import Found, errors_of, recorded
from tests.unit.exam.data.pictures import two_classes, write_index, write_picture


def listed(source: SourceSpec, **settings: object):
    return read_part(DatasetSpec(train=(source,), **settings), "train")  # type: ignore[arg-type]


def refusal(source: SourceSpec, **settings: object) -> list[Found]:
    return errors_of(listed, source, **settings)


def test_paths_are_relative_to_the_index_file(tmp_path, monkeypatch):
    write_picture(tmp_path / "set" / "a.png")
    monkeypatch.chdir(tmp_path)
    listing = listed(write_index(tmp_path / "set", ["a.png cat"]))
    assert listing.x.tolist() == [str(tmp_path / "set" / "a.png")]


def test_root_is_tried_before_the_index_files_folder(tmp_path):
    for place in ("root", "set"):
        write_picture(tmp_path / place / "both.png")
    write_picture(tmp_path / "set" / "own.png")
    source = write_index(tmp_path / "set", ["both.png cat", "own.png dog"])
    found = listed(source, root=tmp_path / "root").x.tolist()
    assert found == [str(tmp_path / "root" / "both.png"), str(tmp_path / "set" / "own.png")]


def test_the_label_is_the_last_column_and_not_the_depth_file(tmp_path):
    for name in ("rgb.png", "depth.png", "label.png"):
        write_picture(tmp_path / name)
    listing = listed(write_index(tmp_path, ["rgb.png depth.png label.png"]))
    assert listing.y.tolist() == [str(tmp_path / "label.png")]


def test_a_class_label_never_becomes_a_path(tmp_path):
    write_picture(tmp_path / "a.png")
    (tmp_path / "2").write_text("a file that is called like the class")
    listing = listed(write_index(tmp_path, ["a.png 2"]))
    assert listing.label_form == "class"
    assert listing.y.tolist() == ["2"]


@pytest.mark.parametrize("line", ['"my cat.png" cat', "my cat.png\tcat", "my cat.png\tdepth.png\tcat"])
def test_a_path_with_blanks_is_quoted_or_parted_by_tabs(tmp_path, line):
    write_picture(tmp_path / "my cat.png")
    listing = listed(write_index(tmp_path, [line]))
    assert listing.ids.tolist() == ["my cat.png"]
    assert listing.y.tolist() == ["cat"]


def test_an_apostrophe_is_an_ordinary_character(tmp_path):
    write_picture(tmp_path / "o'brien.png")
    assert listed(write_index(tmp_path, ["o'brien.png cat", '"o\'brien.png" dog'])).y.tolist() == ["cat", "dog"]


def test_blank_lines_are_skipped_and_lines_keep_their_number(tmp_path):
    write_picture(tmp_path / "a.png")
    listing = listed(write_index(tmp_path, ["", "a.png cat", "", "a.png dog"]))
    assert [listing.place(i).line for i in range(2)] == [2, 4]


def test_missing_pictures_are_counted_and_the_first_are_named(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png cat", *[f"gone{i}.png cat" for i in range(7)]])
    assert refusal(source) == [("missing-file", "index.txt:2:1")]


def test_a_line_with_one_token_is_refused_with_its_line(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png cat", "a.png"])
    assert refusal(source) == [("invalid-record", "index.txt:2:1")]


def test_every_bad_line_is_counted_but_only_some_are_shown(tmp_path):
    assert refusal(write_index(tmp_path, ["a.png"] * 9)) == [
        ("invalid-record", "index.txt:1:1"),
        ("invalid-record", "index.txt:2:1"),
        ("invalid-record", "index.txt:3:1"),
        ("invalid-record", "index.txt:4:1"),
        ("invalid-record", "index.txt:5:1"),
    ]


def test_labels_of_two_kinds_are_refused_where_they_change(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png a.png", "a.png cat"])
    assert refusal(source) == [("mismatched-data", "index.txt:2:1")]


def test_an_open_quote_is_refused(tmp_path):
    assert refusal(write_index(tmp_path, ['"a.png cat'])) == [("invalid-record", "index.txt:1:1")]


def test_an_empty_index_is_refused(tmp_path):
    assert refusal(write_index(tmp_path, ["", "  "])) == [("empty-dataset", "index.txt")]


def test_an_absent_index_is_a_problem_at_its_place_in_the_yaml(tmp_path):
    place = Location(Path("testenv.yaml"), 4, 12)
    spec = DatasetSpec(train=(SourceSpec(tmp_path / "no.txt", "index", place=place),), test=())
    assert recorded(data.check_dataset(spec).problems) == [("missing-file", "testenv.yaml:4:12"), ("missing-data", "")]


def test_an_unknown_format_is_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "data.xlsx").write_text("x")
    assert refusal(SourceSpec(tmp_path / "data.xlsx", "data")) == [("wrong-path-type", "data.xlsx")]


def test_check_reports_the_problems_of_both_parts_at_once(tmp_path):
    train = write_index(tmp_path, ["a.png"], "train.txt")
    test = write_index(tmp_path, ["b.png"], "test.txt")
    places = [
        problem.place.file.name for problem in data.check_dataset(DatasetSpec(train=(train,), test=(test,))).problems
    ]
    assert places == ["train.txt", "test.txt"]


def test_check_finds_nothing_wrong_with_a_good_dataset(tmp_path):
    assert data.check_dataset(two_classes(tmp_path)).problems == []


def test_a_sample_listed_twice_keeps_names_apart(tmp_path):
    write_picture(tmp_path / "a.png")
    ids = listed(write_index(tmp_path, ["a.png cat"] * 3)).ids
    assert ids.tolist() == ["a.png", "a.png#2", "a.png#3"]


def test_absolute_paths_get_names_that_survive_a_move(tmp_path):
    picture = write_picture(tmp_path / "set" / "a.png")
    assert listed(write_index(tmp_path / "set", [f"{picture} cat"])).ids.tolist() == ["a.png"]


def test_classes_are_found_in_both_parts_and_sorted(tmp_path):
    write_picture(tmp_path / "a.png")
    train = write_index(tmp_path, ["a.png dog", "a.png cat"], "train.txt")
    test = write_index(tmp_path, ["a.png ant"], "test.txt")
    dataset = data.load(DatasetSpec(train=(train,), test=(test,)), tmp_path / "cache")
    assert dataset.classes == ("ant", "cat", "dog")
    np.testing.assert_array_equal(dataset.train.y, [2, 1])
    assert dataset.train.y.dtype == np.int64


def test_integer_classes_are_sorted_by_value(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png 10", "a.png 9", "a.png 2"])
    dataset = data.load(DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache")
    assert dataset.classes == ("2", "9", "10")
    np.testing.assert_array_equal(dataset.train.y, [2, 1, 0])


def test_integers_are_positions_in_a_given_class_list(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png 1", "a.png cat"])
    dataset = data.load(DatasetSpec(train=(source,), test=(source,), classes=("dog", "cat")), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.y, [1, 1])


def test_a_label_outside_the_class_list_is_refused_with_its_line_and_the_closest_class(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png cat", "a.png dgo"])
    spec = DatasetSpec(train=(source,), test=(source,), classes=("cat", "dog"))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("unknown-class", "index.txt:2:1")]
    assert recorded(data.check_dataset(spec).problems) == [("unknown-class", "index.txt:2:1")]


def test_names_mixed_with_integers_are_refused_unless_classes_are_listed(tmp_path):
    write_picture(tmp_path / "a.png")
    source = write_index(tmp_path, ["a.png cat", "a.png 1"])
    assert errors_of(data.load, DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache") == [
        ("ambiguous-data", "index.txt:2:1")
    ]
