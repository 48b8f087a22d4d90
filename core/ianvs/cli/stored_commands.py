"""`ianvs status`, `logs`, `report`, `export`: commands about what a workspace holds of a job."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ianvs.cli.parser import add_job, job_command, positive
from ianvs.cli.shown import counted, job_arguments, selected, show

if TYPE_CHECKING:
    from ianvs.running.planning import PlannedCase


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    status = job_command(commands, "status", "how the job stands: what runs, what is finished, what failed", _status)
    add_job(status)
    logs = job_command(commands, "logs", "what a case printed, and its traceback if it failed", _logs)
    logs.add_argument("case", metavar="CASE", help="the beginning of a case's id, as in `ianvs plan`")
    add_job(logs)
    report = job_command(commands, "report", "write and show the leaderboard from what is stored", _report)
    add_job(report)
    report.add_argument("--jobs", "-j", type=positive, metavar="N", help=argparse.SUPPRESS)
    report.add_argument("--html", action="store_true", help="write report.html alone")
    report.add_argument("--open", action="store_true", help="open report.html in the browser")


def _status(options: argparse.Namespace) -> int:
    import time

    from ianvs import api
    from ianvs.cli.progress import describe

    plan = api.plan(options.file, **selected(options))
    counts = Counter[str]()
    for planned in plan:
        running = plan.store.running(planned.case.id)
        state = "running" if running else planned.state
        counts[state] += 1
        if running:
            seconds = max(0.0, time.time() - running["since"])  # unless the clock was moved back
            where = f"round {running['round']} of {running['rounds']}, {running['doing']} for {seconds:.0f} s"
            print(f"{planned.case.id[:8]}  running   {describe(planned)}: {where} (process {running['pid']})")
        elif state in ("failed", "unfinished"):
            print(f"{planned.case.id[:8]}  {state:<10}{describe(planned)}: {planned.reason}")
    print(f"{plan.job.name}: {counted(counts)}")
    if set(counts) == {"new"}:
        print(api.nothing_stored(plan.job.workspace), file=sys.stderr)
    return 0


def _logs(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.base.errors import IanvsError
    from ianvs.base.secrets import hide_secrets
    from ianvs.cli.progress import describe

    plan = api.plan(options.file, **selected(options))
    found = [planned for planned in plan if planned.case.id.startswith(options.case)]
    if len(found) != 1:
        listed = "".join(f"\n  {planned.case.id[:8]}  {describe(planned)}" for planned in found)
        if listed:
            raise IanvsError(f"'{options.case}' begins the ids of {len(found)} cases:{listed}")
        raise IanvsError(f"no case '{options.case}'. `ianvs plan -f {options.file}` lists the cases.")
    log = plan.store.log(found[0].case.id)
    if not log.is_file():
        raise IanvsError(f"{describe(found[0])} has no log: it has not run, or ran with `engine: inline`.")
    text = log.read_text(errors="replace")
    if text.strip():
        sys.stdout.write(hide_secrets(text, known=plan.secrets))  # an earlier version may have written it
    else:
        print(f"{describe(found[0])} has printed nothing. {_known(found[0], plan.store.folder(found[0].case.id))}")
    return 0


def _known(planned: PlannedCase, folder: Path) -> str:
    """What there is of a case beside an empty log."""
    names = ", ".join(sorted(path.name for path in folder.iterdir()))
    return f"It is {planned.state} ({planned.reason}); {os.path.relpath(folder)} holds {names}."


def _report(options: argparse.Namespace) -> int:
    from ianvs import api

    results = api.report(options.file, **selected(options), page_only=options.html)
    page = results.workspace / results.name / "rank" / "report.html"
    if options.html:
        print(f"page: {os.path.relpath(page)}")
    else:
        show(results, job_arguments(options))
    if options.open:
        _open(page)
    return 0


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.absolute().as_uri()):
        print(f"warning: there is no browser here to open {os.path.relpath(page)} with", file=sys.stderr)


def add_export(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("export", help="stored results for pandas, MLflow, TensorBoard, W&B, Hugging Face")
    parser.add_argument(
        *("-f", "--file"),
        dest="file",
        required=True,
        metavar="JOB",
        help="a job file, the name of a job, WORKSPACE, or WORKSPACE:JOB",
    )
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="where the results are, over what the file says")
    parser.add_argument(
        "--to",
        required=True,
        metavar="TOOL",
        help="parquet, mlflow, tensorboard, wandb, huggingface, or what an installed package brings",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder; nothing is overwritten")
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.base.errors import shown_path

    out = api.export(options.file, options.to, options.out, workspace=options.workspace)
    print(f"files: {shown_path(out)}")
    return 0
