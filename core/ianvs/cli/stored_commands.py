"""Commands about the results in workspaces.

`ianvs status`, `logs`, `report`, `export`: about one job; `compare`, `merge`: about several; `cache`: the size of
decoded data.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ianvs
from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.visible_text import visible
from ianvs.cli.parser import (
    add_command,
    add_job,
    counted,
    job_arguments,
    path_text,
    positive,
    settings_of,
    show,
    to_path,
)

_RENEWED = 5.0  # seconds between two updates of a watched page

if TYPE_CHECKING:
    from ianvs.results.comparing.comparison import Comparison


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    status = add_command(commands, "status", "how the job stands: what runs, what is finished, what failed", _status)
    add_job(status)
    logs = add_command(commands, "logs", "what a case printed, and its traceback if it failed", _logs)
    logs.add_argument("case", metavar="CASE", help="the beginning of its id, as in `ianvs plan`, or an algorithm")
    add_job(logs)
    prune = add_command(
        commands, "prune", "show what the workspace could do without, with sizes; --yes removes it", _prune
    )
    add_job(prune, selects=False)
    prune.add_argument(
        "--finished", action="store_true", help="also models of finished cases: only more rounds need them"
    )
    prune.add_argument("--lost", action="store_true", help="also cases that no job of the workspace has any more")
    prune.add_argument("--yes", action="store_true", help="remove what is shown without it")
    report = add_command(commands, "report", "write and show the leaderboard from what is stored", _report)
    add_job(report)
    report.add_argument("--jobs", "-j", type=positive, metavar="N", help=argparse.SUPPRESS)
    report.add_argument("--stored", action="store_true", help="also cases that were made before something changed")
    report.add_argument("--explain", action="store_true", help="also how sure the ranks are, and what each metric is")
    report.add_argument("--html", action="store_true", help="write report.html alone")
    report.add_argument("--watch", action="store_true", help="renew report.html alone while the job runs elsewhere")
    report.add_argument("--open", action="store_true", help="open report.html in the browser")


def _status(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.running.planned_results import nothing_current_message
    from ianvs.running.progress import describe, waiting_text
    from ianvs.store import JobStore

    plan = api.plan(options.file, **settings_of(options))
    queue = dict(JobStore(plan.job.workspace, plan.job.name).queue())
    counts = Counter[str]()
    for planned in plan.stored():
        running, waiting = plan.store.running(planned.case.id), queue.pop(planned.case.id, None)
        state = "running" if running else "waiting" if waiting else planned.state
        counts[state] += 1
        if running:
            print(
                f"{planned.case.id[:8]}  running     {describe(planned)}: {_where(running)} (process {running['pid']})"
            )
        elif waiting:
            print(f"{planned.case.id[:8]}  {state:<12}{describe(planned)}: {waiting_text(waiting)}")
        elif state in ("failed", "unfinished"):
            print(visible(f"{planned.case.id[:8]}  {state:<12}{describe(planned)}: {planned.reason}"))
    for reason, count in Counter(queue.values()).items():  # of cases that have never run
        print(f"{count} new: {waiting_text(reason)}")
    counts["waiting"] += len(queue)
    counts["new"] += len(plan) - counts.total()
    print(f"{plan.job.name}: {counted(+counts)}")
    if set(+counts) == {"new"}:
        if ids := JobStore(plan.job.workspace, plan.job.name).ids():
            was = Counter(
                "running" if plan.store.running(id_) else plan.store.status(id_) or "unfinished" for id_ in ids
            )
            print(f"its last run: {counted(was)}; its code, settings, data or PYTHONPATH were others.")
        print(nothing_current_message(plan.job), file=sys.stderr)
    return 0


def _where(running: Mapping[str, Any]) -> str:
    """Return the progress of a running case in words."""
    from ianvs.running.progress import round_progress_text

    seconds = max(0.0, time.time() - running["since"])  # unless the clock was moved back
    round_ = f"round {running['round']} of {running['rounds']}"
    return f"{round_}, {running['doing']} for {seconds:.0f} s{round_progress_text(running)}"


def _running(options: argparse.Namespace) -> tuple[int, tuple[str, ...]] | None:
    """Return the number of ended cases, and sentences on running and waiting ones.

    None if no case is running or waiting.
    """
    from ianvs import api
    from ianvs.running.progress import describe
    from ianvs.store import JobStore

    plan = api.plan(options.file, **settings_of(options))
    both = [(planned, plan.store.running(planned.case.id)) for planned in plan.stored()]
    lines = [f"Running: {describe(planned)}, {_where(running)}." for planned, running in both if running]
    reasons = Counter(JobStore(plan.job.workspace, plan.job.name).queue().values())
    lines += [f"{count} waiting in the queue ({reason})." for reason, count in reasons.items()]
    ended = sum(planned.state in ("finished", "failed") for planned, running in both if not running)
    return (ended, (*lines, f"{ended} of {len(plan)} cases have ended.")) if lines else None


def _logs(options: argparse.Namespace) -> int:
    from ianvs.running.progress import describe
    from ianvs.store import JobStore

    plan = ianvs.plan(options.file, **settings_of(options))
    cases = [planned for planned in plan if planned.case.id.startswith(options.case)]
    if not cases:  # includes the cases of the last run, even if something such as PYTHONPATH has changed since
        ids = [id_ for id_ in JobStore(plan.job.workspace, plan.job.name).ids() if id_.startswith(options.case)]
        if len(ids) == 1 and (log := plan.store.log(ids[0])).is_file():
            sys.stdout.write(log.read_text(errors="replace"))
            return 0
        cases = [planned for planned in plan if planned.case.algorithm.casefold() == options.case.casefold()]
        cases = [planned for planned in cases if planned.state == "failed"][:1] or cases  # whose log is wanted
    if len(cases) != 1:
        listed = "".join(f"\n  {c.case.id[:8]}  {describe(c)}: {c.state}" for c in cases[:_MOST_LISTED])
        if listed:
            more = f"\n  and {len(cases) - _MOST_LISTED} more" if len(cases) > _MOST_LISTED else ""
            raise IanvsError(f"'{options.case}' may be any of {len(cases)} cases:{listed}{more}", code="ambiguous-name")
        raise IanvsError(
            f"no case '{options.case}'. `ianvs plan -f {options.file}` lists the cases.", code="unknown-name"
        )
    log = plan.store.log(cases[0].case.id)
    if not log.is_file():
        raise IanvsError(
            f"{describe(cases[0])} has no log: it has not run, or ran with `engine: inline`.", code="missing-results"
        )
    text = log.read_text(errors="replace")
    if text.strip():
        sys.stdout.write(text)
    else:
        names = ", ".join(sorted(path.name for path in log.parent.iterdir()))
        state = f"It is {cases[0].state} ({cases[0].reason}); {os.path.relpath(log.parent)} holds {names}."
        print(f"{describe(cases[0])} has printed nothing. {state}")
    return 0


_MOST_LISTED = 20
_PRUNED = {
    "old": "models of rounds before the last",
    "finished": "models of finished cases",
    "lost": "cases that no job has any more",
}


def _prune(options: argparse.Namespace) -> int:
    from ianvs import api

    entries = api.prune(
        options.file, **settings_of(options), finished=options.finished, lost=options.lost, yes=options.yes
    )
    for kind, label in _PRUNED.items():
        some = [entry for entry in entries if entry.kind == kind]
        algorithms = Counter(entry.algorithm or "unknown" for entry in some)
        by_algorithm = f" ({', '.join(f'{count} of {name}' for name, count in algorithms.items())})" if some else ""
        if some or kind == "old" or getattr(options, kind):
            size = sum(entry.bytes for entry in some) / 1e6
            print(f"{len(some)} {label}{by_algorithm}: {sum(entry.files for entry in some)} files, {size:,.1f} MB")
    if options.yes:
        print(f"{sum(entry.bytes for entry in entries) / 1e6:,.1f} MB removed.")
    else:
        more = " and ".join(f"--{kind}" for kind in ("finished", "lost") if not getattr(options, kind))
        print(
            ("Nothing was removed: --yes removes it." if entries else "Nothing to remove.")
            + (f" {more} {'show' if ' ' in more else 'shows'} more." if more else "")
        )
    return 0


def _report(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.store.job_store import report_folder

    only = options.html or options.watch
    opened = False
    while options.watch and (running := _running(options)):
        if running[0]:  # before that there is nothing to report
            results = api.report(
                options.file, **settings_of(options), page_only=True, stored=options.stored, running=running[1]
            )
            if options.open and not opened:
                opened = _open(report_folder(results.workspace / results.name) / "report.html")
        time.sleep(_RENEWED)
    results = api.report(options.file, **settings_of(options), page_only=only, stored=options.stored)
    page = report_folder(results.workspace / results.name) / "report.html"
    if only:
        print(f"page: {os.path.relpath(page)}")
    else:
        show(results, job_arguments(options), explain=options.explain)
    if options.open and not opened:
        _open(page)
    return 0


def _open(page: Path) -> bool:
    import webbrowser

    if not webbrowser.open(page.absolute().as_uri()):
        print(f"warning: there is no browser here to open {os.path.relpath(page)} with", file=sys.stderr)
    return True


def add_export(commands: argparse._SubParsersAction[Any]) -> None:
    about = "stored results for pandas, MLflow, TensorBoard, W&B, Hugging Face"
    parser = add_command(commands, "export", about, _export)
    about = "a job file, the name of a job, WORKSPACE, or WORKSPACE:JOB"
    parser.add_argument("-f", "--file", required=True, type=path_text, metavar="JOB", help=about)
    parser.add_argument(
        "--workspace", type=to_path, metavar="DIR", help="where the results are, over what the file says"
    )
    about = "parquet, mlflow, tensorboard, wandb, huggingface, or what an installed package brings"
    parser.add_argument("--to", required=True, metavar="TOOL", help=about)
    parser.add_argument(
        "--out", required=True, type=to_path, metavar="DIR", help="a new folder; nothing is overwritten"
    )


def _export(options: argparse.Namespace) -> int:
    out = ianvs.export(options.file, options.to, options.out, workspace=options.workspace)
    print(f"files: {shown_path(out)}")
    return 0


def add_cache(commands: argparse._SubParsersAction[Any]) -> None:
    parser = add_command(commands, "cache", "what decoded data take on the disk, and making room", _cache)
    parser.add_argument("workspace", type=to_path, metavar="WORKSPACE", help="a workspace, or the cache itself")
    about = "show what nobody has used for so many days; with --yes, remove it. All of it can be made again"
    parser.add_argument("--prune", type=float, metavar="DAYS", help=about)
    parser.add_argument("--yes", action="store_true", help="remove what --prune shows")


def _cache(options: argparse.Namespace) -> int:
    from ianvs.exam.data.cache_entries import CacheEntry, cache_entries, remove_entries
    from ianvs.exam.data.throughput import format_bytes

    below = options.workspace / "cache"
    cache = below if below.is_dir() else options.workspace
    if not (cache / "digests").is_dir() and cache != below:
        raise IanvsError(f"{shown_path(options.workspace)} is no workspace that holds a cache.", code="missing-results")
    if options.yes and options.prune is None:
        raise IanvsError("--yes goes with --prune DAYS, which says what is to be removed.", code="invalid-argument")
    if options.prune is not None and options.prune < 0:
        raise IanvsError(f"--prune {options.prune:g}: expected a number of days, 0 or more.", code="invalid-argument")
    chosen = cache_entries(cache)
    if options.prune is not None:
        chosen = [entry for entry in chosen if entry.unused_for(options.prune)]

    def total(entries: list[CacheEntry]) -> str:
        count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        return f"{count}, {format_bytes(sum(entry.size for entry in entries))}"

    for entry in chosen:
        days = max(0.0, time.time() - entry.used) / 86400
        print(
            f"{format_bytes(entry.size):>11}  used {days:5.1f} days ago  "
            f"{entry.folder.name[:24]:<26}{entry.description}"
        )
    if options.prune is None:
        print(f"{shown_path(cache)}: {total(chosen)}")
    elif options.yes:
        removed = remove_entries(chosen)
        print(f"removed: {total(removed)}")
    else:
        print(f"not used for {options.prune:g} days: {total(chosen)}" + ("; --yes removes them" if chosen else ""))
    return 0


_SIDE = "WORKSPACE, WORKSPACE:JOB, or a job file"


def add_comparing(commands: argparse._SubParsersAction[Any]) -> None:
    about = "what differs between two or more workspaces, and what got better"
    parser = add_command(commands, "compare", about, _compare)
    parser.add_argument(
        "sides", nargs="+", type=path_text, metavar="A", help=f"{_SIDE}, or a report; the first is compared with"
    )
    about = "exit status 1 if the mean of any row got worse by more than that, or is gone; may be repeated"
    parser.add_argument("--fail-if-worse", action="append", default=[], type=_limit, metavar="METRIC:0.01", help=about)
    _for_machines(parser)

    parser = add_command(commands, "merge", "results of several workspaces in a new one, with one leaderboard", _merge)
    parser.add_argument("sources", nargs="+", type=path_text, metavar="A", help=_SIDE)
    parser.add_argument("--out", required=True, type=to_path, metavar="DIR", help="the new workspace")


def _for_machines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=to_path, metavar="FILE", help="write it as json, too")
    parser.add_argument("--csv", type=to_path, metavar="FILE", help="write it as a table with one number a line, too")


def _limit(text: str) -> tuple[str, float]:
    metric, _, number = text.rpartition(":")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not metric or not (math.isfinite(limit) and limit >= 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not METRIC:NUMBER with a number of 0 or more")
    return metric, limit


def _compare(options: argparse.Namespace) -> int:
    from ianvs.results.comparing.comparison_text import comparison_text

    comparison = ianvs.compare(options.sides)
    worse = [(limit, row) for metric, limit in options.fail_if_worse for row in comparison.worse(metric, limit)]
    print(visible(comparison_text(comparison)))
    _write(options, comparison)
    if options.fail_if_worse:
        print()
    for limit, row in worse:
        print(f"worse by more than {limit:g}: {row}")
    if options.fail_if_worse and not worse:
        limits = ", ".join(f"{metric} by more than {limit:g}" for metric, limit in options.fail_if_worse)
        print(f"No row that corresponds got worse in {limits}.")
    return 1 if worse else 0


def _merge(options: argparse.Namespace) -> int:
    from ianvs.results.report.terminal import render

    merged = ianvs.merge(options.sources, options.out)
    render(merged.results.leaderboard)
    print()
    for name, count in merged.taken.items():
        print(f"{count} cases from {name}")
    for message in merged.messages:
        print(message)
    print(f"files: {os.path.relpath(merged.results.workspace / merged.results.name / 'rank')}")
    return 0


def _write(options: argparse.Namespace, result: Comparison) -> None:
    """Write the files of the options that `_for_machines` adds."""
    from ianvs.results.comparing.comparison_text import records_csv
    from ianvs.store import write_atomic

    texts = {}
    if options.json is not None:
        texts[options.json] = json.dumps(result.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if options.csv is not None:
        texts[options.csv] = records_csv(result.records())
    for path, text in texts.items():
        try:
            write_atomic(path, text.encode())
        except OSError as error:
            raise IanvsError(
                f"{shown_path(path)} can't be written: {error.strerror}.", code="unwritable-file"
            ) from error
