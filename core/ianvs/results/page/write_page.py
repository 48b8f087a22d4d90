"""Writes report.html: all facts of a job in one file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ianvs.base.types import CaseResult
from ianvs.base.visible_text import visible
from ianvs.results.page.case_pages import case_files, write_case_pages
from ianvs.results.page.page_table import citation, configuration_text, failed_groups, page_tables, right_aligned
from ianvs.results.page.replies import HEADER, ExamQuestions, PageReplies, reply_pieces
from ianvs.results.page.reply_file import write_reply_file
from ianvs.results.report.build_document import document_of
from ianvs.results.report.charts.critical_difference import critical_difference
from ianvs.results.report.charts.exam_charts import class_bars, exam_charts
from ianvs.results.report.charts.heatmaps import Matrices, heatmaps, png_uri
from ianvs.results.report.charts.parallel import parallel_chart
from ianvs.results.report.charts.shown_rows import ShownRow, shown_rows
from ianvs.results.report.charts.svg import BOUND, DARK, LIGHT, chart_style
from ianvs.results.report.document import FIRST
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import PassedScores, complete_rows, reported_results
from ianvs.results.report.row_tables import csv_of
from ianvs.results.report.scenes import scene_sheet
from ianvs.store.files import write_atomic
from ianvs.store.job_store import report_folder

if TYPE_CHECKING:
    import jinja2

_MOST_BARS = (8, 40)  # maximum number of rows and of parts of a score in bar charts
_MOST_BAR_CHARTS = 24
_SCENE_SIDE = 180  # pixels, the longer side of an image in the page, as boxes are drawn
_MOST_COLOURS = 256  # number of colours of a drawing; a photo has more
_MOST_SCENE_ROWS, _MOST_SCENE_TESTS = 16, 6


def write_page(
    leaderboard: Leaderboard,
    passed: PassedScores,
    results: Iterable[CaseResult],
    results_of: Callable[[Collection[RowKey]], Iterable[CaseResult]],
    directory: Path,
    *,
    workspace: Path,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
    running: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write `directory`/rank/report.html, and replies.csv(.gz) beside it if the job has conversations.

    Args:
        leaderboard: The selection of `rank`.
        passed: Scores collected while it was built.
        results: Its cases, read only for images and conversations, twice at most.
        results_of: Returns the results of some rows.
        directory: Of the job.
        workspace: Where the results are stored.
        title: The title.
        command: The command that creates the page.
        provenance: Where the job ran.
        running: Sentences on running cases.
    """
    exams = ExamQuestions(workspace)
    page = report_folder(directory) / "report.html"
    about: dict[str, Any] = {"title": title, "command": command, "provenance": provenance, "running": running}
    text = page_text(leaderboard, passed, results, exams, links=case_files(leaderboard), **about)
    write_atomic(page, text.encode())
    shown = {r.key: r for exam in {row.testenv for row in leaderboard.rows} for r in shown_rows(leaderboard, exam)}
    style = _style()
    render = partial(
        _template("cases.html.j2").render, title=title, style=Markup(style), policy=_content_security_policy(style)
    )
    write_case_pages(leaderboard, shown, results_of, page.parent, render)
    pieces = list(reply_pieces(complete_rows(leaderboard), results, exams)) if exams.any_questions else []
    replies = write_reply_file(page.parent, [("header", [csv_of([HEADER])]), *pieces] if pieces else [])
    return (page, replies) if replies else (page,)


