"""Label pictures without a class list: classes are the numbers that they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.exam.data import load_listing
from tests.errors import errors_of, printed, recorded
from tests.unit.exam.data.pictures import write_index, write_picture


def scenes(folder: Path, **parts: np.ndarray) -> DatasetSpec:
    """train, test: (N, H, W) label pictures."""
    sources = {}
    for part, values in parts.items():
        lines = []
        for i, labels in enumerate(values):
            write_picture(folder / f"{part}/{i}.png", np.full((*labels.shape, 3), i, dtype=np.uint8))
            write_picture(folder / f"{part}/{i}_TrainIds.png", labels)
            lines.append(f"{part}/{i}.png {part}/{i}_TrainIds.png")
        sources[part] = (write_index(folder, lines, f"{part}.txt"),)
    return DatasetSpec(**sources)  # type: ignore[arg-type]


def pictures(*ids: int) -> np.ndarray:
    return np.random.default_rng(0).choice(np.array(ids, dtype=np.uint8), (3, 8, 9))


def test_classes_are_the_numbers_up_to_the_highest_of_both_parts_and_255_is_none(tmp_path):
    train, test = pictures(0, 2, 255), pictures(1, 4)
    spec = scenes(tmp_path, train=train, test=test)
    dataset = data.load(spec, tmp_path / "cache")
    assert dataset.classes == ("0", "1", "2", "3", "4")
    assert (dataset.kind, dataset.ignore_index) == ("segmentation", 255)
    np.testing.assert_array_equal(dataset.train.y, train)
    np.testing.assert_array_equal(dataset.test.y, test)


def test_a_warning_and_a_note_say_that_names_are_numbers_and_what_to_do(tmp_path):
    spec = scenes(tmp_path, train=pictures(0, 3), test=pictures(0, 1))
    (warning,) = data.check_dataset(spec).problems
    (note,) = data.load(spec, tmp_path / "cache").notes
    assert recorded([warning]) == [("doubtful-data", "")]
    printed(note)


def test_named_classes_are_told_of_by_nothing(tmp_path):
    spec = scenes(tmp_path, train=pictures(0, 1), test=pictures(0, 1))
    named = DatasetSpec(train=spec.train, test=spec.test, classes=("road", "car"))
    assert data.check_dataset(named).problems == []
    assert data.load(named, tmp_path / "cache").notes == ()


def test_classes_are_looked_for_once_while_the_files_stay_the_same(tmp_path, monkeypatch):
    spec = scenes(tmp_path, train=pictures(0, 1), test=pictures(0, 1))
    data.load(spec, tmp_path / "cache")
    monkeypatch.setattr(load_listing, "numbered_classes", lambda *_: pytest.fail("looked again"))
    assert data.load(spec, tmp_path / "cache").classes == ("0", "1")


def test_another_picture_is_another_answer(tmp_path):
    spec = scenes(tmp_path, train=pictures(0, 1), test=pictures(0, 1))
    data.load(spec, tmp_path / "cache")
    write_picture(tmp_path / "test/0_TrainIds.png", np.full((8, 9), 7, dtype=np.uint8))
    assert len(data.load(spec, tmp_path / "cache").classes) == 8


def test_pictures_without_any_class_are_refused(tmp_path):
    spec = scenes(tmp_path, train=pictures(255), test=pictures(255))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("invalid-array", "")]


def test_arrays_of_label_pictures_are_looked_through_too(tmp_path):
    from ianvs.config.spec import SourceSpec

    x, y = np.zeros((2, 4, 4, 3), dtype=np.uint8), np.array([[[0, 1], [3, 255]]] * 2).repeat(2, 1).repeat(2, 2)
    np.savez(tmp_path / "a.npz", x=x, y=y.astype(np.uint8))
    source = (SourceSpec(tmp_path / "a.npz", "data"),)
    dataset = data.load(DatasetSpec(train=source, test=source), tmp_path / "cache")
    assert dataset.classes == ("0", "1", "2", "3")
    np.testing.assert_array_equal(dataset.train.y, y)
