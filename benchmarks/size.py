"""What people have, at its size: processor seconds, memory and disk of each, held against what is allowed.

    python -m benchmarks.size                      # all of it, half an hour of two cores
    python -m benchmarks.size texts --share 0.1    # a part, at a tenth of its size

The data are made here: generated texts, few files with many names. Memory is anonymous and shared memory, without
mapped files. docs/speed.md has the figures; `pytest -m '' tests/nightly/sizes` runs each part at a tenth.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sizes.measuring import Row

PARTS = ("scoring", "texts", "cases", "pictures", "boxes")
"""The modules of benchmarks.sizes; each has `rows(folder, share)`."""


def rows(part: str, folder: Path, share: float) -> Iterator[Row]:
    """What `part` measures, as it is found. share: of the real size, 1 for all."""
    found: Iterator[Row] = importlib.import_module(f"benchmarks.sizes.{part}").rows(folder, share)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}; all without")
    parser.add_argument("--share", type=float, default=1.0, help="of the real size")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    missed = 0
    for part in asked.parts:
        with tempfile.TemporaryDirectory(prefix=f"size-{part}-") as folder:
            for row in rows(part, Path(folder), asked.share):
                print(row, flush=True)
                missed += not row.met
    sys.exit(f"{missed} of these are not met" if missed else 0)


if __name__ == "__main__":
    main()
