"""Tables, lists and folders as newcomers bring them: they are read as they are meant, or told with the remedy."""

import json

import pytest

from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.load_listing import warnings_of
from ianvs.exam.data.sources import read_parts
from tests.errors import recorded
from tests.unit.exam.data.test_file_formats import pictures, refusal, spec_of

ROWS = 10


def table(path, column, cells, label="xy"):
    path.write_text(
        f"a,label,{column}\n" + "".join(f"{i}.5,{label[i % len(label)]},{cells[i % len(cells)]}\n" for i in range(ROWS))
    )
    return spec_of(path, path)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        *(("set", ("train", "test")), ("fold", ("Train", "test")), ("phase", ("training", "val"))),
        *(("is_test", (0, 1)), ("IsTest", ("False", "True")), ("is_train", (1, 0)), ("train", ("yes", "no"))),
    ],
)
def test_a_column_is_the_split_where_its_cells_say_so(tmp_path, column, cells):
    train, test = read_parts(table(tmp_path / "t.csv", column, cells))
    assert (train.features, train.x[:, 0].tolist()) == (("a",), [0.5, 2.5, 4.5, 6.5, 8.5])
    assert test.x[:, 0].tolist() == [1.5, 3.5, 5.5, 7.5, 9.5]
    assert (recorded(train.warnings), test.warnings) == ([("doubtful-data", "t.csv:1:9")], ())


@pytest.mark.parametrize(("column", "cells"), [("fold", (0, 1, 2)), ("test", (0, 1)), ("split", (1, 2))])
def test_a_feature_that_is_called_as_a_split_is_told(tmp_path, column, cells):
    spec = table(tmp_path / "t.csv", column, cells)
    train, _ = read_parts(spec)
    assert train.features == ("a", column)
    assert recorded(train.warnings) == [("doubtful-data", "t.csv:1:9")]
    listed = spec_of(tmp_path / "t.csv", tmp_path / "t.csv", input=("a", column))
    assert read_parts(listed)[0].warnings == ()


def test_rows_that_another_test_file_leaves_out_are_told(tmp_path):
    table(tmp_path / "t.csv", "split", ("train", "test"))
    table(tmp_path / "other.csv", "b", (1,))
    (tmp_path / "other.csv").write_text("a,label\n1,x\n2,y\n")
    train, _ = read_parts(spec_of(tmp_path / "t.csv", tmp_path / "other.csv"))
    assert recorded(train.warnings) == [("doubtful-data", "t.csv:1:9")]


@pytest.mark.parametrize("name", ["filename", "file_name", "image_id", "filepath", "image_path"])
def test_a_column_of_paths_is_the_sample(tmp_path, name):
    pictures(tmp_path, ["i/a.png", "i/b.png"])
    (tmp_path / "t.csv").write_text(f"{name},label\ni/a.png,x\ni/b.png,y\n")
    train, _ = read_parts(spec_of(tmp_path / "t.csv", tmp_path / "t.csv"))
    assert (train.form, train.ids.tolist()) == ("files", ["i/a.png", "i/b.png"])
    (tmp_path / "t.csv").write_text(f"{name},label\na.png,x\nb.png,y\n")
    assert refusal(spec_of(tmp_path / "t.csv")) == [("missing-file", "t.csv:2:1")]
    (tmp_path / "t.csv").write_text(f"{name},label\n3,x\n7,y\n")
    assert read_parts(spec_of(tmp_path / "t.csv", tmp_path / "t.csv"))[0].features == (name,)


