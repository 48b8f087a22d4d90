"""Readers of COCO json, YOLO txt and VOC xml, on small files in the real layouts."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ianvs.testenv.data_types.detection.box_checks import checked_labels
from ianvs.testenv.data_types.detection.box_files import BoxFiles
from ianvs.testenv.data_types.detection.coco_json import read_coco
from ianvs.testenv.data_types.detection.voc_xml import read_voc, read_voc_index
from ianvs.testenv.data_types.detection.yolo_txt import read_yolo
from tests.errors import errors_of


@pytest.fixture(autouse=True)
def beside_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def picture(path: Path, size: tuple[int, int] = (200, 100)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


def shown(files: BoxFiles) -> list[dict[str, Any]]:
    checked_labels(files.labels, len(files.classes))  # what readers return is accepted
    return [{key: np.asarray(values).tolist() for key, values in label.items()} for label in files.labels]


# --- COCO -------------------------------------------------------------------------------------------------------------

COCO: dict[str, Any] = {
    "info": {"year": 2017, "contributor": 'nobody [ { " ] }'},
    "annotations": [
        {"id": 9, "image_id": 30, "category_id": 90, "bbox": [1.5, 2, 10, 20], "area": 150.5, "iscrowd": 0},
        {"id": 4, "image_id": 5, "category_id": 2, "bbox": [0, 0, 4, 4], "iscrowd": 1, "segmentation": {"size": [1]}},
        {"id": 5, "image_id": 30, "category_id": 2, "bbox": [3, 3, 0, 5]},
    ],
    "images": [
        {"id": 30, "file_name": "a/one.jpg", "width": 200, "height": 100},
        {"id": 7, "file_name": "empty.jpg"},
        {"id": 5, "file_name": "two.jpg"},
    ],
    "categories": [{"id": 90, "name": "toothbrush"}, {"id": 2, "name": "bicycle"}],
}


@pytest.fixture
def coco(tmp_path: Path) -> Callable[[Any], BoxFiles]:
    for name in ("a/one.jpg", "empty.jpg", "two.jpg"):
        picture(tmp_path / "train2017" / name)

    def read(content: Any) -> BoxFiles:
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        (tmp_path / "instances.json").write_text(text)
        return read_coco(tmp_path / "instances.json", tmp_path / "train2017")

    return read


@pytest.mark.parametrize("indent", [None, 1])
def test_coco_is_read_with_ids_that_have_gaps(coco: Callable[[Any], BoxFiles], indent: int | None) -> None:
    files = coco(json.dumps(COCO, indent=indent))
    assert files.classes == ("bicycle", "toothbrush")  # by id
    assert [path.name for path in files.pictures] == ["one.jpg", "empty.jpg", "two.jpg"]
    assert shown(files) == [
        {"boxes": [[1.5, 2, 11.5, 22], [3, 3, 3, 8]], "labels": [1, 0], "iscrowd": [0, 0], "area": [150.5, 0.0]},
        {"boxes": [], "labels": [], "iscrowd": [], "area": []},
        {"boxes": [[0, 0, 4, 4]], "labels": [0], "iscrowd": [1], "area": [16.0]},
    ]


SLIPS: dict[str, tuple[tuple[str, int], dict[str, Any]]] = {
    "image_id": (("annotations", 1), {"image_id": 6}),
    "category_id": (("annotations", 1), {"category_id": 3}),
    "annotation twice": (("annotations", 1), {"id": 9}),
    "image twice": (("images", 1), {"id": 30}),
    "category twice": (("categories", 1), {"id": 90}),
    "three numbers": (("annotations", 2), {"bbox": [1, 2, 3]}),
    "a word": (("annotations", 2), {"bbox": [1, 2, "3", 4]}),
    "negative width": (("annotations", 2), {"bbox": [1, 2, -3, 4]}),
    "nan": (("annotations", 2), {"bbox": [1, float("nan"), 3, 4]}),
    "area": (("annotations", 2), {"area": -1}),
    "iscrowd": (("annotations", 2), {"iscrowd": 3}),
    "id of words": (("images", 2), {"id": "five"}),
    "no picture": (("images", 2), {"file_name": "three.jpg"}),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_coco_is_told_with_the_line_of_its_entry(coco: Callable[[Any], BoxFiles], slip: str) -> None:
    (section, index), wrong = SLIPS[slip]
    content = copy.deepcopy(COCO)
    content[section][index] |= wrong
    lines = json.dumps(content, indent=1).splitlines()
    start = lines.index(f' "{section}": [')
    line = [i for i, text in enumerate(lines[start:], start + 1) if text == "  {"][index]
    assert errors_of(coco, content) == [("invalid-record", f"instances.json:{line}:3")]


@pytest.mark.parametrize(("section", "line"), [("images", 50), ("annotations", 7), ("categories", 66)])
def test_a_missing_key_in_coco_is_named(coco: Callable[[Any], BoxFiles], section: str, line: int) -> None:
    content = copy.deepcopy(COCO)
    del content[section][0]["id"]
    assert errors_of(coco, content) == [("invalid-record", f"instances.json:{line}:3")]


NO_COCO: dict[str, tuple[Any, str]] = {
    "a list": ("[]", "1:1"),
    "cut off": (json.dumps(COCO)[:-20], "1:568"),
    "no comma": (json.dumps(COCO, indent=1).replace("},\n  {", "}\n  {"), "20:3"),
    "no annotations": ({**COCO, "annotations": []}, "1:1"),
    "no images": ({**COCO, "images": []}, "7:3"),
    "a number among annotations": ({**COCO, "annotations": [7]}, "7:3"),
    "a mapping of images": ({**COCO, "images": {}}, "49:12"),
}


@pytest.mark.parametrize(("content", "at"), NO_COCO.values(), ids=NO_COCO)
def test_what_is_not_coco_is_refused(coco: Callable[[Any], BoxFiles], content: Any, at: str) -> None:
    assert errors_of(coco, content) == [("invalid-record", f"instances.json:{at}")]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert errors_of(read_coco, tmp_path / "none.json", tmp_path) == [("missing-file", "none.json")]


# --- YOLO -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def yolo(tmp_path: Path) -> Path:
    for name in ("train/a.jpg", "train/b.png", "train/c.jpg", "val/d.jpg"):
        picture(tmp_path / "images" / name)
    (tmp_path / "labels" / "train").mkdir(parents=True)
    (tmp_path / "labels" / "train" / "a.txt").write_text("1 0.5 0.5 0.2 0.4\n\n0 0.1 0.25 0.2 0.5\n")
    (tmp_path / "labels" / "train" / "b.txt").write_text("")
    (tmp_path / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n")
    return tmp_path


def test_yolo_is_read_in_pixels_of_the_picture(yolo: Path) -> None:
    files = read_yolo(yolo / "data.yaml", "train")
    assert [path.name for path in files.pictures] == ["a.jpg", "b.png", "c.jpg"]
    assert files.classes == ("cat", "dog")
    first, empty, missing = files.labels
    np.testing.assert_allclose(first["boxes"], [[80, 30, 120, 70], [0, 0, 40, 50]], atol=1e-12)
    assert first["labels"].tolist() == [1, 0]
    assert (len(empty["boxes"]), len(missing["boxes"])) == (0, 0)


def test_yolo_may_list_pictures_in_a_txt_and_names_in_a_list(yolo: Path) -> None:
    (yolo / "train.txt").write_text("./images/train/c.jpg\nimages/train/a.jpg\n")
    (yolo / "data.yaml").write_text("train: train.txt\nnames: [cat, dog]\n")
    files = read_yolo(yolo / "data.yaml", "train")
    assert [len(label["boxes"]) for label in files.labels] == [0, 2]
    (yolo / "train.txt").write_text("images/train/a.jpg\nimages/train/z.jpg\n")
    assert errors_of(read_yolo, yolo / "data.yaml", "train") == [("missing-file", "train.txt:2:1")]


TXT_SLIPS = {
    "a confidence": "0 .5 .5 .1 .1 .9",
    "a polygon": "0 .1 .1 .2 .1 .2 .2 .1 .2",
    "four numbers": "0 .5 .5 .1",
    "a class too high": "2 .5 .5 .1 .1",
    "half a class": "0.5 .5 .5 .1 .1",
    "pixels": "0 50 50 10 10",
    "nan": "0 nan .5 .1 .1",
    "a word": "cat .5 .5 .1 .1",
}


@pytest.mark.parametrize("line", TXT_SLIPS.values(), ids=TXT_SLIPS)
def test_a_slip_in_a_txt_is_told_with_its_line(yolo: Path, line: str) -> None:
    (yolo / "labels" / "train" / "b.txt").write_text(f"0 .5 .5 .1 .1\n{line}\n")
    assert errors_of(read_yolo, yolo / "data.yaml", "train") == [("invalid-record", "labels/train/b.txt:2:1")]


YAML_SLIPS = {
    "no names": ("train: images/train\n", "invalid-record", ""),
    "no train": ("names: [a]\ntrian: images/train\n", "invalid-record", ""),
    "no such folder": ("names: [a, b]\ntrain: picures\n", "missing-file", ":2:1"),
    "names from 1": ("names: {1: a, 2: b}\ntrain: images/train\n", "invalid-value", ":1:1"),
    "a name twice": ("names: [a, a]\ntrain: images/train\n", "duplicate-entry", ":1:1"),
    "not yaml": ("names: [\n", "invalid-yaml", ":2:1"),
    "no pictures": ("names: [a, b]\ntrain: images\n", "empty-dataset", ":2:1"),
}


@pytest.mark.parametrize(("content", "code", "at"), YAML_SLIPS.values(), ids=YAML_SLIPS)
def test_a_slip_in_data_yaml_is_told(yolo: Path, content: str, code: str, at: str) -> None:
    (yolo / "data.yaml").write_text(content)
    assert errors_of(read_yolo, yolo / "data.yaml", "train") == [(code, f"data.yaml{at}")]


def test_a_folder_of_boxes_that_is_not_there_is_no_dataset_without_boxes(yolo: Path) -> None:
    assert errors_of(read_yolo, yolo / "data.yaml", "val") == [("missing-file", "")]


def test_a_picture_that_is_none_is_named(yolo: Path) -> None:
    (yolo / "images" / "train" / "c.jpg").write_text("no picture")
    assert errors_of(read_yolo, yolo / "data.yaml", "train") == [("unreadable-file", "")]


# --- VOC --------------------------------------------------------------------------------------------------------------

OBJECT = """  <object>
    <name>{name}</name><pose>Left</pose><difficult>{difficult}</difficult>
    <bndbox><xmax>{box[2]}</xmax><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><ymax>{box[3]}</ymax></bndbox>
    <part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>
  </object>
