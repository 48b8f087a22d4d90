"""Commands that need no results and run no case.

`list`, `show`, `metrics`, `doctor` describe the installation; `new`, `jobs`, `migrate`, `schema` handle files of jobs.
Imports are inside the functions, because ianvs.exam.metrics alone takes 0.3 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import ianvs
from ianvs.base.errors import IanvsError, closest, one_line, shown_path
from ianvs.base.method_names import qualified
from ianvs.base.package import job_path, shipped_jobs
from ianvs.cli.catalogue.name_registry import KINDS, WIDTH, listed
from ianvs.cli.parser import add_command, path_text, to_path

_SYNONYMS = {
    **dict.fromkeys(("tasks", "benchmarks", "studies", "experiments"), "jobs"),
    **dict.fromkeys(("models", "methods", "solvers", "strategies", "plugins"), "algorithms"),
    **dict.fromkeys(("objectives", "scores"), "metrics"),
    **dict.fromkeys(("backbones", "architectures"), "networks"),
}


def add_list(commands: argparse._SubParsersAction[Any]) -> None:
    parser = add_command(commands, "list", "names that the files may use: algorithms, scenarios, metrics, ...", _list)
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"{', '.join(KINDS)}; default: list these types")
    parser = add_command(commands, "show", "one of them: what it does, its options, their types and defaults", _show)
    parser.add_argument("name", metavar="NAME", help="as `ianvs list` has it, such as EWC or class-incremental")
    parser.add_argument("--all", action="store_true", help="include the options of base classes")


def _list(options: argparse.Namespace) -> int:
    if options.kind is None:
        for kind in KINDS:
            names = [entry.name for entry in listed(kind)]
            print(f"{kind:<{max(map(len, KINDS))}}  {one_line(names, 5)}")
        print("\n`ianvs list KIND` says what each is.")
        return 0
    if options.kind in ("question", "questions"):
        print("warning: questions are now called evaluation_tasks: `ianvs list evaluation_tasks`", file=sys.stderr)
        options.kind = "evaluation_tasks"
    if f"{options.kind}s" in KINDS:
        options.kind += "s"
    if options.kind not in KINDS:
        meant = _SYNONYMS.get(options.kind.removesuffix("s") + "s", options.kind)
        hint = f" Did you mean '{meant}'?" if meant in KINDS else closest(meant, KINDS)
        raise IanvsError(f"unknown kind '{options.kind}'.{hint} There are: {', '.join(KINDS)}.", code="unknown-name")
    entries = listed(options.kind)
    names = [(qualified(entry.value) if entry.url else "") or entry.name for entry in entries]
    width = max(map(len, names))
    for name, entry in zip(names, entries, strict=True):
        origin = f" (package {entry.package})" if entry.package else ""
        also = f"; also called {', '.join(entry.aliases)}" if entry.aliases else ""
        print(f"{name:<{width}}  {entry.summary}{also}{origin}")
    print("\n`ianvs show NAME` describes one in detail.")
    if options.kind == "metrics":
        from ianvs.exam.metrics.registry import unusable

        for why in unusable():
            print(why, file=sys.stderr)
    return 0


def _show(options: argparse.Namespace) -> int:
    from ianvs.cli.catalogue.describe_entry import describe_name

    print(describe_name(options.name, options.all))
    return 0


def add_metrics(commands: argparse._SubParsersAction[Any]) -> None:
    metrics = add_command(commands, "metrics", "list the metrics, or compute them for a score matrix", _metrics)
    inside = metrics.add_subparsers(metavar="")
    compute = add_command(inside, "compute", "every metric of a score matrix, as json", _compute)
    compute.add_argument("file", type=to_path, help="json with R and optionally untrained, joint, single_task; or csv")


def _metrics(options: argparse.Namespace) -> int:
    from ianvs.exam.metrics.registry import unusable
    from ianvs.exam.metrics.table import describe

    for row in describe():
        names = [*row["aliases"], *row["in_papers"]]
        aliases = f" (also {', '.join(names)})" if names else ""
        better = f", {row['better']} is better" if row["better"] else ""
        print(f"{row['name']}{aliases}  [{row['level']}{better}]")
        for name in ("summary", "formula", "source"):
            if row.get(name):
                print(_indented(f"{row[name]}"))
        if row["needs"]:
            print(_indented(f"needs: {', '.join(row['needs'])}"))
    for why in unusable():
        print(why, file=sys.stderr)
    return 0


def _indented(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ")


def _compute(options: argparse.Namespace) -> int:
    from ianvs.exam.metrics.matrix import compute_file

    print(json.dumps(compute_file(options.file), indent=1, allow_nan=False))
    return 0


def add_doctor(commands: argparse._SubParsersAction[Any]) -> None:
    about = "check what a run needs: torch, GPUs, memory, folders, models, Ray"
    parser = commands.add_parser("doctor", help=about, description=f"{about}. Exit status 1: a run would fail.")
    help_ = "the folder for results"
    parser.add_argument("--workspace", type=to_path, default=Path("workspace"), metavar="DIR", help=help_)
    parser.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from ianvs.cli.doctor import examine

    wrong = 0
    for finding in examine(options.workspace):
        print(finding, flush=True)
        wrong += finding.state == "wrong"
    print(f"\n{wrong or 'No'} problem{'s' * (wrong != 1)} found.")
    return 1 if wrong else 0


NEW_TEMPLATES = {
    "job": "a job over digits with three methods, or a copy of one that comes with ianvs",
    "algorithm": "a method of your own, and a job that ranks it beside another",
    "metric": "a metric of your own, and a job that ranks by it",
    "dataset": "a dataset of your own, and a job over it",
    "paradigm": "a paradigm of your own, and a job that uses it",
}
"""Description of the files that `ianvs new` writes, by type of template."""


def add_new(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("new", help="write a small running job, or a method, metric, dataset, paradigm")
    kinds = parser.add_subparsers(title="what", metavar="KIND", dest="kind", required=True)
    for kind, about in NEW_TEMPLATES.items():
        sub = kinds.add_parser(kind, help=about, description=f"Writes {about}. Existing files are not changed.")
        sub.add_argument("name", type=to_path, metavar="NAME", help="its name, and the folder to write")
        if kind == "job":
            either = sub.add_mutually_exclusive_group()
            either.add_argument("--from", dest="source", metavar="JOB", help="copy this one of `ianvs list jobs`")
            help_ = "look at this folder or file of samples, and write a job over it"
            either.add_argument("--data", type=to_path, metavar="PATH", help=help_)
        sub.set_defaults(command=_new, source=None, data=None)


def _new(options: argparse.Namespace) -> int:
    from ianvs.cli.scaffold import copied_job, from_template, write_new
    from ianvs.config.models.job import folder_name

    folder = options.name
    try:
        name = folder_name(folder.absolute().name)
    except ValueError as error:
        raise IanvsError(str(error), code="invalid-argument") from None
    if options.data is not None:
        from ianvs.cli.data_job import data_job

        job = data_job(options.data, name, folder)
        files = dict(job.files)
        print(*job.facts, "", sep="\n")
    elif options.source is None:
        files = from_template(options.kind, name, str(folder))
    else:
        files = copied_job(options.source, name, str(folder))
    for path in write_new(folder, files):
        print(shown_path(path))
    print(f"\n`ianvs -f {folder}` runs it.")
    if options.kind in ("algorithm", "paradigm"):
        print(f"In another job it is an algorithm with `url: {folder}/algorithm.yaml`.")
    return 0


def add_jobs(commands: argparse._SubParsersAction[Any]) -> None:
    parser = add_command(commands, "jobs", "list the jobs that come with ianvs, or print the files of one", _jobs)
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this job's files, each below its path")
    help_ = "write a job of KubeEdge Ianvs in the native form, with a comment at each change"
    parser = add_command(commands, "migrate", help_, _migrate)
    parser.add_argument("job", type=path_text, metavar="JOB", help="a benchmarkingjob.yaml of KubeEdge Ianvs")
    parser.add_argument(
        "--out", required=True, type=path_text, metavar="DIR", help="the folder to write; plugins are not moved"
    )
    parser.add_argument(
        "--root", type=path_text, metavar="DIR", help="a further folder that relative paths may start from"
    )


def _jobs(options: argparse.Namespace) -> int:
    from ianvs.config.load import files_of_job

    if options.name is not None:
        for path in files_of_job(job_path(Path(options.name))):
            print(f"# {path}\n{path.read_text(encoding='utf-8')}")
        return 0
    width = max(map(len, shipped_jobs()))
    for name, file in shipped_jobs().items():
        first = file.read_text(encoding="utf-8").splitlines()[0]
        print(f"{name:<{width}}  {first.removeprefix('#').strip()}")
    print("\n`ianvs -f NAME` runs one; `ianvs jobs NAME` prints its files.")
    return 0


def _migrate(options: argparse.Namespace) -> int:
    files = ianvs.migrate(options.job, options.out, root=options.root)
    for file, text in files.items():
        comments = sum(line.lstrip().startswith("#") for line in text.splitlines()) - 1
        print(f"{shown_path(file)}: {comments} comment{'s' * (comments != 1)}")
    print(f"\nRun `ianvs validate -f {shown_path(Path(next(iter(files))))}` to see what is missing.")
    return 0


_FILES = ("job", "testenv", "algorithm")


def add_schema(commands: argparse._SubParsersAction[Any]) -> None:
    parser = add_command(commands, "schema", "the JSON schema of the three files, for editors", _schema)
    parser.add_argument("kind", nargs="?", choices=_FILES, help="the file; default: all three, by name")


def _schema(options: argparse.Namespace) -> int:
    from ianvs.cli.schema import file_schema

    schema = file_schema(options.kind) if options.kind else {kind: file_schema(kind) for kind in _FILES}
    print(json.dumps(schema, indent=1))
    return 0
