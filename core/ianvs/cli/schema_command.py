"""`ianvs schema KIND`: what an editor needs to complete and check a file while it is written."""

from __future__ import annotations

import argparse
import json
from typing import Any

__all__ = ["add_commands"]

_KINDS = ("job", "testenv", "algorithm")


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("schema", help="the JSON schema of the three files, for editors")
    parser.add_argument("kind", nargs="?", choices=_KINDS, help="of which file; without: of all, by that name")
    parser.set_defaults(command=_schema)


def _schema(options: argparse.Namespace) -> int:
    from ianvs.cli.schema import file_schema

    found = file_schema(options.kind) if options.kind else {kind: file_schema(kind) for kind in _KINDS}
    print(json.dumps(found, indent=1))
    return 0
