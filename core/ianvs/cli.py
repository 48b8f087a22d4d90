"""The command `ianvs`: a thin shell over the Python API.

Nothing heavy is imported here: each command imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ianvs.api import Results
    from ianvs.errors import Problem

__all__ = ["main"]

_DESCRIPTION = """\
Examines continual-learning algorithms and ranks them.

  ianvs -f benchmarkingjob.yaml            run what is not finished, write and show the leaderboard
  ianvs -f digits_class_incremental        the same with a job that comes with ianvs
  ianvs jobs [NAME]                        list the jobs that come with ianvs, or print the files of one
  ianvs validate -f benchmarkingjob.yaml   make every check of a run, train nothing
  ianvs plan -f benchmarkingjob.yaml       list the test cases: new, finished, failed, and why
  ianvs exam -f benchmarkingjob.yaml       show the rounds, test sets and rules; --save FILE to share them
  ianvs status -f benchmarkingjob.yaml     how a job stands that runs in another terminal
  ianvs logs CASE -f benchmarkingjob.yaml  what a case printed; CASE is the beginning of its id
  ianvs report -f benchmarkingjob.yaml     write and show the leaderboard of what is stored
  ianvs compare A B                        what differs between workspaces, and what got better or worse
  ianvs merge A B --out DIR                results of several workspaces in a new one, one leaderboard
  ianvs history A B C                      a metric from one workspace to the next, in the order of commits
  ianvs metrics                            list the metrics and their definitions
  ianvs migrate JOB --out DIR              write a job for KubeEdge Ianvs in our own form
  ianvs dataset prepare NAME --root --out  index files for a dataset as it was downloaded
  ianvs metrics compute FILE               every metric of a score matrix (json or csv), as json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status: 0 good, 1 a case failed or got worse, 2 wrong input, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    if not given:
        parser.print_help()
        return 2
    if given[0].startswith("-") and given[0] not in ("-h", "--help", "--version"):
        given.insert(0, "run")  # `ianvs -f JOB`, as Ianvs's users type it
    options = parser.parse_args(given)
    from ianvs.errors import IanvsError

    # Slurm and Kubernetes end a job by SIGTERM: it ends as by Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
        return status
    except IanvsError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `ianvs plan ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    from ianvs import cli_compare, cli_export, cli_jobs, cli_metrics
    from ianvs.testenv.datasets.dataset_command import add_commands

    parser = argparse.ArgumentParser(
        prog="ianvs", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = _job_command(commands, "run", "run what is not finished, then write and show the leaderboard", _run)
    run.add_argument("--jobs", "-j", type=_positive, metavar="N", help="test cases at a time (default: by cores)")
    run.add_argument("--rerun", metavar="WHICH", help="start over: failed, all, or conditions such as ewc,seed=1")
    going = run.add_mutually_exclusive_group()
    going.add_argument("--fail-fast", dest="fail_fast", action="store_true", default=None, help="stop at a failure")
    going.add_argument("--keep-going", dest="fail_fast", action="store_false", help="run all other cases (default)")

    validate = _job_command(commands, "validate", "make every check that a run begins with; train nothing", _validate)
    for command in (run, validate):
        command.add_argument("--engine", metavar="NAME", help="local, inline, ray, ...; over what the file says")
        command.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where the plugins compute")
    plan = _job_command(commands, "plan", "list the test cases and what would be done with them", _plan)
    plan.add_argument("--jobs", "-j", type=_positive, metavar="N", help=argparse.SUPPRESS)
    _job_command(commands, "status", "how the job stands: what runs, what is finished, what failed", _status)
    exam = _job_command(
        commands, "exam", "show how the data arrive: rounds, test sets, rules; save them to share", _exam
    )
    exam.add_argument("--save", type=Path, metavar="FILE", help="write the exam's manifest, which a testenv can name")
    logs = _job_command(commands, "logs", "what a case printed, and its traceback if it failed", _logs)
    logs.add_argument("case", metavar="CASE", help="the beginning of a case's id, as in `ianvs plan`")
    report = _job_command(commands, "report", "write and show the leaderboard from what is stored", _report)
    report.add_argument("--jobs", "-j", type=_positive, metavar="N", help=argparse.SUPPRESS)

    report.add_argument("--html", action="store_true", help="write report.html alone")
    report.add_argument("--open", action="store_true", help="open report.html in the browser")

    cli_compare.add_commands(commands)
    cli_export.add_commands(commands)
    cli_jobs.add_commands(commands)
    cli_metrics.add_commands(commands)
    add_commands(commands)
    return parser


def _job_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help_: str,
    command: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help_)
    spellings = ("-f", "--file", "--benchmarking_config_file")  # the last is Ianvs's
    parser.add_argument(
        *spellings, dest="file", required=True, type=Path, metavar="JOB", help="benchmarkingjob.yaml, or `ianvs jobs`"
    )
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="where results go, over what the file says")
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of the data, over dataset.root of the testenv")
    parser.set_defaults(command=command)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"ianvs {version('ianvs')}")
        parser.exit()


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return number


def _run(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.progress import listener_for

    with listener_for(sys.stderr) as listener:
        results = api.run(
            options.file,
            workspace=options.workspace,
            jobs=options.jobs,
            root=options.root,
            engine=options.engine,
            device=options.device,
            fail_fast=options.fail_fast,
            rerun=options.rerun,
            listener=listener,
        )
    _show(results)
    return results.exit_code


def _validate(options: argparse.Namespace) -> int:
    from contextlib import nullcontext

    from ianvs import api
    from ianvs.errors import ConfigError
    from ianvs.progress import listener_for

    # Data may take minutes to decode: somebody who waits sees how far it is, a file gets errors and warnings alone.
    with listener_for(sys.stderr) if sys.stderr.isatty() else nullcontext() as listener:
        try:
            job = api.validate(
                options.file,
                workspace=options.workspace,
                root=options.root,
                engine=options.engine,
                device=options.device,
                watcher=listener,
            )
        except ConfigError as error:
            _warn(error.warnings)
            raise
    _warn(job.warnings)
    print(f"{options.file}: no errors, {len(job.warnings)} warning{'s' * (len(job.warnings) != 1)}.")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.progress import describe

    plan = api.plan(options.file, workspace=options.workspace, root=options.root)
    _warn(plan.job.warnings)
    counts = Counter[str]()
    for planned in plan:
        counts[planned.state] += 1
        print(f"{planned.case.id[:8]}  {planned.state:<10}  {describe(planned)}: {planned.reason}")
    print(_counted(counts))
    return 0


def _status(options: argparse.Namespace) -> int:
    import time

    from ianvs import api
    from ianvs.progress import describe

    plan = api.plan(options.file, workspace=options.workspace, root=options.root)
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
    print(f"{plan.job.name}: {_counted(counts)}")
    return 0


def _counted(states: Counter[str]) -> str:
    return f"{states.total()} cases: " + ", ".join(f"{count} {state}" for state, count in states.items())


def _exam(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.errors import IanvsError
    from ianvs.report.exam_text import exam_text
    from ianvs.scenarios.manifest import save_manifest

    exams = api.exams(options.file, workspace=options.workspace, root=options.root)
    if options.save and len(exams) > 1:
        raise IanvsError(f"the job has several exams ({', '.join(exams)}); a manifest is of one. Name one testenv.")
    for name, exam in exams.items():
        print(exam_text(name, exam))
        if options.save:
            save_manifest(exam, options.save)
            print(f"saved: {options.save}")
    return 0


def _logs(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.errors import IanvsError
    from ianvs.progress import describe

    plan = api.plan(options.file, workspace=options.workspace, root=options.root)
    found = [planned for planned in plan if planned.case.id.startswith(options.case)]
    if len(found) != 1:
        listed = "".join(f"\n  {planned.case.id[:8]}  {describe(planned)}" for planned in found)
        if listed:
            raise IanvsError(f"'{options.case}' begins the ids of {len(found)} cases:{listed}")
        raise IanvsError(f"no case '{options.case}'. `ianvs plan -f {options.file}` lists the cases.")
    log = plan.store.log(found[0].case.id)
    if not log.is_file():
        raise IanvsError(f"{describe(found[0])} has no log: it has not run, or ran with `engine: inline`.")
    sys.stdout.write(log.read_text(errors="replace"))
    return 0


def _report(options: argparse.Namespace) -> int:
    from ianvs import api

    results = api.report(options.file, workspace=options.workspace, root=options.root, page_only=options.html)
    page = results.workspace / results.name / "rank" / "report.html"
    if options.html:
        print(f"page: {os.path.relpath(page)}")
    else:
        _show(results)
    if options.open:
        _open(page)
    return 0


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.absolute().as_uri()):
        print(f"warning: there is no browser here to open {os.path.relpath(page)} with", file=sys.stderr)


def _show(results: Results) -> None:
    from ianvs.report import render

    render(results.leaderboard)
    folder = results.workspace / results.name / "rank"
    print(f"\nfiles: {os.path.relpath(folder)}")


def _warn(warnings: Sequence[Problem]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
