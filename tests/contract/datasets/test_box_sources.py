"""The sources coco, yolo and voc, on small files in the real layouts: what validate refuses, and a run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ianvs
from ianvs.config.spec import DatasetSpec
from ianvs.testenv.data_types.detection import box_sources
from ianvs.testenv.data_types.detection.coco_json import read_coco
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job

BLIND = """
class Blind:
    def train(self, train_data):
        for label in train_data.y:
            print("told", label["boxes"].round(9).tolist(), label["labels"].tolist(), train_data.x.shape[1:])

    def predict(self, data):
        return [{"boxes": [[2, 1, 6, 3]], "labels": [0], "scores": [0.9]}] * len(data)

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
"""
XML = """<annotation>
  <size><width>40</width><height>20</height></size>
  <object>
    <name>cat</name>
    <difficult>0</difficult>
    <bndbox><xmin>9</xmin><ymin>5</ymin><xmax>24</xmax><ymax>12</ymax></bndbox>
  </object>
</annotation>
"""
BOX = [8, 4, 24, 12]  # of a cat in each picture of 40 x 20 pixels; in 10 x 5 pixels it is (2, 1, 6, 3)
PARTS = ("train", "val")


def coco(root: Path) -> str:
    for part in PARTS:
        picture(root / f"{part}2017" / "one.png")
        content = {
            "images": [{"id": 3, "file_name": "one.png"}],
            "annotations": [
                {"id": 1, "image_id": 3, "category_id": 17, "bbox": [8, 4, 16, 8], "area": 128, "iscrowd": 0}
            ],
            "categories": [{"id": 17, "name": "cat"}],
        }
        (root / f"{part}.json").write_text(json.dumps(content, indent=1))
    named = "train_annotations: train.json, test_annotations: val.json"
    return f"name: coco, {named}, train_pictures: train2017, test_pictures: val2017"


def yolo(root: Path) -> str:
    for part in PARTS:
        picture(root / "images" / part / "one.png")
        (root / "labels" / part).mkdir(parents=True)
        (root / "labels" / part / "one.txt").write_text("0 0.4 0.4 0.4 0.4\n")
    (root / "data.yaml").write_text("train: images/train\nval: images/val\nnames:\n  0: cat\n")
    return "name: yolo"


def voc(root: Path) -> str:
    (root / "ImageSets" / "Main").mkdir(parents=True)
    for part, name in zip(("trainval", "test"), PARTS, strict=True):
        picture(root / "JPEGImages" / f"{name}.png")
        (root / "Annotations").mkdir(exist_ok=True)
        (root / "Annotations" / f"{name}.xml").write_text(XML)
        (root / "ImageSets" / "Main" / f"{part}.txt").write_text(f"{name}\n")
    return "name: voc"


def pcb(root: Path) -> str:
    """KubeEdge's pcb-aoi: an index with lines "picture xml"."""
    for part in PARTS:
        picture(root / f"{part}.png")
        (root / f"{part}.xml").write_text(XML)
        (root / f"{part}.txt").write_text(f"./{part}.png ./{part}.xml\n")
    return "name: voc, train_list: train.txt, test_list: val.txt"


LAYOUTS = {"coco": coco, "yolo": yolo, "voc": voc, "pcb": pcb}


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 20), (9, 9, 9)).save(path)


