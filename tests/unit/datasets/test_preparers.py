from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.listing import Listing
from ianvs.exam.data.sources import read_part
from ianvs.testenv.datasets.downloads.preparers import PREPARERS, prepare
from tests.errors import errors_of, printed
from tests.unit.datasets import trees

TREES: dict[str, Callable[[Path], Path]] = {
    "cityscapes": trees.cityscapes,
    "synthia": trees.synthia,
    "cloud_robotics": trees.cloud_robotics,
    "bdd100k": trees.bdd100k,
    "idd": trees.idd,
    "camvid": trees.camvid,
}


def index(folder: Path, part: str) -> list[list[str]]:
    return [line.split() for line in (folder / f"{part}-index.txt").read_text().splitlines()]


def ids_of(folder: Path, written: str) -> np.ndarray:
    with Image.open(folder / written) as image:
        assert image.mode == "L"
        return np.asarray(image)


def provenance(folder: Path) -> dict:
    return json.loads((folder / "provenance.json").read_text())


def as_a_testenv_reads(folder: Path, part: str, domain: str) -> Listing:
    source = (SourceSpec(folder / f"{part}-index.txt", "index", domain),)
    return read_part(DatasetSpec(train=source, test=source, using=(domain,)), part)


@pytest.mark.parametrize("name", TREES)
def test_what_is_prepared_is_what_a_testenv_reads(name: str, tmp_path: Path):
    assert set(TREES) == set(PREPARERS)
    for one in prepare(name, TREES[name](tmp_path / "download"), tmp_path / "out"):
        for part in ("train", "test"):
            listing = as_a_testenv_reads(one.folder, part, one.domain)
            assert listing.label_form == "files"
            assert len(listing) == one.counts[part] == provenance(one.folder)["counts"][part]
            assert all(
                Path(picture).stem.split("_")[0] in label for picture, label in zip(listing.x, listing.y, strict=True)
            )
            for label in listing.y:
                present = np.unique(ids_of(Path("/"), label))
                assert set(present.tolist()) <= {*range(len(one.classes)), 255, len(one.classes)}
        assert yaml.safe_load((one.folder / "classes.yaml").read_text())["classes"] == list(one.classes)


def test_cityscapes_train_ids_are_used_where_they_are(tmp_path: Path):
    prepare("cityscapes", trees.cityscapes(tmp_path / "cs"), tmp_path / "out")

    assert index(tmp_path / "out", "train")[0] == [
        "../cs/leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png",
        "../cs/gtFine/train/aachen/aachen_000000_000019_gtFine_labelTrainIds.png",
    ]
    assert [line[0].split("/")[3] for line in index(tmp_path / "out", "test")] == ["val"]
    assert not (tmp_path / "out/labels").exists()
    assert provenance(tmp_path / "out")["mapping"] is None


def test_cityscapes_label_ids_are_mapped_where_train_ids_are_missing(tmp_path: Path):
    ids = list(range(34))
    prepare("cityscapes", trees.cityscapes(tmp_path / "cs", "labelIds", ids), tmp_path / "out")

    label = index(tmp_path / "out", "train")[0][1]
    assert label == "labels/train/aachen/aachen_000000_000019_TrainIds.png"
    written = ids_of(tmp_path / "out", label).ravel()[:34]
    assert written[[7, 8, 11, 33]].tolist() == [0, 1, 2, 18]
    assert (written == 255).sum() == 34 - 19
    assert provenance(tmp_path / "out")["mapping"]["33"] == 18


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_synthia_ids_are_read_from_all_16_bits_of_the_first_channel(tmp_path: Path, channels: int):
    prepare("synthia", trees.synthia(tmp_path / "syn", channels=channels), tmp_path / "out")

    written = ids_of(tmp_path / "out", index(tmp_path / "out", "train")[0][1])
    assert written.ravel()[:23].tolist() == [255, *range(22)]


def test_synthia_in_the_classes_of_cityscapes(tmp_path: Path):
    (one,) = prepare("synthia", trees.synthia(tmp_path / "syn"), tmp_path / "out", classes="cityscapes")

    written = ids_of(tmp_path / "out", index(tmp_path / "out", "train")[0][1]).ravel()
    assert written[:5].tolist() == [255, 10, 2, 0, 1]  # void, sky, building, road, sidewalk
    assert written[22] == 255  # lane-marking
    assert len(one.classes) == 19


