"""`ianvs list`, `show`, `metrics`, `doctor`: commands about what is here, whatever the job.

They import what they need when they are called: ianvs.exam.metrics alone costs 0.3 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

KINDS = ("algorithms", "scenarios", "metrics", "datasets", "networks", "paradigms", "engines", "jobs")
_WIDTH = 100  # characters of a line
_MEANT = {
    **dict.fromkeys(("tasks", "benchmarks", "studies", "experiments"), "jobs"),
    **dict.fromkeys(("models", "methods", "solvers", "strategies", "plugins"), "algorithms"),
    **dict.fromkeys(("objectives", "scores"), "metrics"),
    **dict.fromkeys(("backbones", "architectures"), "networks"),
}


def add_list(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("list", help="what can be named in the files: algorithms, scenarios, metrics, ...")
    parser.add_argument("kind", metavar="KIND", help=", ".join(KINDS))
    parser.set_defaults(command=_list)
    parser = commands.add_parser("show", help="one of them: what it does, its options, their types and defaults")
    parser.add_argument("name", metavar="NAME", help="as `ianvs list` has it, such as EWC or class-incremental")
    parser.set_defaults(command=_show)


def _list(options: argparse.Namespace) -> int:
    from ianvs.base.errors import IanvsError, closest
    from ianvs.cli.catalogue import listed

    if f"{options.kind}s" in KINDS:
        options.kind += "s"
    if options.kind not in KINDS:
        meant = _MEANT.get(options.kind.removesuffix("s") + "s", options.kind)
        hint = f" Did you mean '{meant}'?" if meant in KINDS else closest(meant, KINDS)
        raise IanvsError(f"'{options.kind}' is nothing that can be listed.{hint} There are: {', '.join(KINDS)}.")
    entries = listed(options.kind)
    width = max(len(entry.name) for entry in entries)
    by_url = ""
    for entry in entries:
        if entry.url and not by_url:
            by_url = "; those with a `url` need that beside their name"
            print("\nWith a `url`:")
        origin = f" (package {entry.package})" if entry.package else f" (url: {entry.url})" if entry.url else ""
        print(f"{entry.name:<{width}}  {entry.summary}{origin}")
    print(f"\n`ianvs show NAME` tells more of one{by_url}.")
    if options.kind == "metrics":
        from ianvs.exam.metrics.registry import unusable

        for why in unusable():
            print(why, file=sys.stderr)
    return 0


def _show(options: argparse.Namespace) -> int:
    from ianvs.cli.catalogue import shown

    print(shown(options.name))
    return 0


def add_metrics(commands: argparse._SubParsersAction[Any]) -> None:
    metrics = commands.add_parser("metrics", help="list the metrics, or compute them for a score matrix")
    metrics.set_defaults(command=_metrics)
    inside = metrics.add_subparsers(metavar="")
    compute = inside.add_parser("compute", help="every metric of a score matrix, as json")
    compute.add_argument("file", type=Path, help="json with R and optionally untrained, joint, single_task; or csv")
    compute.set_defaults(command=_compute)


def _metrics(options: argparse.Namespace) -> int:
    from ianvs.exam.metrics.registry import unusable
    from ianvs.exam.metrics.table import describe

    for row in describe():
        aliases = f" (also {', '.join(row['aliases'])})" if row["aliases"] else ""
        print(f"{row['name']}{aliases}  [{row['level']}, {row['better']} is better]")
        for name in ("summary", "formula", "source"):
            if row.get(name):
                print(_indented(f"{row[name]}"))
        if row["needs"]:
            print(_indented(f"needs: {', '.join(row['needs'])}"))
    for why in unusable():
        print(why, file=sys.stderr)
    return 0


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _compute(options: argparse.Namespace) -> int:
    from ianvs.exam.metrics.matrix import compute_file

    print(json.dumps(compute_file(options.file), indent=1, allow_nan=False))
    return 0


def add_doctor(commands: argparse._SubParsersAction[Any]) -> None:
    about = "look whether what a run needs is here: torch, cards, memory, folders, models, Landlock, Ray"
    parser = commands.add_parser("doctor", help=about, description=f"{about}. Exit status 1: a run would break.")
    help_ = "where results would go"
    parser.add_argument("--workspace", type=Path, default=Path("workspace"), metavar="DIR", help=help_)
    parser.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from ianvs.cli.doctor import examine

    wrong = 0
    for finding in examine(options.workspace):
        print(finding, flush=True)
        wrong += finding.state == "wrong"
    print(f"\n{wrong} thing{'s' * (wrong != 1)} would break a run." if wrong else "\nNothing here would break a run.")
    return 1 if wrong else 0
