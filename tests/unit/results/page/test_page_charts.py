"""Geometry, colours and numbers of the page's pictures, against values worked out by hand."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from ianvs.base.types import CaseResult, ScoreMatrix
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.registry import find
from ianvs.results.report.charts.heatmaps import DIVERGING, SEQUENTIAL, colours_of, heatmap_svg
from ianvs.results.report.charts.lines import curve_chart
from ianvs.results.report.charts.points import Point, point_chart
from ianvs.results.report.charts.shown_rows import shown_rows
from ianvs.results.report.charts.svg import MARKERS, Frame, Scale, log_scale, marker, nice_scale, num, path, tag
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import (
    MatrixMeans,
    PassedScores,
    RowScore,
    complete_rows,
    reported_results,
    taught_means,
)
from tests.errors import printed
from tests.unit.results.page.page_cases import learned, page_of, square
from tests.unit.results.page.reading import Element, read
from tests.unit.results.report.report_cases import METRICS, board, matrix
from tests.unit.results.report.test_line_styles import contrast


def means_of(results: list[CaseResult], seeds: int) -> dict[str, dict[RowKey, RowScore]]:
    found = PassedScores(seeds)
    rows = complete_rows(board(list(found.watch(results)), seeds=seeds))
    return found.matrices.of_exam(rows, "")


def charts(results: list[CaseResult], seeds: int = 1) -> dict[str, Element]:
    """The pictures of a page by the words that name them."""
    page = read(page_of(results, seeds))
    return {next(svg.all("title")).text: svg for svg in page.all("svg", role="img") if list(svg.all("title"))}


def test_colours_lie_between_their_stops() -> None:
    # Nine stops: 0 is the first, 1 the last, 0.5 the fifth, and 1/16 lies in the middle of the first two:
    # ff|ed -> f6, ff|f8 -> fb.8 = 252, d9|b1 -> c5.
    found = colours_of([0, 1, 0.5, 1 / 16, np.nan, -3, 7], 0, 1)
    assert [bytes(colour).hex() for colour in found] == [
        *("ffffd9", "081d58", "41b6c4", "f6fcc5", "e4e4e4"),
        *("ffffd9", "081d58"),
    ]
    assert bytes(colours_of(0.0, -2, 2, DIVERGING)).hex() == "f7f7f7"


def test_numbers_in_cells_can_be_read_on_every_colour() -> None:
    values = np.linspace(0, 1, 20 * 20).reshape(20, 20)
    for stops in (SEQUENTIAL, DIVERGING):
        svg = read(str(heatmap_svg("k", values, ("r",) * 19, ("t",) * 20, "title", (0, 1), stops)))
        cells = [one.attributes["fill"] for one in svg.all("rect") if "fill" in one.attributes]
        inks = [one.attributes["fill"] for one in svg.all("text") if "fill" in one.attributes]
        assert len(cells) == len(inks) == 400
        for cell, ink in zip(cells, inks, strict=True):
            assert contrast(cell, {"#000": "#000000", "#fff": "#ffffff"}[ink]) >= 4.5


def test_a_heatmap_shows_each_score_in_its_cell() -> None:
    values = np.array([[0.0, 0.25], [1.0, np.nan], [0.5, 0.75]])
    svg = read(str(heatmap_svg("k", values, ("first", "second"), ("a", "b"), "title", (0, 1))))
    rects = [one for one in svg.all("rect") if "fill" in one.attributes]
    assert [one.attributes["fill"] for one in rects] == [
        "#" + bytes(colour).hex() for colour in colours_of(values.ravel(), 0, 1)
    ]
    numbers = [one.text for one in svg.all("text") if "fill" in one.attributes]
    assert numbers == ["0.00", "0.25", "1.00", "–", "0.50", "0.75"]
    columns = sorted({float(one.attributes["x"]) for one in rects})
    assert columns[1] - columns[0] == 46
    framed = [(float(one.attributes["x"]), float(one.attributes["y"])) for one in svg.all("rect", class_="taught")]
    assert framed == [
        (float(rects[2].attributes["x"]), float(rects[2].attributes["y"])),
        (float(rects[5].attributes["x"]), float(rects[5].attributes["y"])),
    ]


def test_the_pixels_of_a_large_heatmap_are_its_scores() -> None:
    values = np.random.default_rng(0).random((31, 30))
    values[3, 4] = np.nan
    svg = read(str(heatmap_svg("k", values, ("r",) * 30, ("t",) * 30, "title", (0, 1))))
    (image,) = svg.all("image")
    stored = Image.open(BytesIO(base64.b64decode(image.attributes["href"].partition(",")[2])))
    assert stored.size == (30, 31)
    far = np.abs(np.asarray(stored.convert("RGB")).astype(int) - colours_of(values, 0, 1).astype(int))
    assert far.max() <= 4  # 255 steps of colour


def test_the_difference_is_to_the_best_row_and_better_is_positive() -> None:
    def one(name: str, values: list[list[float]], better: bool) -> CaseResult:
        return learned(name, matrix=replace(matrix(values), higher_is_better=better))

    best, worse = [[0, 0], [0.9, 0], [0.8, 0.9]], [[0, 0], [0.7, 0], [0.9, 0.2]]
    for better, sign in ((True, 1), (False, -1)):
        found = charts([one("a", best, better), one("b", worse, better)])
        numbers = [
            text.text for text in found["accuracy of b, less that of a"].all("text") if "fill" in text.attributes
        ]
        expected = sign * (np.array(worse) - np.array(best)).ravel()
        assert [float(number.replace("−", "-")) for number in numbers] == pytest.approx(expected, abs=1e-9)


def test_a_curve_is_the_mean_over_what_was_taught_so_far() -> None:
    values = np.array([[0.1, 0.1, 0.1], [0.9, 0.0, 0.2], [0.5, 0.7, 0.3], [0.3, 0.6, 0.9]])
    assert taught_means(values) == pytest.approx([0.9, 0.6, 0.6])
    # A test set that belongs to no round, and exams that ask only what is to come: all that was asked.
    assert taught_means(values[:, :2]) == pytest.approx([0.45, 0.6, 0.45])
    future = np.array([[np.nan, 0.2], [np.nan, 0.4], [np.nan, np.nan]])
    np.testing.assert_allclose(taught_means(future), [0.4, np.nan])
    # A score that the first test set does not have: there is none after its round, not one of rounds to come.
    partial = np.array([[np.nan, 0.1], [np.nan, 0.2], [np.nan, 0.8]])
    np.testing.assert_allclose(taught_means(partial), [np.nan, 0.8])


def test_means_and_spread_are_over_seeds() -> None:
    results = [learned("a", seed, matrix=matrix([[0, 0], [one, 0], [0.5, 1]])) for seed, one in enumerate((0.6, 0.8))]
    found = next(iter(means_of(results, 2)["accuracy"].values()))
    np.testing.assert_allclose(found.values, [[0, 0], [0.7, 0], [0.5, 1]])
    np.testing.assert_allclose(found.learned, [0.7, 0.75])
    np.testing.assert_allclose(found.spread, [np.std([0.6, 0.8], ddof=1), 0])


def test_seeds_that_only_chose_a_configuration_are_in_no_picture() -> None:
    every = [learned("a", seed, matrix=matrix([[0, 0], [seed / 10, 0], [0.5, 1]])) for seed in range(4)]
    rows = complete_rows(board(every[2:], seeds=2))
    found = MatrixMeans(2)
    for key, result in reported_results(rows, every):
        found.add(key, result)
    assert next(iter(found.of_exam(rows, "")["accuracy"].values())).values[1, 0] == pytest.approx((0.2 + 0.3) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_is_backward_transfer_with_its_sign_turned(seed: int) -> None:
    values = np.random.default_rng(seed).random((6, 5))
    names = tuple("abcde")
    means = means_of([learned("a", matrix=ScoreMatrix(values, "accuracy", names, names))], 1)
    (found,) = means["accuracy"].values()
    bwt = find("BWT")
    assert bwt is not None
    assert bwt.function is not None
    assert found.lost == pytest.approx(-float(bwt.function(ScoreMatrix(values))))  # type: ignore[arg-type]
    assert found.just_learned == pytest.approx(np.mean([values[k + 1, k] for k in range(5)]))


def test_points_lie_where_the_scale_says() -> None:
    scale = nice_scale([0.13, 0.92])
    assert (scale.low, scale.high) == pytest.approx((0, 1))
    assert [label for _, label in scale.ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [label for _, label in nice_scale([-30, 120]).ticks] == ["-50", "0", "50", "100", "150"]
    frame = Frame(Scale(0, 10, ()), Scale(0, 1, ()), left=50, top=10, width=100, height=200)
    assert frame.at(5, 0.25) == pytest.approx((100, 160))
    assert log_scale([1, 100]).part(10) == pytest.approx(0.5)
    assert nice_scale([]).ticks
    assert nice_scale([3.0, 3.0]).low < 3 < nice_scale([3.0, 3.0]).high


def test_names_of_axes_are_whole_and_costs_begin_at_0() -> None:
    name = "answered as newer by whoever was asked"
    rows = shown_rows(board([learned(one) for one in "abc"]), "")
    points = [Point(one, x, y) for one, x, y in zip(rows, (0.0, 30.0, 300.0), (0.0, 0.5, 0.9), strict=True)]
    svg = read(point_chart("k", points, "bytes", name, "t", x_up=False, y_up=False, of_costs=True))
    (drawn,) = [one for one in svg.all("text") if one.text.startswith(name)]
    assert drawn.text == f"{name} (less is better)"
    assert "transform" not in drawn.attributes  # upright, and as wide as the picture
    assert float(drawn.attributes["y"]) < Frame(Scale(0, 1, ()), Scale(0, 1, ())).top
    ticks = [one.text for one in svg.all("text", **{"text-anchor": "middle"})]
    assert not any(tick.startswith("-") for tick in ticks)
    foot = 34 + 300
    labels = [next(group.all("text")) for group in svg.all("g", class_="label")]
    assert {one.text for one in labels} == {"a", "b", "c"}
    assert all(float(one.attributes["y"]) + 3 < foot for one in labels)


def test_rounds_below_a_curve_have_names_where_there_is_room() -> None:
    def below(names: tuple[str, ...]) -> list[str]:
        one = learned("a", matrix=square(len(names), rounds=names))
        found = means_of([one], 1)
        drawn = curve_chart("k", shown_rows(board([one]), ""), next(iter(found.values())), "t")
        return [text.text for text in read(drawn).all("text") if text.attributes.get("text-anchor") == "middle"]

    assert below(("morning", "noon", "night"))[:3] == ["morning", "noon", "night"]
    assert below(tuple(f"a long name {n}" for n in range(10)))[:3] == ["1", "2", "3"]


def test_the_front_goes_by_who_is_not_beaten() -> None:
    # Cheap and poor, dear and good, and one that is beaten by the second in both.
    cases = []
    for name, accuracy, seconds in (("cheap", 0.5, 1), ("good", 0.9, 10), ("beaten", 0.8, 20)):
        one = learned(name, matrix=matrix([[0, 0], [accuracy, 0], [accuracy, accuracy]]))
        rounds = [replace(round_, train_cpu_seconds=seconds / 2, peak_memory_bytes=10**8) for round_ in one.rounds[1:]]
        cases.append(replace(one, rounds=(one.rounds[0], *rounds)))
    svg = charts(cases)["accuracy against processor seconds of training"]
    (drawn,) = svg.all("path", class_="front")
    corners = [tuple(map(float, pair)) for pair in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", drawn.attributes["d"])]
    assert len(corners) == 3
    assert corners[0][1] == corners[1][1]  # at the cheap one's score
    assert corners[1][0] == corners[2][0]  # up to the good one, at its costs
    assert corners[2][1] < corners[0][1]


def test_each_row_has_its_line_in_every_picture_and_a_box_to_switch_it() -> None:
    cases = [learned(f"method {n}", rounds=3) for n in range(14)]
    rows = shown_rows(board(cases, (("accuracy", True),)), "")
    page = read(page_of(cases))
    (table,) = page.all("table", class_="board")
    lines = {row.attributes["data-of"]: row for row in table.all("tr") if "data-of" in row.attributes}
    assert list(lines) == [one.id for one in rows]
    assert all(len(list(row.all("input", type="checkbox"))) == 1 for row in lines.values())
    figure = next(one for one in page.all("figure") if "Learning" in one.text)
    drawn = {line.attributes["data-row"]: line for line in figure.all("g", class_="series")}
    assert drawn.keys() == lines.keys()
    assert sum("off" not in line.attributes["class"] for line in drawn.values()) == 10
    looks = set()
    for one in rows:
        (line,), (dot,) = (list(drawn[one.id].all("path", class_=kind)) for kind in ("line", "dot"))
        (sample,) = lines[one.id].all("path", class_="dot")
        assert sample.attributes["class"] == dot.attributes["class"]
        looks.add((line.attributes.get("stroke-dasharray"), dot.attributes["class"], sample.attributes["d"]))
    assert len(looks) == 14


def test_every_picture_has_a_name_and_a_description() -> None:
    cases = [learned(name, seed, rounds=3) for name in ("a", "b", "c") for seed in (0, 1)]
    page = read(page_of(cases, 2))
    ids = {one.attributes["id"]: one for one in page.all() if "id" in one.attributes}
    pictures = list(page.all("svg", role="img"))
    assert len(pictures) > 10
    for svg in pictures:
        if "aria-label" not in svg.attributes:
            assert ids[svg.attributes["aria-labelledby"]].name == "title"
            assert ids[svg.attributes["aria-describedby"]].text


def test_parts_of_a_score_become_bars_as_high_as_they_are() -> None:
    def one(name: str, cat: float, dog: float) -> CaseResult:
        details = [[{}], [{"cat": 0.0, "dog": 0.0}], [{"cat": cat, "dog": dog}]]
        return replace(learned(name), details={"per_class": details})

    svg = charts([one("a", 0.5, 1.0), one("b", 0.25, 0.0)])["per_class on test 0, after the last round"]
    bars = {bar.attributes["data-tip"]: float(bar.attributes["height"]) for bar in svg.all("rect")}
    # 170 pixels are 1.
    assert bars == {"a, cat: 0.500": 85, "a, dog: 1.000": 170, "b, cat: 0.250": 42.5, "b, dog: 0.000": 0}


def test_what_became_of_a_test_set_is_a_line_from_one_score_to_the_other() -> None:
    found = charts([learned("a", matrix=matrix([[0, 0], [1.0, 0], [0.5, 1.0]])), learned("b")])
    [title] = [name for name in found if name.startswith("a: accuracy") and "at the end" in name]
    svg = found[title]
    first = next(one for one in svg.all("g") if "data-tip" in one.attributes)
    printed(f"{title}\n{first.attributes['data-tip']}")
    top, bottom = map(float, re.findall(r"[ V](-?[\d.]+)", next(first.all("path")).attributes["d"]))
    assert bottom - top == pytest.approx(110 / 2)  # 110 pixels are 1


def test_elements_are_short_and_escaped() -> None:
    element = str(tag("text", "<b>", x=1.04, y=-0.04, class_='"', stroke_width=2, title=None))
    assert element == '<text x="1" y="0" class="&#34;" stroke-width="2">&lt;b&gt;</text>'
    assert path([(0, 0), (1, 2), (np.nan, 3), (4, 5)]) == "M0 0L1 2M4 5"
    assert [num(value) for value in (1.25, 10.0, -0.01)] == ["1.2", "10", "0"]


def test_markers_stand_around_their_point_and_differ() -> None:
    drawn = {shape: marker(shape, 100, 100, 10) for shape in MARKERS}
    assert len(set(drawn.values())) == len(MARKERS)
    for shape, d in drawn.items():
        if shape != "circle":
            corners = np.array(re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", d), dtype=float)
            assert np.abs(corners - 100).max() <= 15, shape
            assert corners.mean(axis=0) == pytest.approx([100, 100], abs=4)


def test_a_paradigm_says_what_is_drawn_of_it_and_what_first() -> None:
    def titles(paradigm: str, metrics: tuple[Metric, ...] = METRICS) -> tuple[list[str], list[str]]:
        cases = [
            replace(one, metrics={**one.metrics, "latency_ms": 5.0 + n})
            for n, name in enumerate(("a", "b"))
            for one in (learned(name, paradigm=paradigm),)
        ]
        table = board(cases, (("accuracy", True),), metrics=metrics)
        page = read(page_of(cases, table=table))
        (ranking,) = page.all("section", class_="ranking")
        of = [[one.text for one in part.all("figcaption")] for part in (ranking, page)]
        return of[0], of[1]

    latency = Metric("latency_ms", "score", "What it took.", higher_is_better=False)
    first, whole = titles("jointinference", (*METRICS, latency))
    assert [title.split() for title in first] == [["accuracy", "against", "latency_ms"]]
    assert not any("Learning" in title or "Stability" in title for title in whole)
    first, whole = titles("lifelonglearning")
    assert first == ["a", "b"]  # the matrix of each row
    assert any("Learning" in title for title in whole)
    first, _ = titles("incrementallearning")
    assert first == ["accuracy"]
    # A paradigm that is not ours, and says nothing.
    assert titles("somebody's")[0] == ["accuracy"]
