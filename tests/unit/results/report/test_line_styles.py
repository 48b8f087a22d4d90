"""No two rows look alike, and every line can be seen."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import ianvs.results.page
from ianvs.results.report.charts.lines import stream_chart
from ianvs.results.report.charts.shown_rows import series, shown_rows
from ianvs.results.report.charts.svg import BOUND, DARK, LIGHT, line_styles
from ianvs.results.report.document import Picture
from ianvs.results.report.pictures import standalone
from ianvs.results.report.row_scores import StreamLine
from tests.unit.results.report.report_cases import board, result

CSS = (Path(ianvs.results.page.__file__).parent / "assets" / "page.css").read_text()


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2), written down a second time."""
    shares = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def themes() -> list[dict[str, str]]:
    """The colours of the light and of the dark page, by the names that the style sheet gives them."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.S)
    return [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", block)) for block in blocks]


def test_black_on_white_is_21_to_1() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("count", [60, 336, 700])
@pytest.mark.parametrize("methods", [1, 5, 700])
def test_no_two_rows_have_the_same_line(count: int, methods: int) -> None:
    styles = line_styles((f"m{n % methods}", n % 5 == 4) for n in range(count))
    assert len({(one.colour, one.dash, one.marker) for one in styles}) == count


def test_a_method_has_one_colour_and_its_lines_differ_in_marker_and_dash() -> None:
    styles = line_styles((f"m{n % 3}", False) for n in range(12))
    assert len({one.colour for one in styles}) == 3
    for method in range(3):
        lines = styles[method::3]
        assert len({one.colour for one in lines}) == 1
        assert len({one.marker for one in lines}) == len({one.dash for one in lines}) == 4


@pytest.mark.parametrize(("counts", "colours"), [((7, 1), 8), ((4, 4, 4), 3), ((14, 2), 8), ((20,), 8)])
def test_rows_share_a_colour_if_they_are_more_than_the_colours_and_few_of_an_algorithm(
    counts: tuple[int, ...], colours: int
) -> None:
    cases = [
        result(f"method{m}", hyperparameters={"capacity": n}) for m, count in enumerate(counts) for n in range(count)
    ]
    styles = [row.style for row in shown_rows(board(cases), "")]
    assert len({style.colour for style in styles}) == colours
    assert len({(style.colour, style.marker) for style in styles}) == len(styles)


def test_the_first_eight_methods_differ_in_colour_and_in_marker() -> None:
    assert len(LIGHT) == len(DARK) == 8
    for one, other in combinations(line_styles((str(n), False) for n in range(8)), 2):
        assert one.colour != other.colour
        assert one.marker != other.marker


def test_references_are_grey_dashed_and_told_apart_too() -> None:
    first, second, third = line_styles([("a", True), ("b", False), ("c", True)])
    assert first.colour is third.colour is None
    assert first.dash
    assert second.colour is not None
    assert not second.dash
    assert first != third


# How the colour-blind see linear red, green and blue (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "all colours": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def oklab(linear: np.ndarray) -> np.ndarray:
    """(..., 3) lightness and hue of linear sRGB, in which distances are as they are seen (Ottosson 2020)."""
    to_cones = [[0.4122215, 0.5363325, 0.0514460], [0.2119035, 0.6806995, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
    to_lab = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
    return np.cbrt(np.clip(linear, 0, None) @ np.transpose(to_cones)) @ np.transpose(to_lab)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("sight", SIGHTS)
def test_no_two_colours_look_alike_to_anybody(colours: tuple[str, ...], sight: str) -> None:
    shares = np.array([[int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)] for colour in colours])
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = oklab(np.clip(linear @ np.transpose(SIGHTS[sight]), 0, 1))
    # .02 can just be told apart side by side; the hues of Okabe and Ito come as near as .06.
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.065


def test_lines_stand_out_from_the_page_and_texts_can_be_read() -> None:
    light, dark = themes()
    assert all(contrast(colour, light["paper"]) >= 3 for colour in (*LIGHT, BOUND[0]))
    assert all(contrast(colour, dark["paper"]) >= 3 for colour in (*DARK, BOUND[1]))
    for theme in (light, dark):
        for ink in ("ink", "soft", "accent", "bad"):
            for ground in ("paper", "raised"):
                assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
        assert contrast(theme["ink"], theme["mark"]) >= 4.5
        assert contrast(theme["ink"], theme["best"]) >= 4.5
        assert contrast(theme["paper"], theme["accent"]) >= 4.5  # of a pressed button


def test_the_curves_of_a_stream_are_as_different_and_as_many() -> None:
    cases = [result(f"method {n}", accuracy=n / 100) for n in range(30)]
    rows = shown_rows(board(cases), "")
    at = np.arange(1, 4)
    svg = stream_chart(
        "k", rows, {one.key: StreamLine(at, at * 0.1, at * 0.0) for one in rows}, at, "accuracy", "title"
    )
    drawn = re.findall(
        r'<path d="\S+ [^"]+" class="line (c\w)"(?: stroke-dasharray="([^"]+)")?/><path d="([^"]+)"', svg
    )
    assert len(drawn) == 30
    # The mark at a place common to all lines tells its shape.
    assert len({(colour, dash, mark) for colour, dash, mark in drawn}) == 30
    standing_alone = standalone(Picture("k", "title", svg, legend=series(rows)))
    assert ".off" not in standing_alone  # in the page some are hidden at first
    assert all(f">method {n}<" in standing_alone for n in range(30))
