"""`ianvs examples CHECKOUT`: which jobs of a checkout of KubeEdge Ianvs start and finish, and why the others don't."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from ianvs.base.errors import IanvsError, shown_path
from ianvs.cli.parser import add_command, positive

if TYPE_CHECKING:
    from ianvs.cli.ianvs_examples.one_example import Example, Limits

_ACTION = Path(__file__).with_name("action.yaml")


def add_examples(commands: argparse._SubParsersAction[Any]) -> None:
    about = "try every job of a checkout of KubeEdge Ianvs on tiny data, in a copy, and write one table"
    parser = add_command(commands, "examples", about, _examples)
    parser.add_argument(
        "checkout", nargs="?", type=Path, metavar="CHECKOUT", help="its folder; nothing there is written"
    )
    parser.add_argument("--out", type=Path, default=Path("ianvs_examples"), metavar="DIR", help="where the table goes")
    parser.add_argument("--only", metavar="WORDS", help="only jobs whose path contains this")
    parser.add_argument("--jobs", "-j", type=positive, default=1, metavar="N", help="jobs at a time (default: 1)")
    parser.add_argument("--seconds", type=positive, default=900, metavar="N", help="what a job may take (default: 900)")
    parser.add_argument("--memory", type=positive, default=6000, metavar="MB", help="and each case (default: 6000)")
    parser.add_argument("--rerun", action="store_true", help="also jobs that were tried and have not changed since")
    parser.add_argument("--action", action="store_true", help="print an action file for GitHub that does this")


def _examples(options: argparse.Namespace) -> int:
    if options.action:
        print(_ACTION.read_text(encoding="utf-8"), end="")
        return 0
    from ianvs.cli.ianvs_examples.examples_table import write_table
    from ianvs.cli.ianvs_examples.one_example import Limits

    if options.checkout is None or not options.checkout.is_dir():
        raise IanvsError(f"there is no folder {options.checkout}. Name a checkout of KubeEdge Ianvs.")
    checkout, out = options.checkout.resolve(), options.out.resolve()
    if out.is_relative_to(checkout):
        raise IanvsError(f"{shown_path(out)} is in the checkout, which stays as it is. Give --out another folder.")
    jobs = [job for job in _jobs(checkout) if not options.only or options.only in str(job)]
    if not jobs:
        raise IanvsError(
            f"no yaml below {shown_path(checkout)} has a benchmarkingjob. Name a checkout of KubeEdge Ianvs."
        )
    (out / "jobs").mkdir(parents=True, exist_ok=True)
    limits = Limits(options.seconds, options.memory)

    def one(job: Path) -> Example:
        row = _tried_before(job, checkout, out, limits, options.rerun)
        print(f"{job}: {'finishes' if row.finishes else row.missing}", file=sys.stderr, flush=True)
        return row

    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(one, jobs))
    print(write_table(rows, out, _commit(checkout)))
    print(f"files: {shown_path(out / 'examples.md')}, examples.csv, badge.json; logs in {shown_path(out / 'jobs')}")
    return 0


def _jobs(checkout: Path) -> list[Path]:
    """All yaml files of the checkout that have a benchmarkingjob, relative to it."""
    files = sorted(file for kind in ("*.yaml", "*.yml") for file in checkout.rglob(kind) if ".git" not in file.parts)
    return [file.relative_to(checkout) for file in files if _is_job(file)]


def _is_job(file: Path) -> bool:
    return re.search(rb"^benchmarkingjob\s*:", file.read_bytes(), re.MULTILINE) is not None


def _tried_before(job: Path, checkout: Path, out: Path, limits: Limits, again: bool) -> Example:
    """What is stored of the job if its example's files are the same, else what trying it shows."""
    from ianvs.cli.ianvs_examples.one_example import Example, tried

    folder = out / "jobs" / re.sub(r"\W+", "_", str(job.with_suffix("")))
    stored, key = folder / "example.json", _digest(job, checkout, limits)
    if stored.is_file() and not again:
        found = json.loads(stored.read_bytes())
        if found["key"] == key:
            return Example(**found["example"])
    begun = monotonic()
    row = tried(job, checkout, folder, limits)
    row = Example(**{**row.as_dict(), "seconds": round(monotonic() - begun, 1)})
    stored.write_text(json.dumps({"key": key, "example": row.as_dict()}, indent=1) + "\n", encoding="utf-8")
    return row


def _digest(job: Path, checkout: Path, limits: Limits) -> str:
    """Of all that decides how it goes: files of its example, limits, this Python and its packages."""
    below = checkout.joinpath(*job.parts[:2]) if len(job.parts) > 2 else (checkout / job).parent
    parts: Iterator[Path] = (file for file in sorted(below.rglob("*")) if file.is_file())
    about = hashlib.sha256(repr((limits, sys.executable, sorted(_installed()))).encode())
    for file in parts:
        about.update(f"{file.relative_to(below)}\0".encode())
        about.update(hashlib.sha256(file.read_bytes()).digest())
    return about.hexdigest()


def _installed() -> set[str]:
    from importlib.metadata import distributions

    return {f"{one.name} {one.version}" for one in distributions()}


def _commit(checkout: Path) -> str:
    command = ("git", "-C", str(checkout), "log", "-1", "--format=%h")
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return f"{checkout.name}, commit {commit}"
    except (OSError, subprocess.CalledProcessError):
        return checkout.name
