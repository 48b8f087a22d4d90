"""`ianvs examples CHECKOUT`: which jobs of a checkout of KubeEdge Ianvs start and finish, and why the others don't."""

from __future__ import annotations

import argparse
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

from ianvs.base.errors import IanvsError, shown_path
from ianvs.cli.parser import add_command, positive, to_path

_ACTION = Path(__file__).with_name("action.yaml")
_JOB = re.compile(rb"^benchmarkingjob\s*:", re.MULTILINE)


def add_examples(commands: argparse._SubParsersAction[Any]) -> None:
    about = "try every job of a checkout of KubeEdge Ianvs on tiny data, in a copy, and write one table"
    parser = add_command(commands, "examples", about, _examples)
    parser.add_argument(
        "checkout", nargs="?", type=to_path, metavar="CHECKOUT", help="its folder; nothing there is written"
    )
    parser.add_argument(
        "--out", type=to_path, default=Path("ianvs_examples"), metavar="DIR", help="where the table goes"
    )
    parser.add_argument("--only", metavar="WORDS", help="only jobs whose path contains this; other rows stay")
    parser.add_argument(
        "--baseline",
        type=to_path,
        metavar="TABLE",
        help="an earlier examples.csv (default: that in DIR, before this run)",
    )
    parser.add_argument("--jobs", "-j", type=positive, default=1, metavar="N", help="jobs at a time (default: 1)")
    parser.add_argument("--seconds", type=positive, default=900, metavar="N", help="what a job may take (default: 900)")
    parser.add_argument("--memory", type=positive, default=6000, metavar="MB", help="and each case (default: 6000)")
    parser.add_argument("--rerun", action="store_true", help="also jobs that were tried and have not changed since")
    parser.add_argument(
        "--install", action="store_true", help="install what an example lacks, into an environment of its own in DIR"
    )
    parser.add_argument(
        "--requirements", type=to_path, metavar="YAML", help="packages by words of a job's path, for --install"
    )
    parser.add_argument("--action", action="store_true", help="print an action file for GitHub that does this")


def _examples(options: argparse.Namespace) -> int:
    if options.action:
        print(_ACTION.read_text(encoding="utf-8"), end="")
        return 0
    import psutil

    from ianvs.cli.ianvs_examples.example_environment import Environments, read_lists
    from ianvs.cli.ianvs_examples.examples_table import new_failures, read_table, write_table
    from ianvs.cli.ianvs_examples.one_example import Example, Limits, run_example
    from ianvs.results.stored.provenance import output_of

    if options.checkout is None or not options.checkout.is_dir():
        raise IanvsError(
            f"there is no folder {options.checkout}. Name a checkout of KubeEdge Ianvs.", code="missing-file"
        )
    checkout, out = options.checkout.resolve(), options.out.resolve()
    if out.is_relative_to(checkout):
        raise IanvsError(
            f"{shown_path(out)} is in the checkout, which stays as it is. Give --out another folder.",
            code="existing-output",
        )
    files = sorted(file for kind in ("*.yaml", "*.yml") for file in checkout.rglob(kind) if ".git" not in file.parts)
    every = [file.relative_to(checkout) for file in files if _JOB.search(file.read_bytes())]
    jobs = [job for job in every if not options.only or options.only in str(job)]
    if not jobs:
        raise IanvsError(
            f"no yaml below {shown_path(checkout)} has a benchmarkingjob. Name a checkout of KubeEdge Ianvs.",
            code="missing-file",
        )
    limits, stop = Limits(options.seconds, options.memory), Event()
    lists = read_lists(options.requirements)
    environments = Environments(out / "environments", lists) if options.install or lists else None
    before = read_table(out / "examples.csv") if (out / "examples.csv").is_file() else {}
    baseline = read_table(options.baseline) if options.baseline else before

    def try_job(job: Path) -> Example:
        row = run_example(job, checkout, out / "jobs", limits, options.rerun, stop, environments)
        print(f"{job}: {'finishes' if row.finishes else row.missing}", file=sys.stderr, flush=True)
        return row

    pool = ThreadPoolExecutor(options.jobs)
    tries = [pool.submit(try_job, job) for job in jobs]
    try:
        tried_now = [each.result() for each in tries]
    except KeyboardInterrupt:  # SIGTERM, too
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        while any(each.running() for each in tries):
            for process in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):
                    process.terminate()
            sleep(0.2)
        raise
    pool.shutdown()
    job_names = {str(job) for job in every}
    others = [row for name, row in before.items() if name in job_names and name not in {row.job for row in tried_now}]
    rows = sorted([*others, *tried_now], key=lambda row: row.job)
    commit = output_of(["git", "-C", str(checkout), "log", "-1", "--format=%h"])
    print(write_table(rows, out, f"{checkout.name}, commit {commit}" if commit else checkout.name))
    print(f"files: {shown_path(out / 'examples.md')}, examples.csv, badge.json; logs in {shown_path(out / 'jobs')}")
    worse = new_failures(tried_now, baseline)
    for row in worse:
        print(f"new failure: {row.job}: {row.cause}: {row.missing}")
    return 1 if worse else 0
