"""Pictures of segmentation, from a job that ran."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ianvs
from ianvs.results.report.scenes import colours
from tests.jobs import write_job

# Says the commonest class of the last domain that it saw, for every pixel.
PLUGIN = """
import numpy as np


class Commonest:
    def __init__(self, plus=0):
        self.label = 0

    def train(self, train_data, valid_data=None):
        labels = train_data.y[train_data.y != 255]
        self.label = int(np.bincount(labels).argmax())

    def predict(self, data):
        return np.full(data.x.shape[:3], self.label, np.uint8)

    def save(self, path):
        path.write_text(str(self.label))

    def load(self, path):
        self.label = int(path.read_text())
"""
TESTENV = """
dataset: {name: streets, using: "CS CR", train: 3, test: 4, size: [16, 32]}
scenario: multi-domain-incremental
metrics: [mIoU, BWT, mIoU_seen, mIoU_novel, per_class_IoU]
"""


ROAD, BUILDING = (128, 64, 128), (70, 70, 70)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = write_job(
        tmp_path,
        plugin=PLUGIN,
        name="Commonest",
        hyperparameters="- plus: {values: [0, 1]}",
        testenv=TESTENV,
        sort_by="[{mIoU: descend}]\n    save_mode: selected_and_all_and_picture",
        job="seeds: [0]\nengine: inline",
    )
    results = ianvs.run(path)
    assert results.exit_code == 0
    return tmp_path / "ws" / "test" / "rank"


def test_there_is_a_sheet_of_scenes_for_each_row_and_bars_for_each_domain(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "pictures").iterdir())
    assert sum(name.endswith("-scenes.png") for name in names) == 2
    assert [name for name in names if name.startswith("per_class_IoU-")] == [
        "per_class_IoU-CR.svg",
        "per_class_IoU-CS.svg",
    ]
    for name in names:
        if name.endswith(".png"):
            with Image.open(folder / "pictures" / name) as sheet:
                assert min(sheet.size) > 200
                found = {colour for _, colour in sheet.convert("RGB").getcolors(1 << 20) or ()}
            assert found >= {ROAD, BUILDING, (0, 0, 0)}  # two classes of Cityscapes, and what is none


def test_pictures_are_not_drawn_again_while_nothing_changes(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "pictures").iterdir()}
    ianvs.run(folder.parents[2] / "benchmarkingjob.yaml")
    assert {path: path.stat().st_mtime_ns for path in (folder / "pictures").iterdir()} == before


def test_the_page_says_what_became_of_each_domain(folder: Path) -> None:
    text = (folder / "leaderboard.md").read_text()
    assert "## By test set" in text
    [line] = [line for line in text.splitlines() if line.startswith("| majority") and "plus=0" in line and "->" in line]
    assert line.count("->") == 2


def test_seen_and_novel_are_means_over_the_domains_that_have_some(folder: Path) -> None:
    for found in ianvs.load_results(folder.parents[1]):
        seen, novel = (found.matrices[name].values[-1] for name in ("mIoU_seen", "mIoU_novel"))
        assert np.isnan(seen[0])
        assert found.metrics["mIoU_seen"] == pytest.approx(seen[1])
        assert found.metrics["mIoU_novel"] == pytest.approx(np.nanmean(novel))


def test_every_class_has_a_colour_of_its_own_and_what_is_none_is_black() -> None:
    palette = colours(40)
    assert len(np.unique(palette[:40], axis=0)) == 40
    assert not palette[40:].any()
