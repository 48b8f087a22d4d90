"""Each method's slips, and what of the comparison noticed them, as a table.

    python -m tests.nightly.conformance.mutants > build/mutants.md
    python -m tests.nightly.conformance.mutants der lwf     # of test_der.py and test_lwf.py alone

A slip that nothing notices ends it with exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import torch

from tests.nightly.conformance.harness import Check, noticed

FEWEST = 3  # slips of each method


def checks(only: Sequence[str] = ()) -> Iterator[tuple[str, int, Check]]:
    """(module, place in its CHECKS, the check) of all conformance files, or of those that are named."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        if only and file.stem.removeprefix("test_") not in only:
            continue
        name = f"{__package__}.{file.stem}"
        for i, check in enumerate(getattr(import_module(name), "CHECKS", ())):
            yield name, i, check


def rows(name: str, i: int) -> list[tuple[str, str, str, str]]:
    """(method, kind, the slip, what noticed it) of one check; the last is "" where nothing did."""
    torch.set_num_threads(1)
    check = import_module(name).CHECKS[i]
    found = []
    for mutant in check.mutants:
        by = ""
        try:
            by = noticed(check, mutant)
        except AssertionError as error:
            print(error, file=sys.stderr)
        found.append((check.name, mutant.kind, f"`{_line(mutant.old)}` → `{_line(mutant.new)}`", by))
    return found


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "(nothing)"


def main(only: Sequence[str]) -> int:
    """Writes the table; whether something was not noticed."""
    places = [(name, i) for name, i, _ in checks(only)]
    with ProcessPoolExecutor(2) as pool:
        found = [row for part in pool.map(rows, *zip(*places, strict=True)) for row in part]
    print("| method | slip | in the source | noticed by |\n|---|---|---|---|")
    for method, kind, slip, by in found:
        print(f"| {method} | {kind} | {slip} | {by or '**nothing**'} |")
    missed = sum(not by for *_, by in found)
    print(f"\n{len(found)} slips of {len({row[0] for row in found})} methods and variants; {missed} not noticed.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
