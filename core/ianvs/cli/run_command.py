"""`ianvs run`, `plan`, `validate`, `exam`: run a job, or show what a run would do."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ianvs.base.errors import ConfigError, IanvsError, ValidationError, shown_path
from ianvs.base.secrets import hide_secrets
from ianvs.base.visible_text import visible
from ianvs.cli.parser import (
    add_command,
    add_job,
    counted,
    job_arguments,
    positive,
    settings_of,
    show,
    to_path,
    warn,
)


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    run = add_command(commands, "run", "run what is not finished, then write and show the leaderboard", _run)
    add_job(run)
    run.add_argument("--jobs", "-j", type=positive, metavar="N", help="test cases at a time (default: by cores)")
    run.add_argument("--rerun", metavar="WHICH", help="start over: failed, all, or conditions such as ewc,seed=1")
    help_ = "count finished cases as they are that differ in the source of their algorithm alone"
    run.add_argument("--keep", action="store_true", help=help_)
    run.add_argument("--dry-run", action="store_true", help="show what would be done and why, as `ianvs plan` does")
    run.add_argument("--yes", action="store_true", help="go on with more than 100 000 cases")
    going = run.add_mutually_exclusive_group()
    going.add_argument("--fail-fast", dest="fail_fast", action="store_true", default=None, help="stop at a failure")
    going.add_argument("--keep-going", dest="fail_fast", action="store_false", help="run all other cases (default)")
    words = run.add_mutually_exclusive_group()
    words.add_argument("--quiet", action="store_true", help="say nothing but warnings, failures and the leaderboard")
    words.add_argument("--verbose", action="store_true", help="say also which case begins, and each of its rounds")

    validate = add_command(commands, "validate", "make every check that a run begins with; train nothing", _validate)
    add_job(validate, selects=False)
    for command in (run, validate):
        command.add_argument("--engine", metavar="NAME", help="local, inline, ray, ...; over what the file says")
        command.add_argument("--device", metavar="NAME", help="auto, cpu, cuda: where the plugins compute")
    help_ = "json: a list of {code, file, line, column, message, warning}, on standard output (default: text)"
    validate.add_argument("--format", choices=("text", "json"), default="text", help=help_)
    prepare = add_command(commands, "prepare", "make the environments that algorithms ask for, by uv or pip", _prepare)
    add_job(prepare, selects=False)
    plan = add_command(commands, "plan", "list the test cases and what would be done with them", _plan)
    add_job(plan)
    plan.add_argument("--jobs", "-j", type=positive, metavar="N", help=argparse.SUPPRESS)
    about = "show how the data arrive: rounds, test sets, rules; save them to share"
    exam = add_command(commands, "exam", about, _exam)
    add_job(exam, selects=False)
    exam.add_argument(
        "--save", type=to_path, metavar="FILE", help="write the exam's manifest, which a testenv can name"
    )


def _run(options: argparse.Namespace) -> int:
    if options.dry_run:
        return _plan(options)
    from ianvs import api
    from ianvs.running.progress import LiveProgress, PlainProgress

    job, quiet, verbose = job_arguments(options), options.quiet, options.verbose
    live = sys.stderr.isatty() and not quiet and not verbose  # else lines, also for a file or a pipe
    with LiveProgress(sys.stderr, job) if live else PlainProgress(sys.stderr, job, quiet, verbose) as listener:
        results = api.run(
            options.file,
            **settings_of(options),
            jobs=options.jobs,
            engine=options.engine,
            device=options.device,
            fail_fast=options.fail_fast,
            rerun=options.rerun,
            keep=options.keep,
            yes=options.yes,
            listener=listener,
        )
    show(results, job)
    return results.exit_code


def _validate(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.running.progress import DataProgress, LiveProgress

    # Data may take minutes to decode: a terminal shows the progress, a file gets only the final lines.
    with LiveProgress(sys.stderr) if sys.stderr.isatty() else nullcontext(DataProgress()) as listener:
        try:
            job = api.validate(
                options.file,
                **settings_of(options),
                engine=options.engine,
                device=options.device,
                watcher=listener,
            )
        except ConfigError as error:
            if options.format == "json":
                return _as_json([*error.problems, *error.warnings])
            warn(error.warnings)
            raise
        except IanvsError as error:
            if options.format == "json":
                return _as_json([ValidationError.from_exception(error, None)])
            raise
    if options.format == "json":
        return _as_json(job.warnings)
    warn(job.warnings)
    print(f"{options.file}: no errors, {len(job.warnings)} warning{'s' * (len(job.warnings) != 1)}.")
    return 0


def _as_json(errors: Sequence[ValidationError]) -> int:
    """Print the errors and warnings for an editor or another program.

    Returns:
        The exit status: 2 if there are errors, 0 if there are none or only warnings.
    """
    records = [
        {
            "code": error.code,
            "file": shown_path(error.location.file) if error.location else None,
            "line": (error.location.line if error.location else 0) or None,
            "column": (error.location.column if error.location else 0) or None,
            "message": hide_secrets(error.message, environment=os.environ),
            "warning": error.warning,
        }
        for error in errors
    ]
    print(json.dumps(records, indent=2, ensure_ascii=False))
    return 0 if all(error.warning for error in errors) else 2


def _prepare(options: argparse.Namespace) -> int:
    from ianvs import api

    made = api.prepare(options.file, **settings_of(options))
    for name, folder, is_new in made:
        print(f"{name}: {shown_path(folder)} {'is made' if is_new else 'is there'}")
    if not made:
        print("no algorithm of the job has an `environment`")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.running.planning.model_storage import planned_models_text
    from ianvs.running.progress import DataProgress, describe, references_text
    from ianvs.running.scheduler.searching import outline

    plan = api.plan(options.file, **settings_of(options), watcher=DataProgress())
    warn(plan.job.warnings)
    for study in plan.studies:
        print(outline(study, plan))
    states = Counter[str]()
    for planned in plan:
        states[planned.state] += 1
        print(visible(f"{planned.case.id[:8]}  {planned.state:<10}  {describe(planned)}: {planned.reason}"))
    for algorithm in plan.job.algorithms:
        if algorithm.resources is not None:
            print(f"each case of {algorithm.name} takes {algorithm.resources}")
    if models := planned_models_text(plan):
        print(models)
    print(f"{counted(states)}{references_text(plan)}")
    return 0


def _exam(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.exam.scenarios.manifest import save_manifest
    from ianvs.results.report.exam_text import exam_text

    exams = api.exams(options.file, **settings_of(options))
    if options.save and len(exams) > 1:
        raise IanvsError(
            f"the job has several exams ({', '.join(exams)}); a manifest is of one. Name one testenv.",
            code="invalid-argument",
        )
    for name, exam in exams.items():
        print(visible(exam_text(name, exam)))
        if options.save:
            save_manifest(exam, options.save)
            print(f"saved: {options.save}")
    return 0
