"""The images of a report as files: the charts of report.html as SVG, and images with segmentation masks as PNG."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from markupsafe import Markup

from ianvs.base.types import CaseResult
from ianvs.results.report.charts.critical_difference import critical_difference
from ianvs.results.report.charts.exam_charts import ExamCharts, class_bars, exam_charts, file_part
from ianvs.results.report.charts.heatmaps import SEQUENTIAL, colour_bar, heatmap_svg, limits
from ianvs.results.report.charts.lines import stream_chart
from ianvs.results.report.charts.parallel import parallel_chart
from ianvs.results.report.charts.shown_rows import ShownRow, series, shown_rows
from ianvs.results.report.charts.svg import BOUND, LIGHT, PAGE, chart_style, num, tag, text
from ianvs.results.report.document import Picture
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.row_scores import (
    ClassScores,
    MatrixMeans,
    RowScore,
    StreamCurves,
    complete_rows,
    reported_results,
)
from ianvs.results.report.scenes import SceneSheet, scene_sheet, sheet_png
from ianvs.results.report.training_curves import TrainingCurves
from ianvs.results.report.values import method_name, slug
from ianvs.store.files import write_atomic

_PANELS_ACROSS = 3
_MARGIN, _GAP, _LINE = 14, 10, 17  # pixels
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_pictures(leaderboard: Leaderboard, results: Iterable[CaseResult], folder: Path) -> list[Path]:
    """Write the images and return their paths. A file is written only if it changes."""
    paths = []
    for picture in pictures(leaderboard, results):
        paths.append(folder / picture.file)
        drawing = picture.drawing
        write_atomic(paths[-1], standalone(picture).encode() if isinstance(drawing, Markup) else drawing)
    return paths


def pictures(leaderboard: Leaderboard, results: Iterable[CaseResult]) -> Iterator[Picture]:
    """Yield the charts of report.html, for all complete rows. results: iterated once."""
    rows, names = complete_rows(leaderboard), leaderboard.row_names
    means, parts, streams = MatrixMeans(leaderboard.seeds), ClassScores(), StreamCurves(rows)
    training = TrainingCurves()
    sheets = []
    for key, result in reported_results(rows, results):
        for collector in (means, parts, streams, training):
            collector.add(key, result)
        if result.case.seed == rows[key].seeds[0] and (sheet := scene_sheet(result)):
            sheets.append(_scenes(rows[key], names[key], sheet))
    by_part = parts.means(rows)
    heatmaps: list[Picture] = []
    bars: list[Picture] = []
    for exam in dict.fromkeys(row.testenv for row in leaderboard.rows):
        shown = shown_rows(leaderboard, exam)
        scores = means.of_exam(rows, exam)
        charts = exam_charts("e", leaderboard, exam, shown, scores, training)
        yield from _named(exam, (*_stream(exam, shown, streams), *charts.first, *charts.wide, *charts.narrow))
        yield from _named(exam, _test_set_panels(exam, next(iter(scores), ""), charts))
        heatmaps += [_heatmap(r, by_row[r.key]) for r in shown for by_row in scores.values() if r.key in by_row]
        bars += _named(exam, class_bars("b", exam, shown, by_part))
    yield from (*heatmaps, *sheets, *bars)
    if ranks := critical_difference("r", leaderboard.over_exams):
        yield Picture("mean-ranks", "Mean rank over exams", ranks, "A bar joins methods that no test tells apart.")
    for study in leaderboard.studies:
        if trials := parallel_chart("t", study):
            title = f"Trials of {method_name(study.algorithm, study.testenv)}"
            name = f"trials-{file_part(study.testenv)}{slug(study.algorithm)}"
            yield Picture(name, title, trials, "The thick line is the winner.")


def _named(exam: str, pictures: Iterable[Picture]) -> Iterator[Picture]:
    """Yield the images with the exam in their titles, since a file has no context."""
    return (replace(picture, title=f"{picture.title}: {exam}") if exam else picture for picture in pictures)


def _stream(exam: str, rows: Sequence[ShownRow], streams: StreamCurves) -> Iterator[Picture]:
    lines, title = streams.lines(exam), f"{streams.score} while learning"
    if svg := stream_chart("c", rows, lines, streams.ends(exam), f"mean {streams.score} on what has begun", title):
        legend = series([row for row in rows if row.key in lines])
        yield Picture(f"curves-{slug(exam or streams.score)}", title, svg, legend=legend)


def _test_set_panels(exam: str, score: str, charts: ExamCharts) -> Iterator[Picture]:
    if charts.panels:
        note = "An open circle is the score just after the test set's round, the mark that after the last round."
        note += f" {charts.panels_left_out} rows are left out." if charts.panels_left_out else ""
        title = f"What became of each test set, {score}"
        yield Picture(
            f"kept-{file_part(exam)}{slug(score)}",
            title,
            grid([(label, panel) for _, label, panel in charts.panels], _PANELS_ACROSS),
            note,
        )


def _heatmap(shown: ShownRow, score: RowScore) -> Picture:
    row, scale = shown.row, limits(score.values)
    title = f"{method_name(shown.label, row.testenv)}: {score.score}" + (" (bound)" if row.bound else "")
    svg = heatmap_svg("m", score.values, score.rounds, score.tests, title, scale)
    bar = [{"label": "", "sample": colour_bar("s", scale, SEQUENTIAL, score.score)}]
    seeds = f"mean of {row.expected} seeds" if row.expected > 1 else f"seed {row.seeds[0]}"
    note = ", ".join(filter(None, (row.settings(), seeds)))
    return Picture(f"{_file_of_row(row, shown.label)}-{slug(score.score)}", title, svg, note, bar)


def _scenes(row: LeaderboardRow, name: str, sheet: SceneSheet) -> Picture:
    title = f"{name}: predictions after each round"
    note = ", ".join(filter(None, (row.settings(), f"seed {row.seeds[0]}")))
    return Picture(f"{_file_of_row(row, name)}-scenes", title, sheet_png(sheet, title, note), note)


def _file_of_row(row: LeaderboardRow, name: str) -> str:
    return f"{slug(name)}-{slug(row.id[:8])}"


def standalone(picture: Picture) -> str:
    """Return an SVG document with title, note and legend, and plain colours instead of CSS variables.

    Every row is shown.

    Programs that convert it to PDF or PNG know no variables in style sheets.
    """
    drawing = Markup(picture.drawing)
    wide, tall = _size(drawing)
    width = max(wide, 420.0)
    parts, y = [], float(_MARGIN)
    for line in textwrap.wrap(picture.title, max(20, int(width / 7.8))):
        parts.append(text(_MARGIN, y + 12, line, class_="title"))
        y += _LINE + 2
    for line in textwrap.wrap(picture.note, max(20, int(width / 6.6))):
        parts.append(text(_MARGIN, y + 11, line, class_="note"))
        y += _LINE
    parts.append(_placed(_MARGIN, y + _GAP / 2, drawing))
    y += _GAP + tall
    legend, tall = _legend(picture.legend, width)
    parts.append(_placed(_MARGIN, y, legend))
    whole, height = width + 2 * _MARGIN, y + tall + _MARGIN
    svg = tag(
        "svg",
        tag("style", Markup(_style())),
        tag("rect", width=whole, height=height, fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {num(whole)} {num(height)}",
        width=whole,
        height=height,
        font_family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    )
    return _NO_XML.sub("\ufffd", svg) + "\n"


def _legend(lines: Sequence[Mapping[str, object]], width: float) -> tuple[Markup, float]:
    """Return samples with their labels, in as many columns as fit, and their height."""
    if not lines:
        return Markup(""), 0
    samples = [Markup(line["sample"]) for line in lines]
    wide, tall = (max(sizes) for sizes in zip(*map(_size, samples), strict=True))
    labels = [str(line["label"]) for line in lines]
    step = wide + 6 + 6.4 * max(map(len, labels)) + 12
    across = max(1, int(width / step))
    placed = [
        _placed(n % across * step, n // across * (tall + 2), tag("g", sample, text(wide + 6, tall / 2 + 4, label)))
        for n, (sample, label) in enumerate(zip(samples, labels, strict=True))
    ]
    return tag("g", *placed), -(-len(lines) // across) * (tall + 2)


def grid(panels: Sequence[tuple[str, Markup]], most: int) -> Markup:
    """Return (label, svg) in rows of at most `most`, each under its label."""
    sizes = [_size(svg) for _, svg in panels]
    wide, tall = max(w for w, _ in sizes) + _GAP, max(h for _, h in sizes) + 24
    placed = [
        _placed(n % most * wide, n // most * tall, tag("g", text(0, 12, label), _placed(0, 18, svg)))
        for n, (label, svg) in enumerate(panels)
    ]
    return tag("svg", *placed, width=min(len(panels), most) * wide, height=-(-len(panels) // most) * tall)


def _placed(x: float, y: float, drawing: Markup) -> Markup:
    return tag("g", drawing, transform=f"translate({num(x)} {num(y)})")


def _size(svg: Markup) -> tuple[float, float]:
    size = re.search(r'\bwidth="([\d.]+)" height="([\d.]+)"', svg)
    return (float(size[1]), float(size[2])) if size else (0.0, 0.0)


@cache
def _style() -> str:
    """Return the style sheet of charts with the colours of a light page in place of its variables."""
    of_rows = {f"c{n}": colour for n, colour in enumerate(LIGHT)} | {"cb": BOUND[0]}
    colours, rules = PAGE | of_rows, []
    for selector, rule in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", chart_style(), flags=re.S)):
        for name in of_rows if "var(--own)" in rule else ("",):
            plain = re.sub(r"var\(--(\w+)\)", lambda variable: colours[variable[1]], rule.replace("--own", f"--{name}"))
            rules.append(f"{f'.{name}' if name else ''}{selector.strip()}{{{' '.join(plain.split())}}}")
    rules.append(f".title{{font-size:14px;font-weight:600}}.note{{fill:{PAGE['soft']}}}")
    return "".join(rules)
