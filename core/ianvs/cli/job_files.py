"""`ianvs new`, `jobs`, `migrate`, `schema`: commands about files of jobs, which run nothing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

_KINDS = {
    "job": "a job over digits with three methods, or a copy of one that comes with ianvs",
    "algorithm": "a method of your own, and a job that ranks it beside another",
    "metric": "a metric of your own, and a job that ranks by it",
    "dataset": "a dataset of your own, and a job over it",
    "paradigm": "a way of examining of your own, and a job that uses it",
}


def add_new(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("new", help="write a small running job, or a method, metric, dataset, paradigm")
    kinds = parser.add_subparsers(title="what", metavar="KIND", dest="kind", required=True)
    for kind, about in _KINDS.items():
        of = kinds.add_parser(kind, help=about, description=f"Writes {about}. Files that are there stay as they are.")
        of.add_argument("name", type=Path, metavar="NAME", help="what it is called, and the folder that it goes into")
        if kind == "job":
            of.add_argument("--from", dest="source", metavar="JOB", help="copy this one; `ianvs list jobs` names them")
        of.set_defaults(command=_new, source=None)


def _new(options: argparse.Namespace) -> int:
    from ianvs.base.errors import IanvsError, shown_path
    from ianvs.cli.beginning import copied_job, from_template, write_new
    from ianvs.config.models.job import folder_name

    folder = options.name
    try:
        name = folder_name(folder.absolute().name)
    except ValueError as error:
        raise IanvsError(str(error)) from None
    if options.source is None:
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
    parser = commands.add_parser("jobs", help="list the jobs that come with ianvs, or print the files of one")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this job's files, each below its path")
    parser.set_defaults(command=_jobs)
    help_ = "write a job for KubeEdge Ianvs in our own form, with a comment at each change"
    parser = commands.add_parser("migrate", help=help_)
    parser.add_argument("job", metavar="JOB", help="benchmarkingjob.yaml as Ianvs takes it")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the files go; plugins stay where they are")
    parser.add_argument("--root", metavar="DIR", help="a further folder that relative paths may start from")
    parser.set_defaults(command=_migrate)


def _jobs(options: argparse.Namespace) -> int:
    from ianvs.base.shipped import job_path, shipped_jobs
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
    from ianvs import api
    from ianvs.base.errors import shown_path

    files = api.migrate(options.job, options.out, root=options.root)
    for file, text in files.items():
        comments = sum(line.lstrip().startswith("#") for line in text.splitlines()) - 1
        print(f"{shown_path(file)}: {comments} comment{'s' * (comments != 1)}")
    print(f"\n`ianvs validate -f {shown_path(Path(next(iter(files))))}` tells what is missing.")
    return 0


_FILES = ("job", "testenv", "algorithm")


def add_schema(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("schema", help="the JSON schema of the three files, for editors")
    parser.add_argument("kind", nargs="?", choices=_FILES, help="of which file; without: of all, by that name")
    parser.set_defaults(command=_schema)


def _schema(options: argparse.Namespace) -> int:
    from ianvs.cli.schema import file_schema

    found = file_schema(options.kind) if options.kind else {kind: file_schema(kind) for kind in _FILES}
    print(json.dumps(found, indent=1))
    return 0
