"""The charts of one exam, each with its legend and its numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ianvs.exam.paradigms import PARADIGMS, Paradigm
from ianvs.results.report.charts.critical_difference import groups_not_apart
from ianvs.results.report.charts.lines import curve_chart, interval_chart, stream_chart
from ianvs.results.report.charts.points import Point, point_chart
from ianvs.results.report.charts.shown_rows import ShownRow, series
from ianvs.results.report.charts.svg import Frame, Scale, classes, dots, figure, nice_scale, num, slanted, tag, text
from ianvs.results.report.document import Picture, Table, text_table
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import COSTS, RowKey
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.row_scores import BY_PART, RowScore, StreamLine
from ianvs.results.report.training_curves import OF_STREAM, TrainingCurves
from ianvs.results.report.values import fit, shown_number, slug
from ianvs.results.stats.pairs import comparison_bars

_MOST_INTERVALS = 40
_MOST_PANELS = 12
_PLACES = 50  # test sets in a panel
_MOST_NUMBERS = 1_500  # cells of a table beside an image
_WIDE = ("how sure", "learning", "training")  # kinds that need room
_COSTS = (("train_cpu_seconds", "processor seconds of training"), ("peak_memory_mb", "peak memory, MB"))

Parts = Mapping[tuple[str, str, str], Mapping[RowKey, Mapping[str, float]]]  # ClassScores.means
Scores = Mapping[RowKey, RowScore]


def file_part(exam: str) -> str:
    """Return the part of file names that identifies an exam."""
    return f"{slug(exam)}-" if exam else ""


@dataclass(frozen=True)
class ExamCharts:
    """The charts of an exam.

    Attributes:
        first: The most informative one; none if that is the score matrices.
        wide: The others, except narrow ones that show rows as points.
        panels: The scores of each test set over time, (id, label, svg) for the first rows, with the numbers of all.
        matrices: Whether score matrices are wanted, and whether first.
    """

    first: list[Picture]
    wide: list[Picture]
    narrow: list[Picture]
    panels: list[tuple[str, str, Markup]]
    panel_numbers: Table | None
    panels_left_out: int
    matrices: tuple[bool, bool]


def exam_charts(
    key: str,
    leaderboard: Leaderboard,
    exam: str,
    rows: Sequence[ShownRow],
    scores: Mapping[str, Scores],
    training: TrainingCurves,
) -> ExamCharts:
    """Return the charts that the paradigm of the exam's rows lists (`Paradigm.pictures`), in its order.

    key: of the exam, which makes ids unique in a page. scores: by name; points and panels show the first.
    """
    first = next(iter(scores.values()), {})
    whole = (by_row for name, by_row in scores.items() if not name.startswith(BY_PART))

    def charts_of(kind: str) -> Iterator[Picture]:
        if kind == "how sure":
            yield from _certainty_charts(f"{key}i", leaderboard, exam, rows)
        elif kind == "learning":
            curves = (learning_curves(f"{key}l{n}", exam, rows, by_row) for n, by_row in enumerate(whole))
            yield from (picture for picture in curves if picture)
        elif kind == "training":
            yield from _training_charts(f"{key}t", exam, rows, training)
        elif kind == "stability":
            yield from _stability(f"{key}p", exam, rows, first)
        elif kind == "costs":
            yield from _costs(f"{key}k", leaderboard, exam, rows)
        else:
            yield from _metric_against(f"{key}x{slug(kind)}", leaderboard, exam, rows, kind.removeprefix("against "))

    paradigm = next((shown.row.paradigm for shown in rows if shown.row.competes), "")
    kinds = PARADIGMS.get(paradigm, Paradigm).pictures
    drawn = {kind: list(charts_of(kind)) for kind in kinds if kind != "matrices"}
    leads = next((kind for kind in kinds if (any(scores.values()) if kind == "matrices" else drawn[kind])), "")
    head = drawn.get(leads, [])[:1]
    rest = [(kind, picture) for kind, pictures in drawn.items() for picture in pictures if picture not in head]
    return ExamCharts(
        head,
        [picture for kind, picture in rest if kind in _WIDE],
        [picture for kind, picture in rest if kind not in _WIDE],
        *_panels(f"{key}f", rows, first if "stability" in kinds else {}),
        ("matrices" in kinds, leads == "matrices"),
    )


def learning_curves(key: str, exam: str, rows: Sequence[ShownRow], scores: Scores) -> Picture | None:
    score = next(iter(scores.values())).score
    title = f"Learning: {score} after each round"
    svg = curve_chart(key, rows, scores, title)
    if not svg:
        return None
    note = "Mean over the test sets taught so far. Bands: one standard deviation over seeds to each side."
    shown = [(row, scores[row.key]) for row in rows if row.key in scores]
    longest = max((curves for _, curves in shown), key=lambda curves: len(curves.rounds))
    numbers = _numbers(
        [f"{k}. {name}" for k, name in enumerate(longest.rounds, 1)],
        [(row.label, list(map(_spread, curves.learned.tolist(), curves.spread.tolist()))) for row, curves in shown],
    )
    legend = series([row for row, _ in shown])
    return Picture(f"learning-{file_part(exam)}{slug(score)}", title, svg, note, legend, numbers)


def _training_charts(key: str, exam: str, rows: Sequence[ShownRow], training: TrainingCurves) -> Iterator[Picture]:
    """Yield a chart for each quantity that learners reported during training."""
    for n, (name, by_row) in enumerate(training.lines()):
        lines = {row.key: StreamLine(*by_row[row.key]) for row in rows if row.key in by_row}
        label, ours = name.replace("_", " "), name in OF_STREAM.values()
        title = f"The stream: {label}" if ours else f"Training: {label}, as learners tell"
        ends = np.arange(1, 1 + math.ceil(max((line.samples[-1] for line in lines.values()), default=0)))
        if svg := stream_chart(f"{key}{n}", rows, lines, ends, label, title, "rounds"):
            source = (
                "Of what was answered before it was told." if ours else "Learners say it themselves; nothing checks it."
            )
            note = f"Mean and one standard deviation over seeds. {source}"
            legend = series([row for row in rows if row.key in lines])
            yield Picture(f"training-{file_part(exam)}{slug(name)}", title, svg, note, legend)


def _certainty_charts(key: str, leaderboard: Leaderboard, exam: str, rows: Sequence[ShownRow]) -> Iterator[Picture]:
    """Yield differences to the best row and to the baseline, whose intervals exclude 0 exactly if rows are separated.

    And means.
    """
    if not leaderboard.sort_by or len(rows) < 2:
        return
    column, descending = leaderboard.sort_by[0]
    some = rows[:_MOST_INTERVALS]
    more = f" {len(rows) - len(some)} rows are left out." if len(rows) > len(some) else ""
    better = f"{'Higher' if descending else 'Lower'} is better."
    significance = next((s for s in leaderboard.significance if s.testenv == exam), None)
    sampled = significance is not None and significance.groups > 0
    allowed = "over other seeds" + (" and other test samples" if sampled else ", on these test samples")
    for n, other in enumerate(("the best", leaderboard.baseline)):
        by_id = {shown.id: shown.row.to_baseline if n else shown.row.to_best for shown in some}
        differences = {id_: difference for id_, difference in by_id.items() if difference is not None}
        if other is None or not differences:
            continue
        first = next((shown.id for shown in some if (shown.row.algorithm == other if n else shown.row.rank == 1)), "")
        centres = {first: 0.0} | {id_: difference.mean for id_, difference in differences.items()}
        margins = {i: d.high - d.mean for i, d in differences.items() if d.high is not None}
        title, about = f"{column} minus {other}", "Bars are simultaneous 95 % intervals of differences."
        svg = interval_chart(f"{key}{n}", some, title, title, about, centres, margins, zero=True)
        note = f"{better} Simultaneous 95 % intervals {allowed}: those that exclude 0 are of rows that are apart.{more}"
        file = f"{'baseline' if n else 'differences'}-{file_part(exam)}{slug(column)}"
        yield Picture(file, title, svg, note)
    centres = {shown.id: mean for shown in some if (mean := shown.row.mean(column)) is not None}
    seeds = {shown.id: shown.row.by_seed.get(column, ()) for shown in some} if leaderboard.seeds > 1 else {}
    halves, joined, note = _overlaps(significance, some, allowed)
    about = "Means, and each seed as a small dot. The table below the image holds their intervals."
    svg = interval_chart(f"{key}m", some, column, f"{column} of each row", about, centres, halves, seeds, joined)
    note = f"{better} {'Small dots are seeds.' if seeds else ''} {note}{more}".replace("  ", " ")
    title = f"{column} and how sure it is" if significance else column
    if svg:
        yield Picture(f"intervals-{file_part(exam)}{slug(column)}", title, svg, note.strip())


def _overlaps(
    significance: ExamSignificance | None, rows: Sequence[ShownRow], allowed: str
) -> tuple[dict[str, float], list[tuple[str, str]], str]:
    """Return half-lengths of bars by id, or ids of rows that lines join; and their meaning."""
    if significance is None or significance.pairs.family == "best":
        return {}, [], ""
    shown = {row.key: row.id for row in rows}
    ids = [shown.get(key, "") for key in significance.keys]
    if (halves := comparison_bars(significance.pairs)) is not None:
        bars = {id_: half for id_, half in zip(ids, halves.tolist(), strict=True) if id_ and half}
        return bars, [], f"Bars that do not overlap are apart, {allowed}."
    count = len(ids)
    apart = np.zeros((count, count), dtype=bool)
    first, second = (
        significance.pairs.first[significance.pairs.apart],
        significance.pairs.second[significance.pairs.apart],
    )
    apart[first, second] = apart[second, first] = True
    joined = [(ids[a], ids[b]) for a, b in groups_not_apart(range(count), apart)]
    return {}, joined, f"Rows that a line joins are not apart, {allowed}; no bars agree with all pairs."


def _stability(key: str, exam: str, rows: Sequence[ShownRow], scores: Scores) -> Iterator[Picture]:
    """Yield stability against plasticity. A row that learned everything at once can't forget and is no point."""
    scored = [(row, scores[row.key]) for row in rows if row.key in scores]
    points = [Point(row, score.just_learned, score.lost) for row, score in scored]
    points = [point for point in points if not math.isnan(point.x + point.y)]
    if len(points) < 2:
        return
    score = scored[0][1]
    axes = f"mean {score.score} just learned", f"mean loss of {score.score} until the end"
    title = "Stability against plasticity"
    svg = point_chart(key, points, *axes, title, x_up=score.higher_is_better, y_up=False)
    note = "Plasticity: the score on each test set just after its round. Stability: how little of that is lost."
    yield _of_points(f"stability-{file_part(exam)}{slug(score.score)}", title, svg, note, axes, points)


