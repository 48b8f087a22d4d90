"""report.html: everything that is known of a job in one file without a link that would be followed by itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from ianvs.base.types import CaseResult
from ianvs.results.page.critical_difference import critical_difference
from ianvs.results.page.exam_pictures import ExamPictures, exam_pictures
from ianvs.results.page.page_differences import difference_table
from ianvs.results.page.page_facts import citation, configuration_text, failed_groups, remarks
from ianvs.results.page.page_numbers import Matrices
from ianvs.results.page.page_replies import PageReplies
from ianvs.results.page.page_scenes import Scenes
from ianvs.results.page.page_table import page_table
from ianvs.results.page.parallel_chart import parallel_chart
from ianvs.results.page.replies import Exams, write_replies
from ianvs.results.page.shown_rows import shown_rows
from ianvs.results.report import Leaderboard
from ianvs.results.report.class_scores import ClassScores
from ianvs.results.report.exams_table import over_exams_cells
from ianvs.results.report.layout import ranking_notes
from ianvs.results.report.line_styles import BOUND, DARK, LIGHT
from ianvs.results.report.pictures import complete_rows, finished
from ianvs.results.report.provenance_facts import provenance_facts
from ianvs.results.report.row_scores import MatrixMeans
from ianvs.results.report.trials import study_lines, study_name
from ianvs.store.files import write_atomic

if TYPE_CHECKING:
    import jinja2

__all__ = ["page_text", "write_page"]


def write_page(
    leaderboard: Leaderboard,
    results: Iterable[CaseResult],
    directory: Path,
    *,
    workspace: Path,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Write `directory`/rank/report.html, and replies.csv beside it where the job has conversations.

    leaderboard: what `rank` selects of it. results: the cases behind it, read twice at most. workspace: where they are
    stored.
    """
    exams = Exams(workspace)
    text = page_text(leaderboard, results, exams, title=title, command=command, provenance=provenance)
    page = directory / "rank" / "report.html"
    write_atomic(page, text.encode())
    replies = "".join(write_replies(complete_rows(leaderboard), results, exams) if exams.any_questions else ())
    if not replies:
        return (page,)
    write_atomic(directory / "rank" / "replies.csv", replies.encode())
    return page, directory / "rank" / "replies.csv"


def page_text(
    leaderboard: Leaderboard,
    results: Iterable[CaseResult],
    exams: Exams,
    *,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
) -> str:
    """The page. Whatever a name, a message or a reply says, it is shown as text."""
    names = list(dict.fromkeys(row.testenv for row in leaderboard.rows))
    rows = complete_rows(leaderboard)
    means, parts = MatrixMeans(rows), ClassScores(rows)
    of_exams = {name: shown_rows(leaderboard, name) for name in names}
    scenes = {name: Scenes(shown) for name, shown in of_exams.items()}
    replies = {name: PageReplies(shown, exams) for name, shown in of_exams.items()}
    failed = []
    for result in results:
        if result.status == "failed":
            failed.append(result)
        for key, _ in finished(rows, [result]):
            means.add(key, result)
            parts.add(key, result)
            scenes[rows[key].testenv].add(key, result)
            replies[rows[key].testenv].add(key, result)
    matrices, by_part = Matrices(), parts.means()
    pictures: list[ExamPictures] = [
        exam_pictures(leaderboard, name, number, len(names), means, by_part, matrices)
        for number, name in enumerate(names)
    ]
    from jinja2.utils import htmlsafe_json_dumps

    facts = provenance or {}
    told = {leaderboard.sealing, *leaderboard.statements}  # above the table
    return _template().render(
        title=title,
        command=command,
        board=leaderboard,
        summary=_summary(leaderboard, names),
        notes=[note for note in (*ranking_notes(leaderboard), *leaderboard.notes) if note not in told],
        tables=[page_table(leaderboard, name, number) for number, name in enumerate(names)],
        differences=[found for name in names if (found := difference_table(leaderboard, name))],
        searches=[
            (study_name(study), study_lines(study), parallel_chart(f"trials-{number}", study))
            for number, study in enumerate(leaderboard.studies)
        ],
        over_exams=over_exams_cells(leaderboard),
        mean_ranks=critical_difference("mean-ranks", leaderboard.over_exams),
        pictures=pictures,
        scenes=[(name, list(scenes[name].sheets.values())) for name in names if scenes[name].sheets],
        replies=[(name, asked) for name in names if (asked := replies[name].questions())],
        failures=failed_groups(leaderboard, failed),
        remarks=remarks(leaderboard),
        provenance=provenance_facts(facts),
        configuration=configuration_text(facts),
        citation=citation(),
        matrices=htmlsafe_json_dumps(matrices.as_data(), separators=(",", ":")),
        style=Markup(_style()),
        script=Markup(_asset("page.js")),
        policy=_policy(),
        statements=leaderboard.statements,
    )


def _summary(leaderboard: Leaderboard, names: list[str]) -> str:
    """How much was examined, and who is first."""
    cases = sum(row.expected for row in (*leaderboard.rows, *leaderboard.references))
    count = len(leaderboard.rows)
    said = [f"{count} row{'s' * (count != 1)}", f"{leaderboard.seeds} seed{'s' * (leaderboard.seeds != 1)}"]
    said += [f"{len(names)} exams"] if len(names) > 1 else []
    said.append(f"{cases} case{'s' * (cases != 1)}")
    first = [(row.testenv, row.algorithm) for row in leaderboard.rows if row.rank == 1]
    best = "; ".join(f"{name}{f' in {exam}' if exam else ''}" for exam, name in first)
    return f"{', '.join(said)}. " + (f"First: {best}." if best else "")


@cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    return environment.get_template("page.html.j2")


def _asset(name: str) -> str:
    return files("ianvs.results.page").joinpath("assets", name).read_text(encoding="utf-8")


def _style() -> str:
    """The style sheet with the colours of rows in it."""

    def rules(colours: tuple[str, ...], grey: str) -> str:
        return "".join(f"--c{n}:{colour};" for n, colour in enumerate(colours)) + f"--cb:{grey};"

    kinds = "".join(f".c{n}{{--own:var(--c{n})}}" for n in range(len(LIGHT))) + ".cb{--own:var(--cb)}"
    light, dark = rules(LIGHT, BOUND[0]), rules(DARK, BOUND[1])
    own = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{kinds}"
    return own + "\n" + _asset("page.css")


def _policy() -> str:
    """What a browser lets the page do: use the style and the script that it came with, and nothing from anywhere."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (_style(), _asset("page.js"))
    )
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )
