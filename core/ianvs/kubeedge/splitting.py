"""How Ianvs cuts a training file into rounds. Lines keep their order; nothing is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ianvs.base.errors import DataError, PluginError, shown_path
from ianvs.kubeedge.yaml.settings import SplittingMethod
from ianvs.store.files import write_atomic

Pair = tuple[list[str], list[str]]  # lines for training, lines for evaluation

# Lines of what a simulator drew say so; those of a camera come after them.
_SIMULATED = "synthia_sim"


def _parts(lines: Sequence[str], n: int, size: int | None = None) -> list[list[str]]:
    """n parts of `size` lines, by default `len // n`; the last has the remainder too."""
    size = len(lines) // n if size is None else size
    ends = [*(size * i for i in range(1, n)), len(lines)]
    return [list(lines[size * i : end]) for i, end in enumerate(ends)]


def _cut(lines: Sequence[str], ratio: float) -> Pair:
    first = int(len(lines) * ratio)
    return list(lines[:first]), list(lines[first:])


def split(lines: Sequence[str], method: SplittingMethod, ratio: float, n: int) -> dict[int, Pair]:
    """The pairs of n rounds, by the number that their files have.

    "default" and "city_splitting" give 1..n; the other two 0..n, where 0 is for the model before all rounds. Raises
    PluginError for city_splitting with one round.
    """
    before: dict[int, Pair] = {}
    if method == "hard-example_splitting":
        half, first = len(lines) // 2, int(len(lines) * ratio / 2)
        before = {0: (list(lines[:first]), list(lines[first:half]))}
        parts = _parts(lines[half:], n, len(lines) // (2 * n))
    elif method == "city_splitting":
        if n < 2:
            raise PluginError(
                "city_splitting needs at least 2 rounds: one for the simulator, the others for the camera."
            )
        real = next((i for i, line in enumerate(lines) if _SIMULATED not in line), 0)
        parts = [list(lines[:real]), *_parts(lines[real:], n - 1)]
    else:
        if method == "fwt_splitting":
            before = {0: (list(lines[:1]), list(lines[:1]))}
        parts = _parts(lines, n)
    return {**before, **{i: _cut(part, ratio) for i, part in enumerate(parts, 1)}}


def write_pairs(
    file: str, folder: Path, kinds: tuple[str, str], method: SplittingMethod, ratio: float, n: int
) -> list[tuple[str, str]]:
    """The files of the pairs below `folder`, named KIND-NUMBER.SUFFIX, in their order.

    A csv file's first line is repeated in each. Raises DataError for a file that can't be split.
    """
    path = Path(file)
    if path.suffix not in (".txt", ".jsonl", ".csv"):
        raise DataError(f"{shown_path(path)} can't be split into rounds: give a txt, jsonl or csv file.")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    header = lines[:1] if path.suffix == ".csv" else []
    files = []
    for number, pair in split(lines[len(header) :], method, ratio, n).items():
        names = []
        for kind, part in zip(kinds, pair, strict=True):
            target = folder / f"{kind}-{number}{path.suffix}"
            write_atomic(target, "".join(f"{line}\n" for line in [*header, *part]).encode())
            names.append(str(target))
        files.append((names[0], names[1]))
    return files