class Scenes:
    """Accumulates images of results, those of the first seed of each row.

    Attributes:
        sheets: For each row the inputs, truths and predictions. lines: test set, and (head, data URI) of its images;
            legend: as in a SceneSheet.
    """

    def __init__(self, rows: Sequence[ShownRow]) -> None:
        self._rows = {shown.key: shown for shown in rows[:_MOST_SCENE_ROWS]}
        self.sheets: dict[RowKey, dict[str, object]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        shown = self._rows.get(key)
        if shown is None or result.case.seed != shown.row.seeds[0]:
            return
        sheet = scene_sheet(result, _MOST_SCENE_TESTS)
        if sheet is None:
            return
        lines = [(test, [(head, _scene_uri(cell)) for head, cell in cells.items()]) for test, cells in sheet.lines]
        self.sheets[key] = {
            "id": shown.id,
            "label": shown.label,
            "seed": result.case.seed,
            "lines": lines,
            "legend": sheet.legend,
        }

    def ranked(self) -> list[dict[str, object]]:
        """Return the images in the order of the leaderboard."""
        return [self.sheets[key] for key in self._rows if key in self.sheets]


def _scene_uri(pixels: NDArray[np.uint8]) -> str:
    """Return an image of at most _SCENE_SIDE pixels as a data URI.

    Label images are subsampled, so that no mixed colours appear. A photo, with boxes or without, is a JPEG, a tenth of
    the size.
    """
    if len(np.unique(pixels.reshape(-1, 3), axis=0)) <= _MOST_COLOURS:
        step = -(-max(pixels.shape) // _SCENE_SIDE)
        return png_uri(pixels[::step, ::step])
    from PIL import Image

    picture, stream = Image.fromarray(pixels), BytesIO()
    picture.thumbnail((_SCENE_SIDE, _SCENE_SIDE))
    picture.save(stream, "JPEG", quality=90)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()


def page_text(
    leaderboard: Leaderboard,
    passed: PassedScores,
    results: Iterable[CaseResult],
    exams: ExamQuestions,
    *,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
    links: Mapping[RowKey, str] = MappingProxyType({}),
    running: Sequence[str] = (),
) -> str:
    """Return the page. Names, messages and replies are always escaped.

    The arguments are those of `write_page`. links: the file of each row's cases. running: with running cases the page
    reloads itself.
    """
    from jinja2.utils import htmlsafe_json_dumps

    document = document_of(leaderboard, title, command, provenance=provenance)
    names = list(dict.fromkeys(row.testenv for row in leaderboard.rows))
    rows = complete_rows(leaderboard)
    of_exams = {name: shown_rows(leaderboard, name) for name in names}
    scenes = {name: Scenes(shown) for name, shown in of_exams.items()}
    replies = {name: PageReplies(shown, exams) for name, shown in of_exams.items()}
    shows = {name for name in names if exams.show_answers(passed.examples.get(name))}
    with_answers = {key: row for key, row in rows.items() if row.testenv in shows}
    for key, result in reported_results(with_answers, results if with_answers else ()):
        for collector in (scenes[with_answers[key].testenv], replies[with_answers[key].testenv]):
            collector.add(key, result)
    matrices, by_part = Matrices(), passed.parts.means(rows)
    of_scores = {name: passed.matrices.of_exam(rows, name) for name in names}
    groups = len(names) * max(1, len({score for by_score in of_scores.values() for score in by_score}))  # of heatmaps
    pictures = []
    for number, (name, shown) in enumerate(of_exams.items()):
        scores, exam_key = of_scores[name], f"e{number}"  # makes ids unique
        charts = exam_charts(exam_key, leaderboard, name, shown, scores, passed.training)
        wanted, leads = charts.matrices
        maps = [
            heatmaps(f"{exam_key}h{n}", shown, by_row, matrices, leaderboard.baseline, groups)
            for n, by_row in enumerate(scores.values() if wanted else ())
        ]
        bars = list(islice(class_bars(f"{exam_key}b", name, shown, by_part, _MOST_BARS), _MOST_BAR_CHARTS))
        drawn: dict[str, object] = {"first": charts.first, "wide": charts.wide, "narrow": charts.narrow}
        drawn |= {"panels": charts.panels, "panel_numbers": charts.panel_numbers, "left_out": charts.panels_left_out}
        pictures.append({"exam": name, "heatmaps": maps, "leads": leads, "bars": bars, **drawn})
    ids = {(row.id, row.algorithm): f"r{n}" for n, row in enumerate(leaderboard.rows)}
    hrefs = {ids[key]: file for key, file in links.items()}
    tables = page_tables(document, chain.from_iterable(of_exams.values()), hrefs)
    style = _style() + "".join(f"#table{n} {right_aligned(table)}" for n, table in enumerate(tables))
    return _template("page.html.j2").render(
        document=document,
        summary=_summary(leaderboard, names),
        first=[*running, *document.texts(*FIRST)],
        renewed=bool(running),
        leaders=[note for note in document.notes if note.kind == "leader"],
        notes=document.texts("ranked by", "limit", "bound", "gate", "row", "data", "metric"),
        tables=tables,
        differences=document.tables_of("how sure"),
        searches=[
            (table, parallel_chart(f"trials-{number}", study))
            for number, (table, study) in enumerate(zip(document.tables_of("search"), leaderboard.studies, strict=True))
        ],
        over_exams=document.tables_of("over exams"),
        mean_ranks=critical_difference("mean-ranks", leaderboard.over_exams),
        pictures=pictures,
        scenes=[(name, sheets) for name in names if (sheets := scenes[name].ranked())],
        replies=[(name, questions) for name in names if (questions := replies[name].questions())],
        failures=failed_groups(document.failures),
        configuration=configuration_text(provenance or {}),
        citation=citation(),
        matrices=htmlsafe_json_dumps(matrices.as_data(), separators=(",", ":")),
        style=Markup(style),
        script=Markup(_script()),
        policy=_content_security_policy(style),
    )


def _summary(leaderboard: Leaderboard, names: list[str]) -> str:
    """Return the numbers of exams, rows and cases, as text."""
    every = [*leaderboard.rows, *leaderboard.references]
    cases = sum(len(row.seeds) for row in every)
    count = sum(row.complete for row in leaderboard.rows)
    counts = [f"{count} row{'s' * (count != 1)}", f"{leaderboard.seeds} seed{'s' * (leaderboard.seeds != 1)}"]
    counts += [f"{len(names)} exams"] if len(names) > 1 else []
    counts.append(f"{cases} case{'s' * (cases != 1)}")
    return f"{', '.join(counts)}."


@cache
def _template(name: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, finalize=_template_value,
    )  # fmt: skip
    return environment.get_template(name)


def _template_value(value: object) -> object:
    """Return a value of the template in the form that is inserted before escaping."""
    return value if isinstance(value, Markup) else visible(str(value))


def _asset(name: str) -> str:
    return files("ianvs.results.page").joinpath("assets", name).read_text(encoding="utf-8")


def _script() -> str:
    return "".join(map(_asset, ("begin.js", "table.js", "charts.js", "compare.js", "page.js")))


def _style() -> str:
    """Return the style sheet with the colours of rows."""

    def rules(colours: tuple[str, ...], grey: str) -> str:
        return "".join(f"--c{n}:{colour};" for n, colour in enumerate(colours)) + f"--cb:{grey};"

    kinds = "".join(f".c{n}{{--own:var(--c{n})}}" for n in range(len(LIGHT))) + ".cb{--own:var(--cb)}"
    light, dark = rules(LIGHT, BOUND[0]), rules(DARK, BOUND[1])
    variables = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{kinds}"
    return variables + "\n" + chart_style() + _asset("page.css")


def _content_security_policy(style: str) -> str:
    """Return the content security policy: the page may use its own style and script, and load nothing."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, _script())]
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
