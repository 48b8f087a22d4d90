"""How much of each wing of core the quick tests run, from what `tests/slips.py collect` wrote.

python tests/wing_coverage.py DATA [--tests tests/unit tests/contract tests/journey]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tests.slips import Coverage, load_coverage

__all__ = ["count_lines", "main"]

_ROOT = Path(__file__).resolve().parents[1]
QUICK = ("tests/unit", "tests/contract", "tests/journey")


def count_lines(coverage: Coverage, within: Sequence[str], statements: Mapping[str, set[int]]) -> dict[str, list[int]]:
    """Count lines by wing.

    Args:
        coverage: Which test ran which line.
        within: Beginnings of the ids of the tests that count.
        statements: {file: its executable lines}.

    Returns:
        {wing: [lines that a test ran, executable lines]}, sorted by wing. A wing is a folder of core/ianvs, or ".".
    """
    ran, total = Counter[str](), Counter[str]()
    for file, lines in statements.items():
        parts = Path(file).parts[2:]
        wing = parts[0] if len(parts) > 1 else "."
        by_line = coverage.tests.get(file, {})
        total[wing] += len(lines)
        ran[wing] += sum(any(test.startswith(tuple(within)) for test in by_line.get(line, ())) for line in lines)
    return {wing: [ran[wing], total[wing]] for wing in sorted(total)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="what `tests/slips.py collect` wrote for this tree")
    parser.add_argument("--tests", nargs="+", default=QUICK, metavar="PREFIX", help="default: %(default)s")
    options = parser.parse_args(arguments)
    from coverage.python import PythonParser

    statements = {}
    for path in sorted((_ROOT / "core" / "ianvs").glob("*/**/*.py")) + sorted((_ROOT / "core" / "ianvs").glob("*.py")):
        file = path.relative_to(_ROOT).as_posix()
        if path.resolve() != path or file.startswith("core/ianvs/cli/templates/"):  # links to other folders, templates
            continue
        parsed = PythonParser(filename=str(path), exclude=r"if TYPE_CHECKING:|\.\.\.$")
        parsed.parse_source()
        statements[file] = parsed.statements - parsed.excluded
    counts = count_lines(load_coverage(options.data), options.tests, statements)
    print("| wing | lines run | lines | share |\n|---|---|---|---|")
    for wing, (ran, total) in {**counts, "all": [sum(column) for column in zip(*counts.values(), strict=True)]}.items():
        print(f"| {wing} | {ran} | {total} | {ran / total:.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
