"""Builds a document from a leaderboard, and writes its files: csv, markdown, LaTeX, images."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ianvs.base.types import CaseResult
from ianvs.config.contracts import contract_named
from ianvs.config.spec import RankSpec
from ianvs.results.report.document import Document
from ianvs.results.report.further_tables import further_tables
from ianvs.results.report.latex import latex
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.markdown import markdown
from ianvs.results.report.notes import failures_of, notes_of
from ianvs.results.report.ranking_table import ranking_tables
from ianvs.results.report.row_tables import csv_of, csv_text, proposal_report, statistics_records
from ianvs.results.report.trials import trials_records
from ianvs.results.report.values import provenance_facts
from ianvs.store.files import write_atomic
from ianvs.store.job_store import report_folder


def document_of(
    leaderboard: Leaderboard,
    title: str = "Leaderboard",
    command: str | None = None,
    pictures: Sequence[str] = (),
    provenance: Mapping[str, object] | None = None,
) -> Document:
    """Build the document of a leaderboard.

    Args:
        leaderboard: The leaderboard.
        title: The title.
        command: The command that produces the report.
        pictures: Paths of image files, relative to the report.
        provenance: From ianvs.results.stored.provenance.collect; versions, machine and commit are shown.
    """
    return Document(
        title,
        command,
        leaderboard.seeds,
        (*ranking_tables(leaderboard), *further_tables(leaderboard)),
        notes_of(leaderboard),
        tuple(failures_of(leaderboard)),
        tuple(pictures),
        provenance_facts(provenance or {}),
    )


def write_reports(
    leaderboard: Leaderboard,
    results: Iterable[CaseResult],
    rank: RankSpec,
    directory: Path,
    *,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Write the files of a report to `directory`/rank/, or to the result of `report_folder`, and return their paths.

    They are all_rank.csv, selected_rank.csv, statistics.csv, notes.csv, leaderboard.md and .tex, images/, and
    trials.csv of a search. selected_rank.csv and the leaderboards show what `rank` selects, all_rank.csv everything;
    `save_mode: selected_only` leaves all_rank.csv out.

    results: the cases of the leaderboard, read only for images (requested by `save_mode` or the visualization method)
    or tables in another `style`.
    """
    folder = report_folder(directory)
    selected = leaderboard.select(rank)
    written: list[Path] = []

    def put(name: str, text: str) -> None:
        write_atomic(folder / name, text.encode())
        written.append(folder / name)

    if rank.save_mode != "selected_only":
        put("all_rank.csv", csv_text(leaderboard))
    put("selected_rank.csv", csv_text(selected, rank.selected_output_columns))
    if rank.style == "proposal":
        put("proposal/test_report.csv", proposal_report(selected))
    elif rank.style != "native":
        for name, text in contract_named(leaderboard.contract).tables(results, rank).items():
            put(f"{rank.style}/{name}", text)
    put("statistics.csv", csv_of(statistics_records(leaderboard)))
    if leaderboard.studies:
        put("trials.csv", csv_of(trials_records(leaderboard.studies)))
    pictures: list[Path] = []
    if rank.save_mode == "selected_and_all_and_picture" or rank.visualization_method == "draw_heatmap_picture":
        from ianvs.results.report.pictures import write_pictures

        pictures = write_pictures(selected, results, folder / "pictures")
    names = [path.relative_to(folder).as_posix() for path in pictures]
    document = document_of(selected, title, command, names, provenance)
    heads = ("kind", "about", "subject", "text", "remedy")
    put("notes.csv", csv_of([heads, *([getattr(note, name) for name in heads] for note in document.run_notes)]))
    put("leaderboard.md", markdown(document))
    put("leaderboard.tex", latex(document))
    return (*written, *pictures)