@pytest.fixture(autouse=True)
def beside_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def job(folder: Path, layout: str, more: str = "") -> Path:
    (folder / "data").mkdir()
    dataset = LAYOUTS[layout](folder / "data")
    testenv = (
        f"dataset: {{{dataset}, root: ./data{more}}}\nscenario: {{name: class-incremental, rounds: 1}}\nmetrics: [AP]"
    )
    return write_job(
        folder, plugin=BLIND, name="Blind", testenv=testenv, hyperparameters="", job="seeds: [0]",
        sort_by="[{AP: descend}]",
    )  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_move_with_the_size_of_pictures(tmp_path: Path, layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = job(tmp_path, layout, ", image_size: [5, 10]")
    ianvs.validate(path)
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    assert "told [[2.0, 1.0, 6.0, 3.0]] [0] (5, 10, 3)" in capsys.readouterr().out
    assert found.metrics["AP"] == pytest.approx(1, rel=0, abs=1e-15)  # `Blind` says that box


@pytest.mark.parametrize("storage", ["decoded", "encoded"])
def test_boxes_are_those_of_the_files_without_a_size(
    tmp_path: Path, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [found] = ianvs.run(job(tmp_path, "coco", f", storage: {storage}"))
    assert "told [[8.0, 4.0, 24.0, 12.0]] [0] (20, 40, 3)" in capsys.readouterr().out
    assert found.metrics["AP"] == 0


SLIPS = {
    "category": ("coco", "train.json", '_id": 17', '_id": 18', "data/train.json:9:3"),
    "no boxes": ("coco", "val.json", '"annotations"', '"nothing"', "data/val.json:1:1"),
    "outside": ("yolo", "labels/val/one.txt", "0.4 0.4\n", "0.4 1.4\n", "data/labels/val/one.txt:1:1"),
    "class": ("yolo", "labels/train/one.txt", "0 0.4", "1 0.4", "data/labels/train/one.txt:1:1"),
    "corner": ("voc", "Annotations/train.xml", "<xmax>24", "<xmax>4", "data/Annotations/train.xml:3:1"),
    "name": ("voc", "Annotations/val.xml", "cat", "cta", "data/Annotations/val.xml:3:1"),
    "index": ("pcb", "train.txt", ".xml", ".txt", "data/train.txt:1:1"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_validate_refuses_with_the_file_and_the_line(tmp_path: Path, slip: str) -> None:
    layout, file, before, after, location = SLIPS[slip]
    path = job(tmp_path, layout)
    text = (tmp_path / "data" / file).read_text()
    (tmp_path / "data" / file).write_text(edited(text, before, after))
    for check in (ianvs.validate, ianvs.run):
        assert errors_of(check, path) == [("invalid-record", location)]


@pytest.mark.parametrize(
    ("layout", "before", "after", "error"),
    [
        ("yolo", "name: yolo", "name: yolo, part: val", ("unknown-option", "testenv.yaml:2:25")),
        ("coco", "train_pictures: train2017, ", "", ("missing-option", "testenv.yaml:2:19")),
        ("pcb", ", test_list: val.txt", "", ("invalid-option", "testenv.yaml:2:19")),
        ("voc", ", root: ./data", "", ("missing-option", "testenv.yaml:2:19")),
    ],
)
def test_options_are_checked(tmp_path: Path, layout: str, before: str, after: str, error: tuple[str, str]) -> None:
    path = job(tmp_path, layout)
    (tmp_path / "testenv.yaml").write_text(edited((tmp_path / "testenv.yaml").read_text(), before, after))
    assert errors_of(ianvs.validate, path) == [error]


@pytest.mark.slow
def test_boxes_of_an_authors_paths_move_with_the_size_too(tmp_path: Path) -> None:
    path = job(tmp_path, "coco")
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "def mine():\n"
        "    y = [{'boxes': [[8, 4, 24, 12]], 'labels': [0]}]\n"
        "    here = Path(__file__).parent / 'data'\n"
        "    return ([here / 'train2017' / 'one.png'], y), ([here / 'val2017' / 'one.png'], y)\n"
    )
    text = (tmp_path / "testenv.yaml").read_text().splitlines()
    text[1] = "  dataset: {url: ./mine.py, name: mine, data_type: detection, image_size: [5, 10]}"
    (tmp_path / "testenv.yaml").write_text("\n".join(text))
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    assert found.metrics["AP"] == pytest.approx(1, rel=0, abs=1e-15)
    assert np.isfinite(found.matrices["AP"].values).all()


def test_a_json_is_read_once_in_a_process_while_it_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(
        box_sources, "read_coco", lambda file, pictures: read.append(file.name) or read_coco(file, pictures)
    )
    spec = DatasetSpec(name="coco", root=tmp_path)
    coco(tmp_path)
    source = box_sources.Coco(
        train_annotations="train.json", test_annotations="val.json", train_pictures="train2017", test_pictures="val2017"
    )
    assert source.check(spec) == []
    before = source.fingerprint(spec, tmp_path / "cache")
    assert source.load(spec, tmp_path / "cache").train.y[0]["boxes"] == [BOX]
    assert read == ["train.json", "val.json"]
    train = tmp_path / "train.json"
    train.write_text(edited(train.read_text(), "   16,\n", "   15.5,\n"))
    assert source.fingerprint(spec, tmp_path / "cache") != before
    assert source.load(spec, tmp_path / "cache").train.y[0]["boxes"] == [[8, 4, 23.5, 12]]
    assert read == ["train.json", "val.json", "train.json"]