"""


def annotation(*objects: tuple[str, list[float], int]) -> str:
    body = "".join(OBJECT.format(name=name, box=box, difficult=difficult) for name, box, difficult in objects)
    return f"<annotation>\n  <filename>x.jpg</filename><size><width>200</width></size>\n{body}</annotation>\n"


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    for name in ("2008_1.jpg", "2008_2.jpeg"):
        picture(tmp_path / "JPEGImages" / name)
    (tmp_path / "Annotations").mkdir()
    two = annotation(("person", [1, 1, 200, 100], 1), ("cat", [45.7, 2, 60.2, 9], 0))
    (tmp_path / "Annotations" / "2008_1.xml").write_text(two)
    (tmp_path / "Annotations" / "2008_2.xml").write_text(annotation())
    (tmp_path / "ImageSets" / "Main").mkdir(parents=True)
    (tmp_path / "ImageSets" / "Main" / "train.txt").write_text("2008_2\n2008_1\n")
    return tmp_path


def test_voc_is_read_with_real_coordinates_and_without_parts(voc: Path) -> None:
    files = read_voc(voc, "train")
    assert files.classes == ("cat", "person")
    assert [path.name for path in files.pictures] == ["2008_2.jpeg", "2008_1.jpg"]
    empty, full = shown(files)
    assert empty == {"boxes": [], "labels": [], "difficult": []}
    assert (full["labels"], full["difficult"]) == ([1, 0], [1, 0])
    np.testing.assert_allclose(full["boxes"], [[0, 0, 200, 100], [44.7, 1, 60.2, 9]])
    assert read_voc(voc, "train", ["person", "cat"]).labels[1]["labels"].tolist() == [0, 1]


def test_an_index_of_pictures_and_xml_is_read_by_the_same_reader(voc: Path) -> None:
    (voc / "index.txt").write_text("./JPEGImages/2008_1.jpg ./Annotations/2008_1.xml\n")
    files = read_voc_index(voc / "index.txt", ["cat", "person"])
    assert shown(files) == shown(read_voc(voc, "train"))[1:]
    for line in ("JPEGImages/2008_1.jpg", "JPEGImages/no.jpg Annotations/2008_1.xml"):
        (voc / "index.txt").write_text(f"JPEGImages/2008_1.jpg Annotations/2008_1.xml\n{line}\n")
        assert errors_of(read_voc_index, voc / "index.txt") == [("invalid-record", "index.txt:2:1")]


XML_SLIPS = {
    "an unknown class": (annotation(("cat", [1, 1, 5, 5], 0), ("cta", [1, 1, 5, 5], 0)), 8),
    "ends before it begins": (annotation(("cat", [9, 1, 5, 5], 0)), 3),
    "nan": (annotation(("cat", [float("nan"), 1, 5, 5], 0)), 3),
    "difficult": (annotation(("cat", [1, 1, 5, 5], 2)), 3),
    "no name": (annotation(("", [1, 1, 5, 5], 0)), 3),
    "no xmin": (annotation(("cat", [1, 1, 5, 5], 0)).replace("xmin>", "left>"), 3),
    "cut off": (annotation(("cat", [1, 1, 5, 5], 0))[:-20], 7),
}


@pytest.mark.parametrize(("content", "line"), XML_SLIPS.values(), ids=XML_SLIPS)
def test_a_slip_in_an_xml_is_told_with_its_line(voc: Path, content: str, line: int) -> None:
    (voc / "Annotations" / "2008_2.xml").write_text(content)
    errors = errors_of(read_voc, voc, "train", ["cat", "person"])
    assert errors == [("invalid-record", f"Annotations/2008_2.xml:{line}:1")]


IMAGE_SET_SLIPS = {
    "no such picture": ("2008_1\n2009_7\n", "invalid-record", ":2:1"),
    "a list of one class": ("2008_1  1\n2008_2 -1\n", "invalid-record", ":1:1"),
    "empty": ("\n", "empty-dataset", ""),
}


@pytest.mark.parametrize(("content", "code", "at"), IMAGE_SET_SLIPS.values(), ids=IMAGE_SET_SLIPS)
def test_a_slip_in_an_image_set_is_told_with_its_line(voc: Path, content: str, code: str, at: str) -> None:
    (voc / "ImageSets" / "Main" / "train.txt").write_text(content)
    assert errors_of(read_voc, voc, "train") == [(code, f"ImageSets/Main/train.txt{at}")]


def test_a_missing_xml_is_named(voc: Path) -> None:
    (voc / "Annotations" / "2008_2.xml").unlink()
    assert errors_of(read_voc, voc, "train") == [("missing-file", "Annotations/2008_2.xml")]


def test_two_pictures_that_share_a_file_of_boxes_are_refused(voc: Path) -> None:
    picture(voc / "JPEGImages" / "2008_1.png")
    assert errors_of(read_voc, voc, "train") == [("duplicate-entry", "")]


# --- names as data.yaml writes them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("[yes, no, on, off]", ("yes", "no", "on", "off")),
        ("{0: yes, 1: no}", ("yes", "no")),
        ("{1: dog, 0: cat}", ("cat", "dog")),
        ("{'0': cat, \"1\": dog}", ("cat", "dog")),
        ("[1, 2]", ("1", "2")),
        ("[1e3, 0x10, 010, 1_0]", ("1e3", "0x10", "010", "1_0")),
        ("[2024-01-01, 10:30]", ("2024-01-01", "10:30")),
        ("[null, .nan]", ("null", ".nan")),
        ("\n  - 'a: b'\n  - c", ("a: b", "c")),
    ],
)
def test_names_of_yolo_are_texts_as_they_are_written(yolo: Path, names: str, expected: tuple[str, ...]) -> None:
    for folder in ("train", "val"):
        for file in (yolo / "labels" / folder).glob("*.txt"):
            file.write_text("")
    (yolo / "data.yaml").write_text(f"train: images/train\nnc: {len(expected)}\nnames: {names}\n")
    assert read_yolo(yolo / "data.yaml", "train").classes == expected


CONTRADICTIONS = {
    "too high a count": ("nc: 3\nnames: [a, b]\n", "invalid-value", "1:1"),
    "a count that is a word": ("names: [a, b]\nnc: two\n", "invalid-value", "2:1"),
    "too low a count": ("nc: 1\nnames: {0: a, 1: b}\n", "invalid-value", "1:1"),
    "names twice": ("names: [a, b]\nnc: 2\nnames: [c, d]\n", "duplicate-key", "3:1"),
    "a number twice": ("names:\n  0: a\n  0: b\n", "duplicate-key", "3:3"),
    "a gap": ("names: {0: a, 2: b}\n", "invalid-value", "1:1"),
    "a word for a number": ("names: {0: a, cat: b}\n", "invalid-value", "1:1"),
    "a list for a name": ("names: [a, [b]]\n", "invalid-value", "1:1"),
    "an empty name": ("names: [a, '']\n", "invalid-value", "1:1"),
    "one name": ("\nnames: cat\n", "invalid-value", "2:1"),
}


@pytest.mark.parametrize(("content", "code", "at"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_names_of_yolo_that_contradict_are_refused_at_their_line(yolo: Path, content: str, code: str, at: str) -> None:
    (yolo / "data.yaml").write_text(content + "train: images/train\n")
    assert errors_of(read_yolo, yolo / "data.yaml", "train") == [(code, f"data.yaml:{at}")]
