"""Pictures are the same whether one process draws them or several."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ianvs.results.report import picture_drawing
from ianvs.results.report.picture_drawing import Picture, draw_pictures


def line(height: float) -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, height])
    return figure


def only_elsewhere(here: int) -> Figure:
    if os.getpid() == here:
        raise AssertionError("it was drawn in this process")
    return line(1)


def impossible(what: str) -> Figure:
    raise ZeroDivisionError(what)


def lines(folder: Path, heights: range) -> list[Picture]:
    return [Picture(folder / f"{height}.png", (str(height),), line, (height,)) for height in heights]


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_drawing, "usable_cores", lambda: 2)


def test_many_are_drawn_by_other_processes(tmp_path: Path, cores: None) -> None:
    pictures = [Picture(tmp_path / f"{n}.png", (str(n),), only_elsewhere, (os.getpid(),)) for n in range(5)]
    assert draw_pictures(iter(pictures)) == [picture.path for picture in pictures]
    assert all(picture.is_there for picture in pictures)


def test_each_is_the_same_wherever_it_is_drawn(tmp_path: Path, cores: None) -> None:
    for picture in lines(tmp_path / "here", range(6)):
        picture.draw()
    for path in draw_pictures(lines(tmp_path / "there", range(6))):
        assert path.read_bytes() == (tmp_path / "here" / path.name).read_bytes()


def test_only_what_shows_something_else_is_drawn(tmp_path: Path, cores: None) -> None:
    paths = draw_pictures(lines(tmp_path, range(2)))
    os.utime(paths[0], (1, 1))
    draw_pictures(lines(tmp_path, range(6)))
    assert paths[0].stat().st_mtime == 1


def test_one_that_can_not_be_drawn_says_why_and_the_others_are_there(tmp_path: Path, cores: None) -> None:
    broken = Picture(tmp_path / "broken.png", ("x",), impossible, ("no such line",))
    with pytest.raises(ZeroDivisionError, match="no such line"):
        draw_pictures([broken, *lines(tmp_path, range(5))])
    assert len(list(tmp_path.glob("*.png"))) == 5