def _costs(key: str, leaderboard: Leaderboard, exam: str, rows: Sequence[ShownRow]) -> Iterator[Picture]:
    column, descending = leaderboard.sort_by[0] if leaderboard.sort_by else ("", True)
    note = "The line is the Pareto front of these means, with no allowance for noise (the mark in the table has)."
    for cost, name in _COSTS if column else ():
        points = [
            Point(shown, float(spent), float(score))
            for shown in rows
            if (spent := shown.row.cost(cost)) is not None and (score := shown.row.mean(column)) is not None
        ]
        title = f"{column} against {name.partition(',')[0]}"
        up = COSTS[cost].higher_is_better
        svg = point_chart(f"{key}{cost[0]}", points, name, column, title, x_up=up, y_up=descending, of_costs=True)
        if svg:
            file = f"{cost}-{file_part(exam)}{slug(column)}"
            yield _of_points(file, title, svg, note, (name, column), points)


def _metric_against(
    key: str, leaderboard: Leaderboard, exam: str, rows: Sequence[ShownRow], metric: str
) -> Iterator[Picture]:
    """Yield the score that rows are ranked by against another metric, if the testenv has it."""
    column, descending = leaderboard.sort_by[0] if leaderboard.sort_by else ("", True)
    other = next((c for c in leaderboard.columns if c.kind == "metric" and c.key == metric), None)
    if not column or other is None or metric == column:
        return
    up = bool(other.higher_is_better)
    means = [(shown, shown.row.mean(metric), shown.row.mean(column)) for shown in rows]
    points = [Point(shown, x, y) for shown, x, y in means if x is not None and y is not None]
    title = f"{column} against {other.title}"
    if svg := point_chart(key, points, other.title, column, title, x_up=up, y_up=descending, of_costs=not up):
        note = "" if up else "The line is the Pareto front of these means, with no allowance for noise."
        file = f"{slug(metric)}-{file_part(exam)}{slug(column)}"
        yield _of_points(file, title, svg, note, (other.title, column), points)


