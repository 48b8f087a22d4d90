"""`ianvs list KIND`: what can be named in the files, a line each. `ianvs show NAME`: one of them at length."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["KINDS", "add_commands"]

KINDS = ("algorithms", "scenarios", "metrics", "datasets", "networks", "paradigms", "engines", "jobs")

_MEANT = {
    **dict.fromkeys(("tasks", "benchmarks", "studies", "experiments"), "jobs"),
    **dict.fromkeys(("models", "methods", "solvers", "strategies", "plugins"), "algorithms"),
    **dict.fromkeys(("objectives", "scores"), "metrics"),
    **dict.fromkeys(("backbones", "architectures"), "networks"),
}


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
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
