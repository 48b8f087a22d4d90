"""The leaderboard as a markdown page that can be read without anything else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ianvs.results.report.constant_columns import constants_note, without_constants
from ianvs.results.report.exams_table import exams_table
from ianvs.results.report.layout import (
    FailureGroup,
    failure_groups,
    legend,
    plain_table,
    published_notes,
    ranking_notes,
    tabulated,
    text_columns,
    varied,
)
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.provenance_facts import provenance_facts
from ianvs.results.report.significance_table import significance_table
from ianvs.results.report.trials import search_section

__all__ = ["markdown"]

# What github makes a link of without any brackets too; an underscore marks nothing within a word.
_MARKUP = re.compile(r"[]|*<`\\[~&$]|(?<![^\W_])_|_(?![^\W_])|^[#>]|^[+-](?= )|:(?=//)|(?<=\bwww)\.|@")


def markdown(
    leaderboard: Leaderboard,
    title: str = "Leaderboard",
    command: str | None = None,
    pictures: Sequence[str] = (),
    provenance: Mapping[str, object] | None = None,
) -> str:
    """The page: table, how it is ranked, what each metric means, bounds, failures, and how to make it again.

    command: what a reader types to get this page. pictures: paths relative to the page.
    provenance: as ianvs.results.stored.provenance.collect gives it; versions, machine and commit are shown.
    """
    differing, told_once = without_constants(text_columns(leaderboard))
    columns = []
    for column in differing:
        plain = replace(column.column, title=_escape(column.title))
        columns.append(replace(column, column=plain, cells=tuple(map(_escape, column.cells))))
    notes = [constants_note(told_once), *ranking_notes(leaderboard), _seeds(leaderboard), *leaderboard.notes]
    failures = [_failed(group) for group in failure_groups(leaderboard)]
    blocks = [
        f"# {_escape(title)}",
        f"Made by:\n\n{_fenced(command)}" if command else "",
        plain_table(columns, "github"),
        *map(_escape, filter(None, notes)),
        _section("Metrics", [f"- {_escape(line)}" for line in legend(leaderboard)]),
        _section("Published", [f"- {_escape(line)}" for line in published_notes(leaderboard)]),
        _section("How sure", [significance_table(leaderboard, _escape)]) if leaderboard.significance else "",
        _section("Search", ["\n\n".join(search_section(leaderboard.studies, _escape))] if leaderboard.studies else []),
        _section("Over exams", [exams_table(leaderboard, _escape)]) if leaderboard.over_exams else "",
        *(by_test_set(leaderboard, testenv) for testenv in dict.fromkeys(row.testenv for row in leaderboard.rows)),
        _section("Remarks", _remarks(leaderboard)),
        _section("Failed cases", failures),
        _section("Pictures", [f"![{_escape(PurePosixPath(path).stem)}](<{path}>)" for path in pictures]),
        _section("Provenance", _provenance(provenance or {})),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def by_test_set(leaderboard: Leaderboard, testenv: str = "") -> str:
    """What became of each test set: its score just after its round, and after the last one. "" for a single one.

    testenv: of the rows that are told of.
    """
    rows = [row for row in leaderboard.rows if row.testenv == testenv and len(row.tests) > 1]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row.tests))
    names_that_vary = varied(leaderboard)
    table = [
        [
            _escape(row.algorithm),
            _escape(row.settings(names_that_vary)),
            *(_kept(row, name) for name in names),
        ]
        for row in rows
    ]
    score = next(iter(rows[0].tests.values()))[0]
    said = f"{score} on each test set: just after its round -> after the last round. Mean over seeds."
    text = tabulated(["Algorithm", "Hyperparameters", *map(_escape, names)], table)
    heading = f"By test set: {_escape(testenv)}" if testenv else "By test set"
    return f"## {heading}\n\n{_escape(said)}\n\n{text}"


def _failed(group: FailureGroup) -> str:
    told = f"- {_escape(f'{group.which}: {group.reason}')}"
    return f"{told}; {group.which_log} `{group.logged.log_shown}`" if group.logged else told


def _remarks(leaderboard: Leaderboard) -> list[str]:
    """What the methods say of how it went, for every seed."""
    lines, telling = [], varied(leaderboard)
    for row in leaderboard.rows:
        which = ", ".join(filter(None, (row.testenv, row.settings(telling))))
        name = f"{row.algorithm} ({which})" if which else row.algorithm
        lines += [f"- {_escape(name)}, seed {seed}: {_escape(text)}" for seed, text in row.remarks.items()]
    return lines


def _kept(row: LeaderboardRow, name: str) -> str:
    if name not in row.tests:
        return ""
    _, learned, final = row.tests[name]
    after = "" if final.mean is None else f"{final.mean:.3f}"
    return after if learned.mean is None else f"{learned.mean:.3f} -> {after}"


def _escape(text: str) -> str:
    """`text` in one line, read by markdown as it stands: no picture, link or html of whoever chose a name."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""


def _seeds(leaderboard: Leaderboard) -> str:
    seeds = sorted({seed for row in leaderboard.rows for seed in (*row.seeds, *(f.seed for f in row.failures))})
    return f"Seeds: {', '.join(map(str, seeds))}." if seeds else ""


def _provenance(found: Mapping[str, object]) -> list[str]:
    return [f"- {name}: {_escape(fact)}" for name, fact in provenance_facts(found).items()]