def _of_points(
    file: str, title: str, svg: Markup, note: str, axes: tuple[str, str], points: Sequence[Point]
) -> Picture:
    numbers = _numbers(axes, [(point.shown.label, [f"{point.x:.4g}", f"{point.y:.4g}"]) for point in points])
    return Picture(file, title, svg, note, series([point.shown for point in points], every=True), numbers)


def _panels(
    key: str, rows: Sequence[ShownRow], scores: Scores
) -> tuple[list[tuple[str, str, Markup]], Table | None, int]:
    scored = [
        (row, score) for row in rows if (score := scores.get(row.key)) and score.per_round and len(score.tests) > 1
    ]
    if not scored:
        return [], None, 0
    scale = nice_scale([value for _, score in scored for value in score.values[1:].ravel().tolist()], 4, unit=True)
    some = scored[:_MOST_PANELS]
    panels = [(row.id, row.label, _forgetting_panel(f"{key}{row.id}", row, score, scale)) for row, score in some]
    longest = max((score for _, score in scored), key=lambda score: len(score.tests))
    lines = []
    for row, score in scored:
        both = zip(np.diagonal(score.values[1:]), score.values[-1], strict=True)
        lines.append((row.label, [f"{_short(learned)} → {_short(final)}" for learned, final in both]))
    return panels, _numbers(longest.tests, lines), len(scored) - len(some)


