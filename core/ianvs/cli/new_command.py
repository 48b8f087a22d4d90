"""`ianvs new`: a small, commented, running set of files to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_commands"]

_KINDS = {
    "job": "a job over digits with three methods, or a copy of one that comes with ianvs",
    "algorithm": "a method of your own, and a job that ranks it beside another",
    "metric": "a metric of your own, and a job that ranks by it",
    "dataset": "a dataset of your own, and a job over it",
    "paradigm": "a way of examining of your own, and a job that uses it",
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
