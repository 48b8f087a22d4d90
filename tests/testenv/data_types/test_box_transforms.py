"""Transforms keep boxes on what they surround."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ianvs.testenv.data_types.detection.box_transforms import flip, resize

BOX = [4, 2, 12, 6]


def scene() -> tuple[np.ndarray, dict[str, Any]]:
    """A white box on black."""
    picture = np.zeros((16, 32, 3), dtype=np.uint8)
    picture[BOX[1] : BOX[3], BOX[0] : BOX[2]] = 255
    target = {"boxes": np.array([BOX], dtype=np.float64), "labels": np.array([1]), "area": np.array([32.0])}
    return picture, target


def extent(picture: np.ndarray) -> list[int]:
    rows, columns = np.nonzero(picture[..., 0] > 127)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_a_flipped_box_surrounds_the_flipped_thing() -> None:
    picture, target = scene()
    flipped, moved = flip(picture, target)
    assert moved["boxes"].tolist() == [extent(flipped)] == [[20, 2, 28, 6]]
    again, back = flip(flipped, moved)
    np.testing.assert_array_equal(again, picture)
    assert back["boxes"].tolist() == target["boxes"].tolist() == [BOX]


@pytest.mark.parametrize("size", [(32, 64), (8, 32), (16, 16)])
def test_a_resized_box_surrounds_the_resized_thing(size: tuple[int, int]) -> None:
    picture, target = scene()
    resized, moved = resize(picture, target, size)
    assert (resized.shape, resized.dtype) == ((*size, 3), np.uint8)
    assert moved["boxes"].tolist() == [extent(resized)]
    x1, y1, x2, y2 = moved["boxes"][0]
    assert moved["area"].tolist() == [(x2 - x1) * (y2 - y1)]
    assert (target["boxes"].tolist(), target["area"].tolist()) == ([BOX], [32.0])  # stay as they were


def test_tensors_come_back_as_tensors() -> None:
    picture, target = scene()
    pixels = torch.from_numpy(picture).permute(2, 0, 1)
    tensors = {key: torch.from_numpy(values) for key, values in target.items()}
    for change in (flip, lambda *pair: resize(*pair, (8, 20))):
        expected, moved = change(picture, target)
        found, given = change(pixels, tensors)
        np.testing.assert_array_equal(found.permute(1, 2, 0).numpy(), expected)
        assert given["boxes"].tolist() == moved["boxes"].tolist()


def test_pictures_without_boxes_are_transformed() -> None:
    picture, _ = scene()
    empty = {"boxes": np.empty((0, 4)), "labels": np.empty(0, dtype=np.int64)}
    assert flip(picture, empty)[1]["boxes"].shape == (0, 4)
    assert resize(picture, empty, (8, 8))[1]["boxes"].shape == (0, 4)