def test_synthia_is_split_by_a_seed_that_is_recorded(tmp_path: Path):
    root = trees.synthia(tmp_path / "syn", count=20)
    prepare("synthia", root, tmp_path / "a")
    prepare("synthia", root, tmp_path / "again")
    prepare("synthia", root, tmp_path / "b", seed=1)
    parts = {name: [line[0] for line in index(tmp_path / name, "test")] for name in ("a", "again", "b")}

    assert parts["a"] == parts["again"] != parts["b"]
    assert len(parts["a"]) == 4
    assert not set(parts["a"]) & {line[0] for line in index(tmp_path / "a", "train")}
    assert provenance(tmp_path / "a")["split"]["seed"] == 0
    assert provenance(tmp_path / "b")["split"] | {"rule": ""} == {"rule": "", "test_ratio": 0.2, "seed": 1}


def test_cloud_robotics_takes_all_scenes_and_says_which_split_is_left_over(tmp_path: Path):
    (one,) = prepare("cloud_robotics", trees.cloud_robotics(tmp_path / "cr"), tmp_path / "out")

    assert one.counts == {"train": 4, "test": 2}
    assert {line[1].split("/")[4] for line in index(tmp_path / "out", "train")} == {"20220420_front", "20220420_garden"}
    printed("\n".join(one.warnings))


def test_idd_in_the_classes_of_cityscapes(tmp_path: Path):
    prepare("idd", trees.idd(tmp_path / "idd"), tmp_path / "out", classes="cityscapes")

    written = ids_of(tmp_path / "out", index(tmp_path / "out", "test")[0][1]).ravel()
    assert written[:5].tolist() == [0, 255, 1, 255, 11]  # road, drivable fallback, sidewalk, non-drivable ..., person


def test_camvid_gets_one_index_per_sequence_and_one_of_all(tmp_path: Path):
    domains = prepare("camvid", trees.camvid(tmp_path / "camvid"), tmp_path / "out")

    assert [one.domain for one in domains] == ["0001TP", "0016E5"]
    assert [one.folder for one in domains] == [tmp_path / "out/0001TP", tmp_path / "out/0016E5"]
    assert len(index(tmp_path / "out", "train")) == 2
    source = (SourceSpec(tmp_path / "out/train-index.txt", "index"),)
    both = read_part(DatasetSpec(train=source, using=("0016E5", "0001TP")), "train")
    assert sorted(both.domains) == ["0001TP", "0016E5"]


def test_pixels_are_counted_by_class_and_absent_classes_are_told(tmp_path: Path):
    root = trees.cityscapes(tmp_path / "cs", ids=[0, 0, 13, 255])
    (one,) = prepare("cityscapes", root, tmp_path / "out")

    pixels = provenance(tmp_path / "out")["pixels"]["train"]
    assert {name: count for name, count in pixels.items() if count} == {"road": 512, "car": 256, "ignored": 256}
    printed("\n".join(one.warnings))


def test_a_picture_without_labels_is_named(tmp_path: Path):
    root = trees.cityscapes(tmp_path / "cs")
    (root / "gtFine/train/ulm/ulm_000007_000019_gtFine_labelTrainIds.png").unlink()

    assert errors_of(prepare, "cityscapes", root, tmp_path / "out") == [("damaged-dataset", "")]
    assert not (tmp_path / "out/train-index.txt").exists()


def test_labels_without_a_picture_are_named(tmp_path: Path):
    root = trees.bdd100k(tmp_path / "bdd")
    (root / "seg/images/train/00054602.jpg").unlink()

    assert errors_of(prepare, "bdd100k", root, tmp_path / "out") == [("damaged-dataset", "")]


def test_a_missing_pair_can_be_left_out_and_is_told(tmp_path: Path):
    root = trees.synthia(tmp_path / "syn")
    (root / "GT/LABELS/0000004.png").unlink()

    (one,) = prepare("synthia", root, tmp_path / "out", skip_missing=True)
    assert sum(one.counts.values()) == 9
    assert any("0000004.png" in warning for warning in one.warnings)


