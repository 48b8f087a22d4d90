"""The snapshot of messages: entries belong to tests, and every code has an example."""

from pathlib import Path
from typing import get_args

from ianvs.base.error_codes import ErrorCode
from tests.snapshots.recorder import entries

ROOT = Path(__file__).parents[2]
WITHOUT_EXAMPLE = {
    "doubtful-ranking",
    "invalid-interpreter",
    "invalid-syntax",
    "job-in-progress",
    "leaking-protocol",
    "unknown-task-or-type",
    "unreachable-server",
    "unspecified",
}
"""Codes that no entry shows yet. It only shrinks: who adds a code adds a test that calls `errors_of`."""


def test_every_entry_is_of_a_test_that_exists():
    functions = {test.partition("[")[0] for test in entries()}
    gone = [
        function
        for function in functions
        if not (ROOT / function.partition("::")[0]).is_file()
        or f"def {function.rpartition('::')[2]}(" not in (ROOT / function.partition("::")[0]).read_text()
    ]
    assert gone == []


def test_every_code_has_an_example():
    lines = [line for entry in entries().values() for line in entry if not line.startswith("    | ")]
    shown = {line.partition("  ")[0] for line in lines}
    assert {code for code in get_args(ErrorCode) if code not in shown} == WITHOUT_EXAMPLE
