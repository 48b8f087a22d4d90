"""Pictures of segmentation in the page of a job that ran, and the commands that write and open it."""

from __future__ import annotations

import base64
import re
import time
import webbrowser
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import ianvs
from ianvs.cli import main
from ianvs.results.page import write_page
from ianvs.results.page.write_page import Scenes
from ianvs.results.report.charts.shown_rows import shown_rows
from ianvs.results.report.scenes import SceneSheet, colours
from ianvs.store import CaseStore
from ianvs.testenv.datasets.downloads.cityscapes import LABELS
from tests.contract.results.report.test_scenes import PLUGIN, TESTENV
from tests.errors import printed
from tests.jobs import write_job
from tests.unit.results.page.page_cases import learned
from tests.unit.results.page.reading import Element, read
from tests.unit.results.report.report_cases import board


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_job(
        tmp_path_factory.mktemp("streets"),
        plugin=PLUGIN,
        name="Commonest",
        hyperparameters="",
        testenv=TESTENV,
        sort_by="[{mIoU: descend}]\n    save_mode: selected_only",
        job="seeds: [0, 1]\nengine: inline",
    )
    assert ianvs.run(path).exit_code == 0
    return path


def page_of(job: Path) -> Path:
    return job.parent / "ws" / "test" / "rank" / "report.html"


def picture(image: Element) -> Image.Image:
    kind, _, data = image.attributes["src"].partition(",")
    found = Image.open(BytesIO(base64.b64decode(data)))
    assert kind == f"data:{Image.MIME[found.format]};base64"
    return found


def test_scenes_show_what_was_seen_what_is_true_and_what_was_predicted(job: Path) -> None:
    page = read(page_of(job).read_text())
    (section,) = page.all("section", id="scenes")
    heads = [caption.text for caption in section.all("figcaption")]
    assert heads == ["input", "truth", "after CS", "after CR"] * 2
    images = [picture(image) for image in section.all("img")]
    assert all(image.size == (32, 16) for image in images)
    assert all(image.attributes["alt"] for image in section.all("img"))
    # What is seen is a photo, what is said has exact colours.
    assert [image.format for image in images] == ["JPEG", "PNG", "PNG", "PNG"] * 2
    palette = {tuple(colour) for colour in [*colours(len(list(section.all("li"))) + 40), *LABELS.palette.values()]}
    truth = np.asarray(images[1].convert("RGB")).reshape(-1, 3)
    assert {tuple(colour) for colour in truth} <= palette
    predicted = np.asarray(images[2].convert("RGB")).reshape(-1, 3)
    assert len({tuple(colour) for colour in predicted}) == 1  # this plugin says one class for every pixel
    shown = {one.attributes["fill"] for one in section.all("rect")}
    assert "#" + bytes(predicted[0]).hex() in shown


def test_scenes_stand_in_the_order_of_the_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_page, "scene_sheet", lambda *_: SceneSheet((), ()))
    cases = [learned(name) for name in "abc"]
    rows = shown_rows(board(cases, (("accuracy", True),)), "")
    scenes = Scenes(rows)
    for case in sorted(cases, key=lambda case: case.metrics["accuracy"] or 0):  # the last first
        scenes.add((case.case.row, case.case.algorithm), case)
    assert [sheet["label"] for sheet in scenes.ranked()] == [one.label for one in rows]


def test_bars_by_class_are_in_the_page(job: Path) -> None:
    titles = [title.text for title in read(page_of(job).read_text()).all("title")]
    [bars] = [title for title in titles if title.startswith("per_class_IoU on CS")]
    printed(bars)


def test_the_smallest_save_mode_writes_the_page_and_it_stays_as_it_is(job: Path) -> None:
    folder = page_of(job).parent
    names = {path.name for path in folder.iterdir()}
    assert "report.html" in names
    assert "all_rank.csv" not in names
    assert "pictures" not in names
    before = page_of(job).stat().st_mtime_ns
    ianvs.api.report(job)
    assert page_of(job).stat().st_mtime_ns == before


def test_the_command_writes_the_page_alone_and_opens_it(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda uri: bool(opened.append(uri)) or True)
    page_of(job).unlink()
    assert main(["report", "-f", str(job), "--html", "--open"]) == 0
    assert opened == [page_of(job).as_uri()]
    assert page_of(job).is_file()
    shown = capsys.readouterr().out
    assert "report.html" in shown
    assert "Rank" not in shown


def test_a_watched_page_tells_what_runs_until_nothing_does(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ianvs.plan(job)
    case = next(iter(plan)).case.id
    said = {
        "pid": 1,
        "since": 0.0,
        "round": 2,
        "rounds": 3,
        "doing": "training",
        "fraction": 0.4,
        "numbers": {"loss": 0.5},
    }
    pages: list[str] = []

    def pause(_: float) -> None:
        pages.append(page_of(job).read_text())

    monkeypatch.setattr(CaseStore, "running", lambda _, id_: said if id_ == case and not pages else None)
    monkeypatch.setattr("ianvs.cli.stored_commands.time", SimpleNamespace(sleep=pause, time=time.time))
    assert main(["report", "-f", str(job), "--watch"]) == 0
    (page,) = pages
    assert re.search(r"round 2 of 3\b.*40%.*loss 0\.5", page, re.DOTALL)
    assert 'http-equiv="refresh"' in page
    assert 'http-equiv="refresh"' not in page_of(job).read_text()
    assert "report.html" in capsys.readouterr().out


def test_without_a_browser_the_command_says_so(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda uri: False)
    assert main(["report", "-f", str(job), "--open"]) == 0
    told = capsys.readouterr()
    assert "no browser" in told.err
    assert "Rank" in told.out
