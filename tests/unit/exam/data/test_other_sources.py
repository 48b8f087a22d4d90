"""Tables, folders and arrays."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.errors import errors_of, recorded
from tests.unit.exam.data.pictures import write_picture


def written(path, text):
    path.write_text(text)
    return SourceSpec(path, "data")


def loaded(tmp_path, train, test=None, **settings):
    spec = DatasetSpec(train=(train,), test=(test or train,), **settings)
    assert [problem for problem in data.check_dataset(spec).problems if not problem.warning] == []
    return data.load(spec, tmp_path / "cache")


def refusal(train, **settings):
    return errors_of(data.load, DatasetSpec(train=(train,), test=(train,), **settings), train.path.parent / "cache")


def test_numeric_columns_are_features(tmp_path):
    dataset = loaded(tmp_path, written(tmp_path / "t.csv", "a,species,b\n1,iris,2.5\n-3,rose,4e1\n"), label="species")
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.x, [[1, 2.5], [-3, 40]])
    assert dataset.classes == ("iris", "rose")


@pytest.mark.parametrize("sample", ["image", "path", "file", "x", "Image"])
@pytest.mark.parametrize("label", ["label", "y", "target", "class"])
def test_a_csv_of_pictures_has_columns_of_common_names(tmp_path, sample, label):
    write_picture(tmp_path / "a.png")
    dataset = loaded(tmp_path, written(tmp_path / "t.csv", f"{label},{sample}\n7,a.png\n"))
    assert dataset.train.x.shape == (1, 6, 5, 3)
    assert dataset.classes == ("7",)


def test_json_and_jsonl_are_records(tmp_path):
    write_picture(tmp_path / "a.png")
    records = [{"image": "a.png", "label": 3}, {"image": "a.png", "label": 1, "note": "extra keys don't matter"}]
    as_json = loaded(tmp_path, written(tmp_path / "t.json", json.dumps(records)))
    as_lines = loaded(tmp_path, written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, records))))
    for dataset in (as_json, as_lines):
        assert dataset.classes == ("1", "3")
        np.testing.assert_array_equal(dataset.train.y, [1, 0])


def test_questions_and_answers_are_texts(tmp_path):
    lines = [json.dumps({"question": q, "answer": a}) for q, a in (("who?", "me"), ("when?", "now"))]
    dataset = loaded(tmp_path, written(tmp_path / "t.jsonl", "\n".join(lines)))
    assert dataset.kind == "text"
    assert dataset.train.x.dtype == object
    assert dataset.train.x.tolist() == ["who?", "when?"]
    assert dataset.train.y.tolist() == ["me", "now"]


def test_a_missing_label_column_is_refused_with_the_closest_name(tmp_path):
    assert refusal(written(tmp_path / "t.csv", "image,lable\na.png,1\n")) == [("missing-column", "t.csv:1:1")]


def test_a_missing_sample_column_is_refused_with_the_closest_name(tmp_path):
    assert refusal(written(tmp_path / "t.csv", "imgae,label\na.png,1\n")) == [("missing-column", "t.csv:2:1")]


def test_a_label_column_that_is_not_there_points_into_the_yaml(tmp_path):
    source = written(tmp_path / "t.csv", "a,species\n1,iris\n")
    place = Location(tmp_path / "testenv.yaml", 7, 3)
    assert refusal(source, label="specie", places={"label": place}) == [("missing-column", "testenv.yaml:7:3")]


def test_a_short_row_is_refused_with_its_line(tmp_path):
    assert refusal(written(tmp_path / "t.csv", "a,label\n1,2\n1\n")) == [("invalid-record", "t.csv:3:1")]


def test_broken_json_is_refused_with_line_and_column(tmp_path):
    source = written(tmp_path / "t.jsonl", '{"question": "a", "answer": "b"}\n{"question": "a",}\n')
    assert refusal(source) == [("unreadable-data", "t.jsonl:2:18")]


def test_a_header_without_rows_is_refused(tmp_path):
    assert refusal(written(tmp_path / "t.csv", "a,label\n")) == [("empty-dataset", "t.csv")]


def test_a_folder_of_class_folders_is_a_dataset(tmp_path):
    for name in ("b/2.png", "a/1.png", "a/deeper/0.png"):
        write_picture(tmp_path / "set" / name)
    (tmp_path / "set" / "a" / "notes.md").write_text("not a picture")
    dataset = loaded(tmp_path, SourceSpec(tmp_path / "set", "data"))
    assert dataset.name == "set"
    assert dataset.train.ids.tolist() == ["a/1.png", "a/deeper/0.png", "b/2.png"]
    np.testing.assert_array_equal(dataset.train.y, [0, 0, 1])


def test_a_picture_outside_the_class_folders_is_refused(tmp_path):
    write_picture(tmp_path / "set" / "loose.png")
    assert refusal(SourceSpec(tmp_path / "set", "data")) == [("invalid-record", "set")]


def test_arrays_come_from_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.eye(3), y=np.array([5, 3, 5]), domain=np.array(["p", "q", "p"]))
    dataset = loaded(tmp_path, SourceSpec(path, "data"))
    assert dataset.train.x.dtype == np.float32
    assert dataset.classes == ("3", "5")
    np.testing.assert_array_equal(dataset.train.y, [1, 0, 1])
    assert dataset.train.domains.tolist() == ["p", "q", "p"]


def test_one_npz_can_hold_both_parts_and_grey_pictures(tmp_path):
    path = tmp_path / "a.npz"
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(path, x_train=x, y_train=["a", "b"], x_test=x[:1], y_test=["b"], classes=["b", "a"])
    dataset = loaded(tmp_path, SourceSpec(path, "data"))
    assert dataset.classes == ("b", "a")
    assert dataset.train.x.shape == (2, 3, 4, 1)
    assert dataset.train.x.dtype == np.uint8
    assert len(dataset.test) == 1
    np.testing.assert_array_equal(dataset.train.y, [1, 0])


def test_pickled_objects_in_npz_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}, {}], dtype=object), y=np.zeros(2))
    assert refusal(SourceSpec(path, "data")) == [("unreadable-data", "a.npz")]


def test_an_npz_without_labels_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.eye(2), yy=np.zeros(2))
    assert refusal(SourceSpec(path, "data")) == [("missing-column", "a.npz"), ("missing-column", "a.npz")]


def test_labels_of_another_length_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.eye(2), y=np.zeros(3, dtype=int))
    assert refusal(SourceSpec(path, "data")) == [("mismatched-data", "a.npz")]


def test_parts_of_different_shape_are_refused(tmp_path):
    for name, width in (("a", 2), ("b", 3)):
        np.savez(tmp_path / f"{name}.npz", x=np.ones((4, width)), y=[0, 1, 0, 1])
    spec = DatasetSpec(train=(SourceSpec(tmp_path / "a.npz", "data"),), test=(SourceSpec(tmp_path / "b.npz", "data"),))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("mismatched-data", "b.npz")]


def test_image_size_is_refused_where_there_are_no_picture_files(tmp_path):
    source = written(tmp_path / "t.csv", "a,label\n1,2\n")
    assert recorded(data.check_dataset(DatasetSpec(train=(source,), test=(source,), image_size=(2, 2))).problems) == [
        ("unfit-key", "")
    ]
