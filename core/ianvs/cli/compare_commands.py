"""`ianvs compare`, `ianvs merge`, `ianvs history`: results of several workspaces beside each other.

The history is a command of its own, and no option of `report`: that takes one job file and writes into its workspace.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SIDE = "WORKSPACE, WORKSPACE:JOB, or a job file"


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("compare", help="what differs between two or more workspaces, and what got better")
    parser.add_argument("sides", nargs="+", metavar="A", help=f"{_SIDE}, or a report; the first is compared with")
    parser.add_argument(
        "--fail-if-worse",
        action="append",
        default=[],
        type=_limit,
        metavar="METRIC:0.01",
        help="exit status 1 if the mean of any row got worse by more than that, or is gone; may be repeated",
    )
    _for_machines(parser)
    parser.set_defaults(command=_compare)

    parser = commands.add_parser("merge", help="results of several workspaces in a new one, with one leaderboard")
    parser.add_argument("sources", nargs="+", metavar="A", help=_SIDE)
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the new workspace")
    parser.set_defaults(command=_merge)

    parser = commands.add_parser("history", help="a metric from one workspace to the next, in the order of commits")
    parser.add_argument("workspaces", nargs="+", metavar="A", help=_SIDE)
    parser.add_argument("--metric", metavar="NAME", help="a metric's column (default: what the first is ranked by)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it; .svg")
    _for_machines(parser)
    parser.set_defaults(command=_history)


def _for_machines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it as json, too")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write it as a table with one number a line, too")


def _limit(text: str) -> tuple[str, float]:
    metric, _, said = text.rpartition(":")
    try:
        limit = float(said)
    except ValueError:
        limit = math.nan
    if not metric or not (math.isfinite(limit) and limit >= 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not METRIC:NUMBER with a number of 0 or more")
    return metric, limit


def _compare(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.results.comparing.comparison_text import comparison_text, records_csv

    found = api.compare(options.sides)
    worse = [(limit, one) for metric, limit in options.fail_if_worse for one in found.worse(metric, limit)]
    print(comparison_text(found))
    _write(options, found.as_dict, lambda: records_csv(found.records()))
    if options.fail_if_worse:
        print()
    for limit, one in worse:
        print(f"worse by more than {limit:g}: {one}")
    if options.fail_if_worse and not worse:
        limits = ", ".join(f"{metric} by more than {limit:g}" for metric, limit in options.fail_if_worse)
        print(f"No row that corresponds got worse in {limits}.")
    return 1 if worse else 0


def _merge(options: argparse.Namespace) -> int:
    import os

    from ianvs import api
    from ianvs.results.report import render

    merged = api.merge(options.sources, options.out)
    render(merged.results.leaderboard)
    print()
    for name, count in merged.taken.items():
        print(f"{count} cases from {name}")
    for said in merged.said:
        print(said)
    print(f"files: {os.path.relpath(merged.results.workspace / merged.results.name / 'rank')}")
    return 0


def _history(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.results.comparing.history import history_csv, history_dict, history_text
    from ianvs.results.comparing.history_picture import draw_history

    found = api.history(options.workspaces, options.metric)
    print(history_text(found))
    if options.picture is not None:
        print(f"\npicture: {draw_history(found, options.picture)}")
    _write(options, lambda: history_dict(found), lambda: history_csv(found))
    return 0


def _write(options: argparse.Namespace, data: Callable[[], object], table: Callable[[], str]) -> None:
    from ianvs.base.errors import IanvsError, shown_path
    from ianvs.store import write_atomic

    texts = {}
    if options.json is not None:
        texts[options.json] = json.dumps(data(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if options.csv is not None:
        texts[options.csv] = table()
    for path, text in texts.items():
        try:
            write_atomic(path, text.encode())
        except OSError as error:
            raise IanvsError(f"{shown_path(path)} can't be written: {error.strerror}.") from error
