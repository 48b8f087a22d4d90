"""Folders and files that tools leave among data are no classes and no samples."""

from __future__ import annotations

import pytest

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.unit.exam.data.pictures import write_picture

LEFT = [
    *(
        ".ipynb_checkpoints",
        "@eaDir",
        ".Trash-1000",
        ".thumbnails",
        "__MACOSX",
        "lost+found",
        "$RECYCLE.BIN",
        "LOST.DIR",
    ),
    *("System Volume Information", "#recycle", ".git"),
]


def tree(folder, extra: str = "") -> DatasetSpec:
    for part in ("train", "test"):
        for name in ("a", "b"):
            for i in range(2):
                write_picture(folder / part / name / f"{i}.png", seed=i)
        if extra:
            write_picture(folder / part / extra)
    sources = [(SourceSpec(folder / part, "data"),) for part in ("train", "test")]
    return DatasetSpec(train=sources[0], test=sources[1])


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_of_a_tool_is_no_class_and_its_pictures_are_no_samples(tmp_path, name, inside):
    plain = data.fingerprint(tree(tmp_path), tmp_path / "cache")
    spec = tree(tmp_path, f"a/{name}/x.png" if inside else f"{name}/x.png")
    dataset = data.load(spec, tmp_path / "cache")
    assert (dataset.classes, len(dataset.train)) == (("a", "b"), 4)
    assert data.fingerprint(spec, tmp_path / "cache") == plain
    assert any(name in note for note in dataset.notes)
    assert all(problem.warning and name in problem.message for problem in data.check_dataset(spec).problems)


def test_what_macos_and_windows_put_beside_pictures_is_left_out(tmp_path):
    spec = tree(tmp_path, "a/._0.png")
    for name in ("Thumbs.db", ".DS_Store", "desktop.ini"):
        (tmp_path / "train" / "a" / name).write_bytes(b"x")
    assert len(data.load(spec, tmp_path / "cache").train) == 4


def test_ordinary_names_stay_classes(tmp_path):
    spec = tree(tmp_path, "v1.0/x.png")
    assert data.load(spec, tmp_path / "cache").classes == ("a", "b", "v1.0")
    assert not data.check_dataset(spec).problems
