"""Charts for papers as files: a score over the rounds, and a metric over a hyperparameter."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ianvs.base.errors import IanvsError, closest, one_line, shown_path
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.exam.metrics.registry import find
from ianvs.results.report.charts.exam_charts import learning_curves
from ianvs.results.report.charts.hyperparameter_chart import hyperparameter_chart, varied_hyperparameters
from ianvs.results.report.charts.shown_rows import shown_rows
from ianvs.results.report.document import Picture
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.pictures import standalone
from ianvs.results.report.row_scores import BY_PART, MatrixMeans, complete_rows, reported_results
from ianvs.results.stored import Results
from ianvs.store.files import write_atomic

FORMATS = ("svg", "pdf")
_INSTALL = "PDF needs CairoSVG: `python -m pip install 'ianvs-bench[pdf]'`"


def write_plots(
    results: Results, folder: Path, *, over: str | None, metric: str | None, formats: Sequence[str]
) -> list[Path]:
    """Write the charts of a job.

    Args:
        results: Its stored results.
        folder: Where the files go; created if needed.
        over: "rounds" or a hyperparameter; None for the rounds and all hyperparameters with several values.
        metric: A score or a metric's column; None for what the leaderboard is sorted by, and the first score.
        formats: Some of `FORMATS`.

    Returns:
        The files.

    Raises:
        IanvsError: For unknown names, or if there is nothing to draw.
    """
    converters = [(suffix, _converter(suffix)) for suffix in dict.fromkeys(formats)]
    paths = []
    for picture in plots(results, over=over, metric=metric):
        text = standalone(picture)
        for suffix, convert in converters:
            paths.append(folder / f"{picture.name}.{suffix}")
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomic(paths[-1], convert(text))
            except OSError as error:
                message = f"{shown_path(paths[-1])} can't be written: {error.strerror}."
                raise IanvsError(message, code="unwritable-file") from error
    return paths


def pdf_blocker() -> str:
    """Return why PDF can't be written, with the remedy; "" if it can."""
    try:
        importlib.import_module("cairosvg")
    except ImportError:
        return f"{_INSTALL}."
    except OSError:  # the package is installed, but not the system's library
        return "PDF needs the library cairo beside CairoSVG: `apt install libcairo2`, or `brew install cairo`."
    return ""


def plots(results: Results, *, over: str | None, metric: str | None) -> Iterator[Picture]:
    """Yield the charts of `write_plots`."""
    board = results.leaderboard
    exams = list(dict.fromkeys(row.testenv for row in board.rows))
    varied = varied_hyperparameters(board.rows)
    if over not in (None, "rounds") and over not in varied:
        listed = f"There are: {one_line(varied, 20)}" if varied else "There is none"
        raise IanvsError(
            f"'{over}' is no hyperparameter with several values.{closest(over or '', ['rounds', *varied])} {listed}; "
            "`--over rounds` draws scores over the rounds.",
            code="unknown-name",
        )
    pictures = []
    if over in (None, "rounds"):
        pictures += list(_over_rounds(results, board, exams, metric if over else None))
    columns = _columns(board, metric)
    for name in varied if over is None else [over] if over != "rounds" else []:
        for exam in exams:
            rows = [row for row in board.rows if row.testenv == exam and row.complete]
            charts = (hyperparameter_chart(rows, name, column, exam) for column in columns)
            pictures += [chart for chart in charts if chart is not None]
    if not pictures:
        raise IanvsError(
            "there is nothing to draw: a chart needs rows without missing cases, with several rounds or with several "
            "values of a hyperparameter.",
            code="missing-results",
        )
    yield from pictures


def _over_rounds(results: Results, board: Leaderboard, exams: Sequence[str], score: str | None) -> Iterator[Picture]:
    rows, means = complete_rows(board), MatrixMeans(board.seeds)
    for key, result in reported_results(rows, results):
        means.add(key, result)
    drawn = 0
    for exam in exams:
        every = means.of_exam(rows, exam).items()
        scores = {name: by_row for name, by_row in every if not name.startswith(BY_PART)}  # parts are of no round
        if score is not None and score not in scores:
            if not scores:
                continue
            message = f"'{score}' is no score that is known after each round.{closest(score, scores)}"
            raise IanvsError(f"{message} There are: {one_line([*scores])}.", code="unknown-name")
        for name in [score] if score is not None else list(scores)[:1]:
            picture = learning_curves("e", exam, shown_rows(board, exam), scores[name])
            if picture is not None:
                drawn += 1
                yield picture


def _columns(board: Leaderboard, metric: str | None) -> list[str]:
    names = [column.key for column in board.columns if column.kind == "metric"]
    if metric is None:
        return [name for name, _ in board.sort_by[:1]] or names[:1]
    if columns := columns_named(metric, names):
        return columns
    meant = find(metric)
    columns = [name for name in names if meant is not None and find(name.partition(" of ")[0]) is meant]
    if not columns:
        hint = f" List it under `metrics` in the testenv: `- name: {meant.name}`." if meant else closest(metric, names)
        raise IanvsError(
            f"'{metric}' is no metric of the leaderboard.{hint} There are: {one_line(names)}.", code="unknown-name"
        )
    return columns


def _converter(suffix: str) -> Callable[[str], bytes]:
    if suffix == "svg":
        return str.encode
    if blocker := pdf_blocker():
        raise IanvsError(blocker, code="missing-package")
    cairosvg = importlib.import_module("cairosvg")
    return lambda text: bytes(cairosvg.svg2pdf(bytestring=text.encode()))