@pytest.mark.parametrize(
    "text",
    [
        *("1.5,2,cat\n2.5,3,dog\n1,2,cat\n", "5;2,5\n6;3,5\n", "a.png,cat\nb.png,dog\nc.png,cat\n", "5,6,5\n7,8,1\n"),
        *("a b label\n1 2 x\n3 4 y\n", "a:b:label\n1:2:x\n3:4:y\n"),
    ],
)
def test_a_table_without_header_or_known_delimiter_is_told(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert [place for _, place in refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv"))] == ["t.csv:1:1"]


@pytest.mark.parametrize(
    "text", ["0,1,label\n1,2,x\n3,4,y\n", "400.1,400.2,label\n1,2,0\n3,4,1\n", "1,2,y\n1,2,x\n1,2,y\n"]
)
def test_columns_with_numbers_as_names_are_read(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert len(
        read_parts(spec_of(tmp_path / "t.csv", tmp_path / "t.csv", label=text.split("\n")[0][-5:].split(",")[-1]))[0]
    )


@pytest.mark.parametrize("cell", ["12%", '"1,234.5"', '"1,234,567"', "$5.20", "-3 %"])
def test_a_number_in_another_form_is_told_as_one(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,label\n{cell},x\n{cell},y\n")
    assert refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv")) == [("invalid-record", "t.csv:2:1")]


@pytest.mark.parametrize(
    ("labels", "told"), [(("cat", "dog", "Cat"), True), (("A", "a", "b"), False), (("cat", "dog"), False)]
)
def test_classes_that_differ_in_case_only_are_told(tmp_path, labels, told):
    (tmp_path / "t.csv").write_text(
        "a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate((*labels, *labels)))
    )
    spec = spec_of(tmp_path / "t.csv", tmp_path / "t.csv")
    found = warnings_of(read_parts(spec), spec)
    assert recorded(found) == ([("doubtful-data", "t.csv:4:1")] if told else [])


NAMES = ["a.png", "b.png", "c.png"]


@pytest.mark.parametrize(
    "content",
    [
        *({"cat": ["a.png", "c.png"], "dog": ["b.png"]}, {"a.png": "cat", "b.png": "dog", "c.png": "cat"}),
        {"image": {"0": "a.png", "1": "b.png", "2": "c.png"}, "label": {"0": "cat", "1": "dog", "2": "cat"}},
        {
            "annotations": [
                {"file_name": "a.png", "label": "cat"},
                {"file_name": "b.png", "label": "dog"},
                {"file_name": "c.png", "label": "cat"},
            ]
        },
    ],
)
def test_json_of_images_is_read(tmp_path, content):
    pictures(tmp_path, NAMES)
    (tmp_path / "t.json").write_text(json.dumps(content))
    train, _ = read_parts(spec_of(tmp_path / "t.json", tmp_path / "t.json"))
    labels = dict(zip(train.ids.tolist(), train.y.tolist(), strict=True))
    assert labels == {"a.png": "cat", "b.png": "dog", "c.png": "cat"}


def test_json_columns_of_images_and_masks_are_no_classes(tmp_path):
    pictures(tmp_path, NAMES)
    (tmp_path / "t.json").write_text(json.dumps({"image": NAMES[:2], "label": NAMES[1:]}))
    train, _ = read_parts(spec_of(tmp_path / "t.json", tmp_path / "t.json"))
    assert (train.label_form, train.ids.tolist()) == ("files", NAMES[:2])


def test_comments_of_an_index_are_left_out(tmp_path):
    pictures(tmp_path, ["a.png", "#b.png"])
    (tmp_path / "t.txt").write_text("# made by hand\n#image label\na.png x\n#b.png y\n")
    train, _ = read_parts(spec_of(tmp_path / "t.txt", tmp_path / "t.txt"))
    assert train.ids.tolist() == ["a.png", "#b.png"]
    assert recorded(train.warnings) == [("doubtful-data", "t.txt:1:1")]


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_a_table_that_is_called_an_index_is_told(tmp_path, mark):
    (tmp_path / "t.txt").write_text(mark.join("abc") + "\n" + mark.join("12x") + "\n" + mark.join("34y") + "\n")
    assert [place for _, place in refusal(spec_of(tmp_path / "t.txt", tmp_path / "t.txt"))] == ["t.txt:1:1"]


def test_an_archive_is_to_be_unpacked(tmp_path):
    (tmp_path / "t.tar.gz").write_text("x")
    with pytest.raises(SourceError, match="Unpack it"):
        read_parts(spec_of(tmp_path / "t.tar.gz", tmp_path / "t.tar.gz"))


def test_a_folder_around_the_class_folders_is_told(tmp_path):
    pictures(tmp_path / "data", ["animals/cat/a.png", "animals/dog/b.png"])
    train, _ = read_parts(spec_of(tmp_path / "data", tmp_path / "data"))
    assert recorded(train.warnings) == [("doubtful-data", "data")]
