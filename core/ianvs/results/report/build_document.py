"""A leaderboard -> what a report says of it, and its files: csv, markdown, LaTeX, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.results.report.columns import AGREES
from ianvs.results.report.document import Document, FailureGroup, Note
from ianvs.results.report.further_tables import further_tables
from ianvs.results.report.latex import latex
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import FailedCase, LeaderboardRow
from ianvs.results.report.markdown import markdown
from ianvs.results.report.ranking_table import ranking_tables, row_name, varied
from ianvs.results.report.row_tables import csv_of, csv_text, statistics_records
from ianvs.results.report.trials import trials_records
from ianvs.results.report.values import provenance_facts
from ianvs.store.files import write_atomic


def document_of(
    leaderboard: Leaderboard,
    title: str = "Leaderboard",
    command: str | None = None,
    pictures: Sequence[str] = (),
    provenance: Mapping[str, object] | None = None,
) -> Document:
    """command: what a reader types to get the report. pictures: paths of files, relative to the report.

    provenance: as ianvs.results.stored.provenance.collect gives it; versions, machine and commit are shown.
    """
    return Document(
        title,
        command,
        leaderboard.seeds,
        (*ranking_tables(leaderboard), *further_tables(leaderboard)),
        (*_notes(leaderboard), *_definitions(leaderboard)),
        tuple(_failures(leaderboard)),
        tuple(pictures),
        provenance_facts(provenance or {}),
    )


def _notes(leaderboard: Leaderboard) -> Iterator[Note]:
    """By what rows are ranked and how sure that is, bounds, what is odd about a row, the data, published numbers."""
    if said := _ranked_by(leaderboard):
        yield Note("ranked by", said)
    yield from (Note("statement", said) for said in leaderboard.statements)
    if said := _bounds(leaderboard):
        yield Note("bound", said)
    stuck = [_full_name(row) for row in leaderboard.rows if row.adopted is not None and not row.adopted[0]]
    if stuck:
        yield Note("gate", f"Scores of the untrained model, since model_eval adopted no other: {'; '.join(stuck)}.")
    # Complete, and yet there is more to say: a metric that some of its seeds do not have.
    odd = [row for row in leaderboard.rows if row.complete and row.status != "finished"]
    yield from (Note("row", f"{_full_name(row)}: {row.status}.") for row in odd)
    if leaderboard.sealing:
        yield Note("sealing", leaderboard.sealing)
    seeds = sorted({seed for row in leaderboard.rows for seed in (*row.seeds, *(f.seed for f in row.failures))})
    if seeds:
        yield Note("seeds", f"Seeds: {', '.join(map(str, seeds))}.")
    yield from (Note("data", said) for said in leaderboard.notes if said)
    yield from (Note("published", said) for said in _published(leaderboard))
    yield from _remarks(leaderboard)


def _ranked_by(leaderboard: Leaderboard) -> str:
    keys = [f"{name} ({'higher' if falls else 'lower'} is better)" for name, falls in leaderboard.sort_by]
    if not keys:
        return ""
    many = f"Mean ± sample standard deviation over {leaderboard.seeds} seeds."
    spread = many if leaderboard.seeds > 1 else "One seed: nothing is known of the spread."
    return f"Ranked by {', then '.join(keys)}. {spread}"


def _bounds(leaderboard: Leaderboard) -> str:
    several = {row.testenv for row in leaderboard.rows if row.rounds > 1}
    saw: dict[str, list[str]] = {}
    for row in leaderboard.rows:
        if row.bound:
            at_once = row.rounds == 1 and row.testenv in several
            saw.setdefault("all rounds at once" if at_once else "past rounds by declaration", []).append(row.algorithm)
    said = [f"{', '.join(dict.fromkeys(names))} saw {what}" for what, names in saw.items()]
    return f"bound: {'; '.join(said)}: a reference, not a competitor; it takes no rank." if said else ""


def _full_name(row: LeaderboardRow) -> str:
    return f"{row_name(row)} ({row.settings() or 'no hyperparameters'})"


def _published(leaderboard: Leaderboard) -> list[str]:
    """One line for each published number, with its source, once for equal rows."""
    shown = [column.key for column in leaderboard.columns if column.kind == "published"]
    lines: dict[str, None] = {}
    for row in leaderboard.rows:
        for name in (name for name in shown if name in row.published):
            spec = row.published[name]
            mean, std, margin = spec.in_our_unit()
            spread = "" if std is None else f" ± {std:.4g}"
            runs = "" if spec.n is None else f", {spec.n} runs"
            lines[f"{row.algorithm}, {name}: {mean:.4g}{spread}{runs}, margin {margin:g}: {spec.source}"] = None
    return list(lines)


def _remarks(leaderboard: Leaderboard) -> Iterator[Note]:
    """What the methods say of how it went, for every seed."""
    telling = varied(leaderboard)
    for row in leaderboard.rows:
        which = ", ".join(filter(None, (row.testenv, row.settings(telling))))
        name = f"{row.algorithm} ({which})" if which else row.algorithm
        yield from (Note("remark", said, f"{name}, seed {seed}") for seed, said in row.remarks.items())


def _definitions(leaderboard: Leaderboard) -> Iterator[Note]:
    """One for each metric column: which definition it is; and what is said of published numbers."""
    from ianvs.exam.metrics.table import legend

    names = (column.key for column in leaderboard.columns if column.kind == "metric")
    yield from (Note("definition", line) for line in legend(zip(names, leaderboard.metrics, strict=True)))
    if any(row.published for row in leaderboard.rows):
        yield Note("definition", AGREES, "agrees")


def _failures(leaderboard: Leaderboard) -> Iterator[FailureGroup]:
    """Each reason once, in the order of the rows."""
    found: dict[str, list[tuple[LeaderboardRow, FailedCase]]] = {}
    for row, failure in leaderboard.failures:
        found.setdefault(failure.text(200), []).append((row, failure))
    for reason, cases in found.items():
        first = next((failure for _, failure in cases if failure.log is not None), None)
        yield FailureGroup(_which(cases), reason, len(cases), first)


def _which(cases: Sequence[tuple[LeaderboardRow, FailedCase]]) -> str:
    """ "ewc (strength=100; seeds 0, 1)", or "8 cases of ewc, lwf" where they are of several rows."""
    rows = list({row.id: row for row, _ in cases}.values())
    names = list(dict.fromkeys(row_name(row) for row, _ in cases))
    if len(rows) > 1:
        return f"{len(cases)} cases of {', '.join(names)}"
    seeds = [str(failure.seed) for _, failure in cases]
    told = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
    return f"{names[0]} ({'; '.join(filter(None, (rows[0].settings(), told)))})"


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
    """Write `directory`/rank/: all_rank.csv, selected_rank.csv, statistics.csv, leaderboard.md and .tex, pictures/;
    trials.csv of a search.

    Returns what now is there.
    results: the cases behind the leaderboard; read once, and only when pictures are asked for, by `save_mode` or by the
    visualization method. selected_rank.csv and the leaderboards show what `rank` selects, all_rank.csv everything;
    `save_mode: selected_only` leaves all_rank.csv out.
    """
    folder = directory / "rank"
    selected = leaderboard.select(rank)
    written: list[Path] = []

    def put(name: str, text: str) -> None:
        write_atomic(folder / name, text.encode())
        written.append(folder / name)

    if rank.save_mode != "selected_only":
        put("all_rank.csv", csv_text(leaderboard))
    put("selected_rank.csv", csv_text(selected))
    put("statistics.csv", csv_of(statistics_records(leaderboard)))
    if leaderboard.studies:
        put("trials.csv", csv_of(trials_records(leaderboard.studies)))
    pictures: list[Path] = []
    if rank.save_mode == "selected_and_all_and_picture" or rank.visualization_method == "draw_heatmap_picture":
        from ianvs.results.report.pictures import write_pictures

        pictures = write_pictures(selected, results, folder / "pictures")
    names = [path.relative_to(folder).as_posix() for path in pictures]
    document = document_of(selected, title, command, names, provenance)
    put("leaderboard.md", markdown(document))
    put("leaderboard.tex", latex(document))
    return (*written, *pictures)
