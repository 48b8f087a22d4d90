"""`ianvs doctor`: what a run needs, whether it is here, and what to do where it is not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    about = "look whether what a run needs is here: torch, cards, memory, folders, models, Landlock, Ray"
    parser = commands.add_parser("doctor", help=about, description=f"{about}. Exit status 1: a run would break.")
    parser.add_argument(
        "--workspace", type=Path, default=Path("workspace"), metavar="DIR", help="where results would go"
    )
    parser.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from ianvs.cli.doctor import examine

    wrong = 0
    for finding in examine(options.workspace):
        print(finding, flush=True)
        wrong += finding.state == "wrong"
    print(f"\n{wrong} thing{'s' * (wrong != 1)} would break a run." if wrong else "\nNothing here would break a run.")
    return 1 if wrong else 0
