"""`ianvs metrics` and `ianvs metrics compute FILE`. Not in ianvs.exam.metrics: importing that costs 0.3 s.

Imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

__all__ = ["add_commands"]

WIDTH = 100  # characters of a line


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
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
    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ")


def _compute(options: argparse.Namespace) -> int:
    from ianvs.exam.metrics.matrix import compute_file

    print(json.dumps(compute_file(options.file), indent=1, allow_nan=False))
    return 0
