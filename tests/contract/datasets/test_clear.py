"""The releases of CLEAR as built-in sources."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ianvs.config.spec import DatasetSpec, ScenarioSpec
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam
from ianvs.testenv.datasets.clear.clear_samples import square
from tests.contract.datasets.clear_trees import (
    CLASSES,
    lines_of,
    pixels,
    release,
    spec,
    with_lists,
    with_metadata,
    write,
)
from tests.errors import Found, errors_of, recorded


@pytest.fixture(autouse=True)
def beside_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusals(given: DatasetSpec) -> list[Found]:
    return recorded(data.check_dataset(given).problems)


def test_every_bucket_holds_its_own_pictures_only(tmp_path):
    with_metadata(tmp_path / "train", (1, 2, 3), 4, classes=("bus",))
    with_metadata(tmp_path / "test", (1, 2, 3), 4, first=100, classes=("bus",))
    found = data.load(spec(tmp_path), tmp_path / "cache")
    for part in (found.train, found.test):
        assert [int((part.domains == bucket).sum()) for bucket in ("1", "2", "3")] == [4, 4, 4]
        for bucket, name in zip(part.domains, part.ids, strict=True):
            assert name.startswith(f"clear10/{bucket}/bus/")


def test_each_sample_has_its_own_pixels_label_and_name(tmp_path):
    found = data.load(spec(release(tmp_path)), tmp_path / "cache")
    assert found.kind == "classification"
    assert found.classes == CLASSES
    assert (len(found.train), len(found.test)) == (3 * 3 * 3, 3 * 3 * 2)
    for part in (found.train, found.test):
        for x, y, name, bucket in zip(part.x, part.y, part.ids, part.domains, strict=True):
            _, of_bucket, of_class, key = str(name).split("/")
            assert (of_bucket, of_class) == (bucket, CLASSES[y])
            np.testing.assert_array_equal(x, pixels(int(bucket), int(y), int(key)))
    assert not set(found.train.ids) & set(found.test.ids)


def test_buckets_run_from_1_to_10_in_the_order_of_numbers(tmp_path):
    found = data.load(spec(release(tmp_path, range(10, 0, -1), train=1, test=1)), tmp_path / "cache")
    assert list(dict.fromkeys(found.train.domains.tolist())) == [str(k) for k in range(1, 11)]
    exam = build_exam(found, ScenarioSpec("domain-incremental"))
    assert [each.name for each in exam.rounds] == [str(k) for k in range(1, 11)]
    assert [found.train.domains[each.train].tolist() for each in exam.rounds] == [[str(k)] * 3 for k in range(1, 11)]


@pytest.mark.parametrize("layout", ["metadata", "lists"])
def test_an_unlabelled_bucket_0_is_left_out_and_a_labelled_one_is_not(tmp_path, layout):
    if layout == "metadata":
        release(tmp_path, (1, 2))
        for folder in ("train_image_only", "test"):
            file = tmp_path / folder / "labeled_metadata.json"
            file.write_text(json.dumps({"0": {}, **json.loads(file.read_text())}))
        options = {}
    else:
        with_lists(tmp_path, (1, 2), announced=range(3))
        options = {"protocol": "iid"}
    found = data.load(spec(tmp_path, **options), tmp_path / "cache")
    assert set(found.train.domains.tolist()) == {"1", "2"}

    release(tmp_path / "other", (0, 1))
    found = data.load(spec(tmp_path / "other", name="clear100"), tmp_path / "cache")
    assert set(found.train.domains.tolist()) == {"0", "1"}


def test_class_names_txt_decides_about_numbers(tmp_path):
    release(tmp_path)
    for folder in ("train_image_only", "test"):
        (tmp_path / folder / "class_names.txt").write_text("camera\nbus\nBACKGROUND\n")
    found = data.load(spec(tmp_path), tmp_path / "cache")
    assert found.classes == ("camera", "bus", "BACKGROUND")
    assert {
        found.classes[y] == str(name).split("/")[2] for y, name in zip(found.train.y, found.train.ids, strict=True)
    } == {True}


def test_the_protocol_iid_of_2021_takes_the_lists_of_its_split(tmp_path):
    with_lists(tmp_path)
    seen = set()
    for split in range(5):
        found = data.load(spec(tmp_path, protocol="iid", split=split), tmp_path / "cache")
        for part, name in ((found.train, "train"), (found.test, "test")):
            home = tmp_path / "training_folder/testset_ratio_0.3" / f"split_{split}"
            expected = [row for bucket in (1, 2) for row in lines_of(home / str(bucket) / f"{name}.txt")]
            assert part.y.tolist() == [label for _, label in expected]
            assert [f"labeled_images/{i.removeprefix('clear10/')}.jpg" for i in part.ids] == [p for p, _ in expected]
        seen.add(tuple(found.test.ids))
    assert len(seen) == 5


def test_the_protocol_iid_of_2022_cuts_every_class_of_every_bucket_70_to_30(tmp_path):
    release(tmp_path, train=10)
    cuts = {}
    for split in (0, 1):
        found = data.load(spec(tmp_path, protocol="iid", split=split), tmp_path / "cache")
        assert not set(found.train.ids) & set(found.test.ids)
        for bucket in "123":
            assert np.bincount(found.train.y[found.train.domains == bucket]).tolist() == [7, 7, 7]
            assert np.bincount(found.test.y[found.test.domains == bucket]).tolist() == [3, 3, 3]
        cuts[split] = set(found.test.ids)
    assert cuts[0] != cuts[1]
    again = data.load(spec(tmp_path, protocol="iid", split=1), tmp_path / "another cache")
    assert set(again.test.ids) == cuts[1]


@pytest.mark.parametrize("layout", [release, with_lists])
def test_the_protocol_streaming_hands_out_all_labelled_pictures_twice(tmp_path, layout):
    layout(tmp_path)
    found = data.load(spec(tmp_path, protocol="streaming"), tmp_path / "cache")
    each = 3 * 3 * 3 if layout is release else 2 * 3 * 10
    assert len(set(found.train.ids)) == each
    assert found.train.ids.tolist() == found.test.ids.tolist()


def test_buckets_can_be_chosen(tmp_path):
    release(tmp_path)
    found = data.load(spec(tmp_path, using=("3", "1")), tmp_path / "cache")
    assert set(found.test.domains.tolist()) == {"1", "3"}
    assert refusals(spec(tmp_path, using=("7",))) == [("unknown-domain", "")]


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_a_picture_of_any_mode_becomes_rgb(tmp_path, mode):
    values = np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    image = Image.fromarray(values).convert(mode)
    file = tmp_path / "picture.jpg"
    image.save(file, format="JPEG" if mode in ("L", "CMYK") else "PNG")
    assert square(str(file), 16).shape == (16, 16, 3)
    if mode == "L":
        grey = square(str(file), 20)
        assert (grey == grey[..., :1]).all()
    if mode == "RGBA":
        np.testing.assert_array_equal(square(str(file), 20), values)


@pytest.mark.parametrize("shape", [(30, 47), (47, 30), (33, 33), (16, 90), (100, 17), (7, 9), (16, 16)])
def test_a_square_is_what_torchvision_resizes_and_cuts(tmp_path, shape):
    from torchvision.transforms import CenterCrop, Compose, Resize

    values = np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8)
    write(tmp_path / "a.png", values)
    expected = np.asarray(Compose([Resize(16), CenterCrop(16)])(Image.fromarray(values)))
    np.testing.assert_array_equal(square(str(tmp_path / "a.png"), 16), expected)


def test_pictures_are_of_224_pixels_unless_said_otherwise(tmp_path):
    release(tmp_path, (1,), train=1, test=1)
    assert data.load(spec(tmp_path, image_size=None), tmp_path / "cache").test.x.shape == (3, 224, 224, 3)


def features_of_2022(folder: Path, name: str, *, named: bool) -> dict[str, torch.Tensor]:
    rng, known = np.random.default_rng(len(str(folder))), {}
    overview = json.loads((folder / "labeled_metadata.json").read_text())
    paths: dict[str, dict[str, str]] = {}
    for bucket, by_class in overview.items():
        for of_class, listing in by_class.items():
            keys = list(json.loads((folder / listing).read_text()))
            vectors = {key: torch.from_numpy(rng.normal(size=2048).astype(np.float32)) for key in keys[::-1]}
            file = f"features/{name}/{bucket}/{of_class}.pth"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            torch.save(vectors, folder / file)
            paths.setdefault(bucket, {})[of_class] = file
            known |= {f"clear10/{bucket}/{of_class}/{key}": vector for key, vector in vectors.items()}
    if named:
        (folder / "features" / name / "features.json").write_text(json.dumps(paths))
    return known


@pytest.mark.parametrize("named", [True, False])
def test_released_features_are_joined_to_their_pictures(tmp_path, named):
    release(tmp_path, (1, 2))
    known = {}
    for folder in ("train_image_only", "test"):
        known |= features_of_2022(tmp_path / folder, "moco_b0", named=named)
    found = data.load(spec(tmp_path, image_size=None, features="moco_b0"), tmp_path / "cache")
    assert found.train.x.shape == (18, 2048)
    assert found.train.x.dtype == np.float32
    for part in (found.train, found.test):
        for x, name in zip(part.x, part.ids, strict=True):
            np.testing.assert_array_equal(x, known[str(name)].numpy())


def test_features_of_2021_follow_the_order_of_all_txt(tmp_path):
    with_lists(tmp_path, (1, 2), each=10)
    known = {}
    for bucket in (1, 2):
        rows = lines_of(tmp_path / "training_folder/filelists" / str(bucket) / "all.txt")
        vectors = [torch.full((5,), 100.0 * bucket + number) for number in range(len(rows))]
        file = tmp_path / "training_folder/features/imagenet" / str(bucket) / "all.pth"
        file.parent.mkdir(parents=True)
        torch.save((vectors, [label for _, label in rows]), file)
        known |= {path: vector for (path, _), vector in zip(rows, vectors, strict=True)}
    given = spec(tmp_path, image_size=None, features="imagenet", protocol="iid", split=2)
    found = data.load(given, tmp_path / "cache")
    for x, name in zip(found.test.x, found.test.ids, strict=True):
        np.testing.assert_array_equal(x, known[f"labeled_images/{name.removeprefix('clear10/')}.jpg"].numpy())


def test_the_training_folder_that_has_the_features_is_taken(tmp_path):
    release(tmp_path, (1,))
    with_metadata(tmp_path / "train", (1,), 3)
    for folder in ("train", "test"):
        features_of_2022(tmp_path / folder, "moco_b0", named=True)
    assert data.check_dataset(spec(tmp_path, image_size=None, features="moco_b0")).problems == []


def test_features_that_are_not_there_are_named_before_anything_runs(tmp_path):
    release(tmp_path, (1,))
    given = spec(tmp_path, image_size=None, features="moco_b0")
    assert refusals(given) == [("invalid-choice", "train_image_only/features/moco_b0")]
    for folder in ("train_image_only", "test"):
        features_of_2022(tmp_path / folder, "imagenet", named=True)
    assert refusals(given) == [("invalid-choice", "train_image_only/features/moco_b0")]
    assert "imagenet" in data.check_dataset(given).problems[0].message


def test_a_file_of_features_that_runs_code_is_refused(tmp_path):
    release(tmp_path, (1,))
    for folder in ("train_image_only", "test"):
        features_of_2022(tmp_path / folder, "moco_b0", named=True)
    torch.save({"0": Path("x")}, tmp_path / "test/features/moco_b0/1/bus.pth")
    given = spec(tmp_path, image_size=None, features="moco_b0")
    assert errors_of(data.load, given, tmp_path / "cache") == [("unreadable-data", "")]


def test_a_file_of_features_of_another_form_is_refused(tmp_path):
    release(tmp_path, (1,))
    for folder in ("train_image_only", "test"):
        features_of_2022(tmp_path / folder, "moco_b0", named=True)
    torch.save(torch.zeros(2, 5), tmp_path / "test/features/moco_b0/1/bus.pth")
    given = spec(tmp_path, image_size=None, features="moco_b0")
    assert errors_of(data.load, given, tmp_path / "cache") == [("damaged-dataset", "test/features/moco_b0/1/bus.pth")]
    (tmp_path / "test/features/moco_b0/features.json").write_text("{")
    assert refusals(given) == [("damaged-dataset", "test/features/moco_b0/features.json")]


def test_a_fingerprint_changes_with_the_samples_and_not_with_their_place(tmp_path):
    one = release(tmp_path / "one", (1, 2), train=10)
    other = release(tmp_path / "two/deep", (1, 2), train=10)
    cache = tmp_path / "cache"
    base = data.fingerprint(spec(one), cache)
    assert data.fingerprint(spec(other), cache) == base
    given = [spec(one, protocol="iid"), spec(one, protocol="iid", split=1), spec(one, image_size=9)]
    given += [spec(one, protocol="streaming"), spec(one, using=("1",))]
    assert len({base, *(data.fingerprint(each, cache) for each in given)}) == 6
    assert data.load(spec(one), cache).fingerprint == base
    write(other / "train_image_only/labeled_images/1/bus/0.jpg", pixels(9, 9, 9))
    assert data.fingerprint(spec(other), cache) != base


def test_a_missing_release_names_its_archives(tmp_path):
    for name, md5 in (
        ("clear10", "bf9a85bfb78fe742c7ed32648c9a3275"),
        ("clear100", "ea85cdba9efcb3abf77eaab5554052c8"),
    ):
        given = spec(tmp_path, name=name)
        assert refusals(given) == [("missing-data", "")]
        message = data.check_dataset(given).problems[0].message
        assert f"{name}-train-image-only.zip" in message
        assert md5 in message
    assert refusals(DatasetSpec(name="clear10")) == [("missing-key", "")]


def test_a_missing_test_set_names_its_archive_and_the_way_without(tmp_path):
    with_metadata(tmp_path / "train", (1,), 10)
    given = spec(tmp_path)
    assert refusals(given) == [("damaged-dataset", "")]
    message = data.check_dataset(given).problems[0].message
    for name in ("clear10-test.zip", "bf9a85bfb78fe742c7ed32648c9a3275", "protocol: iid"):
        assert name in message
    assert data.check_dataset(spec(tmp_path, protocol="iid")).problems == []


@pytest.mark.parametrize("root", ["above", "above/wrapper/train_image_only"])
def test_a_root_at_the_wrong_level_points_to_the_right_one(tmp_path, root):
    release(tmp_path / "above/wrapper", (1,))
    given = spec(tmp_path / root)
    assert refusals(given) == [("missing-data", "")]
    assert "above/wrapper." in data.check_dataset(given).problems[0].message


def test_a_listed_picture_that_is_not_there_is_named_with_its_list(tmp_path):
    release(tmp_path / "new")
    (tmp_path / "new/test/labeled_images/2/camera/101.jpg").unlink()
    assert refusals(spec(tmp_path / "new")) == [("damaged-dataset", "new/test/labeled_metadata/2/camera.json")]
    with_lists(tmp_path / "old")
    (tmp_path / "old/labeled_images/1/bus/0.jpg").unlink()
    assert refusals(spec(tmp_path / "old", protocol="streaming")) == [
        ("damaged-dataset", "old/training_folder/filelists/1/all.txt:11:1")
    ]


def test_hundreds_of_missing_pictures_make_a_short_message(tmp_path):
    release(tmp_path, train=20)
    for file in (tmp_path / "train_image_only/labeled_images").rglob("*.jpg"):
        file.unlink()
    assert len(data.check_dataset(spec(tmp_path)).problems) <= 5


def test_an_unknown_class_names_the_closest(tmp_path):
    release(tmp_path)
    for folder in ("train_image_only", "test"):
        (tmp_path / folder / "class_names.txt").write_text("BACKGROUND\nbuss\ncamera\n")
    assert (
        refusals(spec(tmp_path)) == [("damaged-dataset", "train_image_only/labeled_metadata.json")] * 3
    )  # once for each bucket


def test_two_releases_are_not_mixed(tmp_path):
    release(tmp_path)
    (tmp_path / "test/class_names.txt").write_text("BACKGROUND\nbus\nlaptop\n")
    assert refusals(spec(tmp_path)) == [("damaged-dataset", "test/class_names.txt")]


@pytest.mark.parametrize("line", ["labeled_images/1/bus/0.jpg 3", "labeled_images/1/bus/0.jpg", "a b c"])
def test_a_line_that_is_no_path_with_a_label_is_named(tmp_path, line):
    with_lists(tmp_path)
    file = tmp_path / "training_folder/filelists/2/all.txt"
    file.write_text(f"{line}\n{file.read_text()}")
    assert refusals(spec(tmp_path, protocol="streaming")) == [
        ("damaged-dataset", "training_folder/filelists/2/all.txt:1:1")
    ]


def test_a_picture_listed_twice_is_refused(tmp_path):
    with_lists(tmp_path)
    file = tmp_path / "training_folder/filelists/1/all.txt"
    file.write_text(file.read_text() + "labeled_images/1/bus/0.jpg 1\n")
    assert refusals(spec(tmp_path, protocol="streaming")) == [
        ("damaged-dataset", "training_folder/filelists/1/all.txt:31:1")
    ]


def test_broken_metadata_is_named(tmp_path):
    release(tmp_path)
    (tmp_path / "test/labeled_metadata/3/bus.json").write_text("{")
    assert refusals(spec(tmp_path)) == [("damaged-dataset", "test/labeled_metadata/3/bus.json")]


def test_all_corrupt_pictures_are_named_at_once_and_leave_no_cache(tmp_path):
    release(tmp_path)
    for number in (0, 2):
        (tmp_path / f"train_image_only/labeled_images/1/bus/{number}.jpg").write_bytes(b"\xff\xd8 not a picture")
    assert errors_of(data.load, spec(tmp_path), tmp_path / "cache") == [
        ("unreadable-data", f"train_image_only/labeled_images/1/bus/{number}.jpg") for number in (0, 2)
    ]
    release(tmp_path / "whole")
    for number in (0, 2):
        write(tmp_path / f"train_image_only/labeled_images/1/bus/{number}.jpg", pixels(1, 1, number))
    repaired = data.load(spec(tmp_path), tmp_path / "cache")
    np.testing.assert_array_equal(repaired.train.x, data.load(spec(tmp_path / "whole"), tmp_path / "cache").train.x)


OPTIONS = {
    "an unknown protocol": ({"protocol": "held-out"}, "invalid-option"),
    "a sixth split": ({"split": 5, "protocol": "iid"}, "invalid-option"),
    "a split of another protocol": ({"split": 1}, "invalid-option"),
    "a slip in a name": ({"protocl": "iid"}, "unknown-option"),
    "unknown features": ({"features": "moco_b1"}, "invalid-option"),
    "a size of features": ({"features": "moco_b0"}, "conflicting-keys"),
}


@pytest.mark.parametrize(("options", "code"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_can_not_be_is_refused(tmp_path, options, code):
    release(tmp_path)
    missing = [("invalid-choice", "train_image_only/features/moco_b0")] if code == "conflicting-keys" else []
    assert errors_of(data.load, spec(tmp_path, **options), tmp_path / "cache") == [(code, ""), *missing]


def test_the_release_of_2021_has_no_test_set_to_hold_out(tmp_path):
    with_lists(tmp_path)
    assert refusals(spec(tmp_path)) == [("invalid-choice", "")]


def test_pictures_that_are_no_squares_are_refused(tmp_path):
    release(tmp_path)
    assert refusals(DatasetSpec(name="clear10", root=tmp_path, image_size=(8, 9))) == [("invalid-value", "")]