def class_bars(
    key: str, exam: str, rows: Sequence[ShownRow], parts: Parts, most: tuple[int | None, int | None] = (None, None)
) -> Iterator[Picture]:
    """Yield a chart for each score of several parts (classes) and test set, with limited numbers of rows and parts."""
    for place, (score, test) in enumerate((score, test) for part_exam, score, test in parts if part_exam == exam):
        by_row = parts[exam, score, test]
        bars = {row.id: by_row[row.key] for row in rows if row.key in by_row}
        shown = [row for row in rows if row.id in bars]
        some = shown[: most[0]]
        title = f"{score} on {test}, after the last round"
        svg = _class_bars(f"{key}{place}", some, bars, title, most[1])
        note = f"The first {len(some)} of {len(bars)} rows; the table has all." if len(some) < len(bars) else ""
        names = list(dict.fromkeys(part for values in bars.values() for part in values))
        lines = [(row.label, [_short(bars[row.id].get(name, math.nan)) for name in names]) for row in shown]
        file = f"{file_part(exam)}{slug(score)}-{slug(test)}"
        yield Picture(file, title, svg, note, series(some, every=True), _numbers(names, lines))


def _numbers(heads: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> Table:
    """Return a table. heads: of the columns after the first."""
    room = max(1, _MOST_NUMBERS // (1 + len(heads)))
    below = f"{len(lines) - room} rows are left out." if len(lines) > room else ""
    return text_table("numbers", ["Row", *heads], [[name, *cells] for name, cells in lines[:room]], below=below)


def _spread(mean: float, spread: float) -> str:
    return f"{_short(mean)} ± {_short(spread)}" if spread else _short(mean)


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    return shown_number(value, 3) if abs(value) < 1000 else f"{value:.4g}"


def _class_bars(
    key: str, shown: Sequence[ShownRow], bars: Mapping[str, Mapping[str, float]], title: str, most: int | None = None
) -> Markup:
    """Return a bar for each row in each part (class). bars: by id of the shown row, by part.

    Most: maximum number of parts.
    """
    names = list(dict.fromkeys(part for row in shown for part in bars[row.id]))[:most]
    values = [value for row in shown for part, value in bars[row.id].items() if part in names]
    scale = nice_scale([0, *values], unit=True)
    each = max(4.0, min(11.0, 300 / len(shown) / 3))
    group = each * len(shown) + 8
    aslant = any(len(name) * 6.2 > group for name in names)
    ticks: Scale = Scale(0, len(names), ())
    frame = Frame(ticks, scale, left=46, top=14, width=max(260.0, group * len(names)), height=170)
    parts = [frame.axes("", "")]
    step = frame.width / len(names)
    base = frame.at(0, max(0.0, scale.low))[1]
    foot = frame.top + frame.height
    for n, row in enumerate(shown):
        drawn = []
        for place, name in enumerate(names):
            value = bars[row.id].get(name, math.nan)
            if math.isnan(value):
                continue
            x = frame.left + place * step + (step - each * len(shown)) / 2 + n * each
            _, y = frame.at(0, value)
            tip = f"{row.label}, {name}: {value:.3f}"
            bar = tag("rect", x=x, y=min(y, base), width=each - 0.8, height=abs(base - y), data_tip=tip)
            drawn.append(bar)
        parts.append(tag("g", *drawn, class_=classes("series bar", row.style), data_row=row.id))
    for place, name in enumerate(names):
        x = frame.left + (place + 0.5) * step
        parts.append(slanted(x + 4, foot + 14, fit(name, 16)) if aslant else text(x, foot + 16, name, "middle"))
    more = 20 + (4.2 * min(16, max(map(len, names))) if aslant else 6)
    width = frame.left + frame.width + 10
    about = f"{len(shown)} bars for each of {len(names)} parts. The table below the image holds their numbers."
    return figure(key, width, foot + more, title, about, *parts, class_="chart")


def _forgetting_panel(key: str, row: ShownRow, score: RowScore, scale: Scale) -> Markup:
    """Return, for each test set, a line from its score just after its round (open circle) to that at the end
    (marker).
    """
    count = min(len(score.tests), _PLACES)
    frame = Frame(Scale(-0.5, count - 0.5, ()), scale, left=38, top=8, width=max(120, min(300, 26 * count)), height=110)
    foot = frame.top + frame.height
    parts = [frame.axes("", "")]
    ends = []
    for j in range(count):
        before, after = float(score.values[j + 1, j]), float(score.values[-1, j])
        x, y1 = frame.at(j, before)
        _, y2 = frame.at(j, after)
        tip = f"{score.tests[j]}: {before:.3f} just learned, {after:.3f} at the end"
        if not (math.isnan(y1) or math.isnan(y2)):
            line = tag("path", d=f"M{num(x)} {num(y1)}V{num(y2)}", class_=classes("line", row.style))
            ring = tag("circle", cx=x, cy=y1, r=3, class_=classes("ring", row.style))
            parts.append(tag("g", line, ring, data_tip=tip))
            ends.append((x, y2))
        if count <= 12 or j % math.ceil(count / 10) == 0:
            parts.append(text(x, foot + 16, str(j + 1), "middle"))
    parts.append(dots(row.style, ends, 3))
    title = f"{row.label}: {score.score} of each test set, just learned and at the end"
    about = "An open circle is the score just after the test set's round, the mark that after the last round."
    return figure(key, frame.left + frame.width + 8, foot + 22, title, about, *parts, class_="chart small")
