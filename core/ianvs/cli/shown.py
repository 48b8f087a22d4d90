"""What commands about a job share: what they hand on, and what they print."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ianvs.api import Results
    from ianvs.base.errors import Problem


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """What every command about a job hands on."""
    return {"workspace": options.workspace, "root": options.root, "settings": options.settings}


def selected(options: argparse.Namespace) -> dict[str, Any]:
    """The same, with the cases that are asked for."""
    return {**settings_of(options), "only": options.only, "limit": options.limit}


def job_arguments(options: argparse.Namespace) -> str:
    """What a further command has to say of the job to mean the same, but for secrets."""
    from ianvs.base.secrets import without_secret

    parts = ["-f", str(options.file)]
    for name in ("workspace", "root"):
        if (value := getattr(options, name)) is not None:
            parts += [f"--{name}", str(value)]
    for setting in options.settings:
        parts += ["--set", without_secret(setting)]
    return shlex.join(parts)


def counted(states: Counter[str]) -> str:
    """How many cases there are of each state."""
    return f"{states.total()} cases: " + ", ".join(f"{count} {state}" for state, count in states.items())


def warn(warnings: Sequence[Problem]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def show(results: Results, job: str) -> None:
    """The leaderboard, and where its files are. job: what a further command has to say of the job."""
    from ianvs.results.report import render

    render(results.leaderboard)
    folder = results.workspace / results.name / "rank"
    print(f"\nfiles: {os.path.relpath(folder)}")
    failed = [case for case in results if case.status == "failed"]
    if failed:
        others = f"; {len(failed) - 1} more failed, see `ianvs status {job}`" if len(failed) > 1 else ""
        print(f"`ianvs logs {failed[0].case.id[:8]} {job}` shows why {failed[0].case.algorithm} failed{others}.")
