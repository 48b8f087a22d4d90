"""What stands for a class in a mask: positions in the class list, or what `mask_values` names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.config import strict_yaml
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.normalize_user_data import store_returned
from tests.errors import errors_of, recorded
from tests.unit.exam.data.pictures import write_index, write_picture

HALVES = np.repeat([[0, 255]], 4, axis=0).repeat(4, axis=1).astype(np.uint8)
COLOURS = {"road": (128, 64, 128), "car": (0, 0, 142), "sky": (70, 130, 180)}
INDICES = np.arange(64).reshape(8, 8) % 3


def scenes(folder: Path, mask: np.ndarray, suffix: str = "png", mode: str = "", **settings: object) -> DatasetSpec:
    """Two images with this mask in each part."""
    lines = []
    for i in range(2):
        write_picture(folder / f"{i}.png", np.full((*mask.shape[:2], 3), i, np.uint8))
        if suffix == "npy":
            np.save(folder / f"{i}_mask.npy", mask)
        else:
            write_picture(folder / f"{i}_mask.{suffix}", mask, mode=mode or None)
        lines.append(f"{i}.png {i}_mask.{suffix}")
    source = (write_index(folder, lines),)
    return DatasetSpec(train=source, test=source, **settings)  # type: ignore[arg-type]


def doubts(spec: DatasetSpec, cache: Path) -> dict[str, str]:
    dataset = data.load(spec, cache)
    data.find_data_warnings(dataset, cache)
    return data.data_warnings_of(dataset.fingerprint, cache) or {}


@pytest.mark.parametrize("classes", [None, ("background", "lesion")])
def test_a_foreground_of_255_is_told_of_with_a_remedy_that_works(tmp_path, classes):
    said = doubts(scenes(tmp_path, HALVES, classes=classes), tmp_path / "cache")["ignored classes"]
    assert "mask_values: {background: 0, " in said
    spec = scenes(tmp_path, HALVES, classes=classes, mask_values={"background": 0, "lesion": 255})
    dataset = data.load(spec, tmp_path / "cache")
    assert dataset.classes == ("background", "lesion")
    np.testing.assert_array_equal(dataset.train.y[0], HALVES // 255)
    assert "ignored classes" not in doubts(spec, tmp_path / "cache")


def test_the_remedy_names_every_number_in_the_masks(tmp_path):
    mask, classes = np.array([[1, 1, 2, 2, 255, 255, 255, 255]], np.uint8), ("skin", "benign", "malign")
    message = doubts(scenes(tmp_path, mask, classes=classes), tmp_path / "cache")["ignored classes"]
    assert "mask_values: {benign: 1, malign: 2, skin: 255}" in message
    spec = scenes(tmp_path, mask, classes=classes, mask_values={"benign": 1, "malign": 2, "skin": 255})
    assert data.load(spec, tmp_path / "cache").train.y[0].tolist() == [[1, 1, 2, 2, 0, 0, 0, 0]]


def test_masks_that_number_classes_from_1_are_told_of_with_a_remedy_that_works(tmp_path):
    mask, classes = np.array([[1, 1, 1, 1, 2, 2, 2, 3]], np.uint8), ("a", "b", "c")
    message = doubts(scenes(tmp_path, mask, classes=classes), tmp_path / "cache")["ignored classes"]
    assert "mask_values: {a: 1, b: 2, c: 3}" in message
    spec = scenes(tmp_path, mask, classes=classes, mask_values={"a": 1, "b": 2, "c": 3})
    assert data.load(spec, tmp_path / "cache").train.y[0].tolist() == (mask - 1).tolist()
    assert "ignored classes" not in doubts(spec, tmp_path / "cache")


def test_a_border_of_255_beside_two_classes_stays_ignored_and_nothing_is_said(tmp_path):
    mask = np.array([[0, 0, 0, 0, 1, 1, 1, 255]], np.uint8)
    spec = scenes(tmp_path, mask, classes=("a", "b"))
    assert "ignored classes" not in doubts(spec, tmp_path / "cache")
    assert data.load(spec, tmp_path / "cache").train.y[0].tolist() == mask.tolist()


def test_numbers_with_gaps_are_told_of(tmp_path):
    assert "gaps in masks" in doubts(scenes(tmp_path, HALVES // 2), tmp_path / "cache")  # 0 and 127
    assert "gaps in masks" not in doubts(scenes(tmp_path, HALVES // 255), tmp_path / "cache")


@pytest.mark.parametrize("suffix", ["png", "npy"])
@pytest.mark.parametrize("storage", ["decoded", "encoded"])
def test_numbers_stand_for_the_classes_that_are_named(tmp_path, storage, suffix):
    mask = np.array([[0, 50, 100, 255]], np.uint8)
    named = {"a": 0, "c": 50, "ignore": 100}
    spec = scenes(tmp_path, mask, suffix, storage=storage, classes=("a", "b", "c"), mask_values=named)
    assert np.asarray(data.load(spec, tmp_path / "cache").train.y)[0].tolist() == [[0, 2, 255, 255]]


@pytest.mark.parametrize("storage", ["decoded", "encoded"])
def test_colours_stand_for_the_classes_that_are_named(tmp_path, storage):
    mask = np.array([*COLOURS.values()], np.uint8)[INDICES]
    spec = scenes(tmp_path, mask, storage=storage, mask_values=COLOURS)
    dataset = data.load(spec, tmp_path / "cache")
    assert dataset.classes == tuple(COLOURS)
    np.testing.assert_array_equal(np.asarray(dataset.train.y)[0], INDICES)


def test_colours_that_nobody_named_are_refused_and_listed(tmp_path):
    mask = np.array([*COLOURS.values()], np.uint8)[INDICES]
    assert errors_of(data.load, scenes(tmp_path, mask, classes=("a", "b", "c")), tmp_path / "cache") == [
        ("ambiguous-data", "0_mask.png")
    ]
    two = {name: COLOURS[name] for name in ("road", "car")}
    assert errors_of(data.load, scenes(tmp_path, mask, mask_values=two), tmp_path / "cache") == [
        ("unknown-class", "0_mask.png")
    ]


def test_colours_of_a_palette_can_be_named_and_else_its_indices_count(tmp_path):
    image = Image.fromarray(INDICES.astype(np.uint8), mode="P")
    image.putpalette([value for colour in COLOURS.values() for value in colour])
    spec = scenes(tmp_path, INDICES.astype(np.uint8), mask_values=dict(reversed(COLOURS.items())))
    plain = scenes(tmp_path, INDICES.astype(np.uint8), classes=tuple(COLOURS))
    for i in range(2):
        image.save(tmp_path / f"{i}_mask.png")
    np.testing.assert_array_equal(data.load(spec, tmp_path / "cache").train.y[0], 2 - INDICES)
    np.testing.assert_array_equal(data.load(plain, tmp_path / "cache").train.y[0], INDICES)


def test_masks_that_were_compressed_lossily_are_refused(tmp_path):
    for suffix in ("jpg", "webp"):
        spec = scenes(tmp_path, HALVES, suffix, mode="L" if suffix == "jpg" else "RGB")
        assert errors_of(data.load, spec, tmp_path / "cache") == [("damaged-dataset", f"0_mask.{suffix}")]


def test_a_tiff_with_jpeg_compression_is_refused_and_another_is_not(tmp_path):
    spec = scenes(tmp_path, INDICES.astype(np.uint8), "tif")
    np.testing.assert_array_equal(data.load(spec, tmp_path / "cache").train.y[0], INDICES)
    for i in range(2):
        Image.fromarray(INDICES.astype(np.uint8)).save(tmp_path / f"{i}_mask.tif", compression="jpeg")
    assert errors_of(data.load, spec, tmp_path / "cache") == [("damaged-dataset", "0_mask.tif")]


def test_a_name_that_is_no_class_is_refused(tmp_path):
    spec = scenes(tmp_path, HALVES, classes=("background", "lesion"), mask_values={"background": 0, "lesoin": 255})
    assert recorded(data.check_dataset(spec).problems) == [("unknown-class", "")]


def test_other_values_are_another_dataset(tmp_path):
    named = [{"a": 0, "b": 255}, {"b": 0, "a": 255}]
    specs = [scenes(tmp_path, HALVES, classes=("a", "b"), mask_values=one) for one in named]
    assert len({data.fingerprint(spec, tmp_path / "cache") for spec in specs}) == 2
    first, second = (data.load(spec, tmp_path / "cache").train.y for spec in specs)
    np.testing.assert_array_equal(first, 1 - second)


@pytest.mark.parametrize("colour", [False, True])
def test_arrays_of_masks_are_read_alike(tmp_path, colour):
    y = np.array([*COLOURS.values()], np.uint8)[INDICES] if colour else (INDICES * 100).astype(np.uint8)
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 8, 8, 3), np.uint8), y=np.stack([y, y]))
    source = (SourceSpec(tmp_path / "a.npz", "data"),)
    named = COLOURS if colour else {"road": 0, "car": 100, "sky": 200}
    spec = DatasetSpec(train=source, test=source, mask_values=named)  # type: ignore[arg-type]
    np.testing.assert_array_equal(data.load(spec, tmp_path / "cache").train.y[0], INDICES)


def test_a_function_may_return_colour_masks_as_pil_images(tmp_path):
    mask = Image.fromarray(np.array([*COLOURS.values()], np.uint8)[INDICES])
    part = ([np.zeros((8, 8, 3), np.uint8)] * 2, [mask, mask])
    store_returned((part, part), tmp_path, "f()", DatasetSpec())
    assert np.load(tmp_path / "train" / "y.npy").shape == (2, 8, 8, 3)


@pytest.mark.parametrize("mask", [np.zeros((8, 8), np.float32), np.zeros((4, 8, 8), np.uint8)])
@pytest.mark.parametrize("settings", [{}, {"image_size": (8, 8)}])
def test_fractions_and_a_channel_for_each_class_are_refused_as_such(tmp_path, mask, settings):
    spec = scenes(tmp_path, mask, "npy", **settings)
    for i in range(2):
        write_picture(tmp_path / f"{i}.png", np.full((8, 8, 3), i, np.uint8))
    assert [code for code, _ in errors_of(data.load, spec, tmp_path / "cache")] == ["invalid-array"]


@pytest.mark.parametrize("name", ["lesion: old", "true", "1st", "#x"])
def test_a_class_with_a_name_that_yaml_reads_otherwise_is_quoted_in_the_remedy(tmp_path, name):
    said = doubts(scenes(tmp_path, HALVES, classes=("background", name)), tmp_path / "cache")["ignored classes"]
    key = said.partition("`mask_values: ")[2].partition("`")[0]
    assert strict_yaml.parse(key, tmp_path / "testenv.yaml").data == {"background": 0, name: 255}