@pytest.mark.parametrize(
    ("name", "tree", "code"),
    [
        ("cityscapes", lambda root: trees.cityscapes(root, ids=[0, 20]), "invalid-record"),
        ("cityscapes", lambda root: trees.cityscapes(root, "labelIds", [7, 40]), "invalid-record"),
        ("synthia", lambda root: trees.synthia(root, ids=[3, 23]), "invalid-record"),
        ("synthia", lambda root: trees.synthia(root, ids=[3, 259]), "invalid-record"),
        ("cloud_robotics", lambda root: trees.cloud_robotics(root, [31]), "invalid-record"),
        ("idd", lambda root: trees.idd(root, [27]), "invalid-record"),
    ],
)
def test_a_label_outside_the_list_is_named_with_its_file(
    name: str, tree: Callable[[Path], Path], code: str, tmp_path: Path
):
    assert errors_of(prepare, name, tree(tmp_path / "download"), tmp_path / "out") == [(code, "")]
    assert not (tmp_path / "out/train-index.txt").exists()


def test_labels_of_another_size_than_their_picture_are_named(tmp_path: Path):
    root = trees.cityscapes(tmp_path / "cs")
    trees.picture(root / "leftImg8bit/val/munster/munster_000001_000019_leftImg8bit.png", (32, 64))

    assert errors_of(prepare, "cityscapes", root, tmp_path / "out") == [("invalid-record", "")]


def test_a_coloured_label_picture_and_a_damaged_one_are_named(tmp_path: Path):
    root = trees.bdd100k(tmp_path / "bdd")
    label = root / "seg/labels/val/7d06fefd_train_id.png"
    trees.picture(label)
    assert errors_of(prepare, "bdd100k", root, tmp_path / "out") == [("invalid-record", "")]
    label.write_bytes(b"not a picture at all, but long enough")
    assert errors_of(prepare, "bdd100k", root, tmp_path / "out") == [("unreadable-data", "")]


def test_a_wrong_root_says_what_is_there(tmp_path: Path):
    trees.cityscapes(tmp_path / "downloads/cs")
    assert errors_of(prepare, "cityscapes", tmp_path / "downloads", tmp_path / "out") == [("damaged-dataset", "")]
    assert errors_of(prepare, "cityscapes", tmp_path / "nowhere", tmp_path / "out") == [("missing-file", "")]


def test_a_sequence_of_camvid_without_test_pictures_is_named(tmp_path: Path):
    root = trees.camvid(tmp_path / "camvid")
    for path in (root / "rgb/test/0001TP", root / "gt/test/0001TP"):
        for file in path.iterdir():
            file.unlink()
    assert errors_of(prepare, "camvid", root, tmp_path / "out") == [("damaged-dataset", "")]


def test_an_index_that_came_with_the_data_is_not_overwritten(tmp_path: Path):
    root = trees.camvid(tmp_path / "camvid")
    (root / "train-index.txt").write_text("theirs")

    assert errors_of(prepare, "camvid", root, root) == [("existing-output", "")]
    assert (root / "train-index.txt").read_text() == "theirs"


def test_preparing_again_changes_nothing(tmp_path: Path):
    root = trees.synthia(tmp_path / "syn")
    prepare("synthia", root, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    prepare("synthia", root, tmp_path / "out")
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}


def test_paths_with_blanks_can_be_listed(tmp_path: Path):
    prepare("cityscapes", trees.cityscapes(tmp_path / "my data"), tmp_path / "out")
    assert len(as_a_testenv_reads(tmp_path / "out", "train", "CS")) == 2


def test_an_index_beside_its_data_can_be_moved_with_them(tmp_path: Path):
    prepare("idd", trees.idd(tmp_path / "here"), tmp_path / "here/prepared", classes="cityscapes")
    (tmp_path / "here").rename(tmp_path / "there")
    assert len(as_a_testenv_reads(tmp_path / "there/prepared", "train", "IDD")) == 1


def test_unknown_names_and_options_are_told_with_the_closest_known_one(tmp_path: Path):
    assert errors_of(prepare, "cityscape", tmp_path, tmp_path / "out") == [("invalid-choice", "")]
    assert errors_of(prepare, "cityscapes", tmp_path, tmp_path / "out", seed=1) == [("unknown-option", "")]
