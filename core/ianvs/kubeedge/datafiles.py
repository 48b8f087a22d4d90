"""Data files as plugins see them: cut into rounds, and parsed into paths and words by type of file."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ianvs.base.errors import DataError, PluginError, shown_path
from ianvs.kubeedge.domain_lines import without_domains
from ianvs.kubeedge.provided.datasources import (
    BaseDataSource,
    CSVDataParse,
    JSONDataParse,
    JsonlDataParse,
    JSONMetaDataParse,
    TxtDataParse,
)
from ianvs.kubeedge.yaml.settings import SplittingMethod
from ianvs.store.files import write_atomic

_PARSERS: dict[str, type[BaseDataSource]] = {
    ".txt": TxtDataParse,
    ".csv": CSVDataParse,
    ".json": JSONDataParse,
    ".jsonl": JsonlDataParse,
}

Pair = tuple[list[str], list[str]]  # lines for training, lines for evaluation

# Lines of simulated images contain this word; those of camera images come after them.
_SIMULATED = "synthia_sim"


def paths_and_label(line: str) -> tuple[list[str], str]:
    """Split a line as lifelong learning does: all words but the last, and the last."""
    *paths, label = line.split()
    return paths, label


def read(
    file: str, data_type: str, label: str | None = None, func: Callable[[str], object] | None = None
) -> BaseDataSource:
    """Return the parsed source. label: the column of a csv file. func: for each line of a txt file.

    Raises DataError for a missing file or another suffix.
    """
    path = Path(file)
    parser = JSONMetaDataParse if path.name == "metadata.json" else _PARSERS.get(path.suffix)
    if parser is None:
        raise DataError(
            f"{shown_path(path)} can't be read: its name has to end in {', '.join(_PARSERS)}.", code="wrong-path-type"
        )
    if not path.is_file():
        raise DataError(f"{shown_path(path)} is not there.", code="missing-file")
    source = parser(data_type, func)
    source.parse(str(path), label=label)
    return source


def absolute_index(file: str, target: Path, using: Sequence[str] = ()) -> str:
    """Return the file, or for a txt index with relative paths a copy at `target` with absolute ones.

    Paths are relative to the folder of the index. A word that is no file there, such as a label, stays; empty lines
    stay, too. using: domains; a column of them is not written.
    """
    path = Path(file)
    if path.suffix != ".txt" or not path.is_file():
        return file
    given = path.read_text(encoding="utf-8").splitlines()
    lines = without_domains(given, using)
    if lines == given and all(line.strip() and os.path.isabs(line.split()[0]) for line in lines):  # noqa: PTH117
        return file
    return write_index(lines, path.parent, target)


def write_index(lines: Sequence[str], folder: Path, target: Path) -> str:
    """Write lines of an index in `folder` to `target`, with absolute paths; returns the path of `target`."""
    rows = [" ".join(_absolute(word, folder, i == 0) for i, word in enumerate(line.split())) for line in lines]
    write_atomic(target, "".join(f"{row}\n" for row in rows).encode())
    return str(target)


def _absolute(word: str, folder: Path, first: bool) -> str:
    place = Path(os.path.abspath(folder / word))  # noqa: PTH100 - links are not followed
    return str(place) if place.is_file() or (first and place.is_dir()) else word


def true_labels(file: str, label: str | None) -> object:
    """Return the `y` of metrics: the labels as words, a column, answers or responses.

    In lines of three words or more it is the last one: `picture depth label`.
    """
    wide = Path(file).suffix == ".txt" and any(
        len(line.split()) > 2 for line in Path(file).read_text(encoding="utf-8").splitlines()
    )
    return read(file, "eval overall", label, paths_and_label if wide else None).y


# Ianvs's way of cutting a training file into rounds. Lines keep their order; nothing is shuffled.


def parts_of(lines: Sequence[str], n: int, size: int | None = None) -> list[list[str]]:
    """Return n parts of `size` lines, by default `len // n`; the last also has the remainder."""
    size = len(lines) // n if size is None else size
    ends = [*(size * i for i in range(1, n)), len(lines)]
    return [list(lines[size * i : end]) for i, end in enumerate(ends)]


def _cut(lines: Sequence[str], ratio: float) -> Pair:
    first = int(len(lines) * ratio)
    return list(lines[:first]), list(lines[first:])


def split(lines: Sequence[str], method: SplittingMethod, ratio: float, n: int) -> dict[int, Pair]:
    """Return the pairs of n rounds by the numbers in their file names.

    "default" and "city_splitting" give 1..n; the other two 0..n, where 0 is for the model before all rounds. Raises
    PluginError for city_splitting with one round.
    """
    before: dict[int, Pair] = {}
    if method == "hard-example_splitting":
        half, first = len(lines) // 2, int(len(lines) * ratio / 2)
        before = {0: (list(lines[:first]), list(lines[first:half]))}
        parts = parts_of(lines[half:], n, len(lines) // (2 * n))
    elif method == "city_splitting":
        if n < 2:
            raise PluginError(
                "city_splitting needs at least 2 rounds: one for the simulator, the others for the camera.",
                code="invalid-option",
            )
        real = next((i for i, line in enumerate(lines) if _SIMULATED not in line), 0)
        parts = [list(lines[:real]), *parts_of(lines[real:], n - 1)]
    else:
        if method == "fwt_splitting":
            before = {0: (list(lines[:1]), list(lines[:1]))}
        parts = parts_of(lines, n)
    return {**before, **{i: _cut(part, ratio) for i, part in enumerate(parts, 1)}}


def write_pairs(
    file: str,
    folder: Path,
    kinds: tuple[str, str],
    method: SplittingMethod,
    ratio: float,
    n: int,
    rounds: Sequence[Sequence[str]] = (),
) -> list[tuple[str, str]]:
    """Write the files of the pairs below `folder`, named KIND-NUMBER.SUFFIX, and return them in order.

    A csv file's header is repeated in each. rounds: the lines of each round, if `method` does not cut them. Raises
    DataError for a file that can't be split.
    """
    path = Path(file)
    if path.suffix not in (".txt", ".jsonl", ".csv"):
        raise DataError(
            f"{shown_path(path)} can't be split into rounds: give a txt, jsonl or csv file.", code="wrong-path-type"
        )
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    header = lines[:1] if path.suffix == ".csv" else []
    files = []
    given = {i: _cut(part, ratio) for i, part in enumerate(rounds, 1)}
    for number, pair in (given or split(lines[len(header) :], method, ratio, n)).items():
        train, evaluation = (folder / f"{kind}-{number}{path.suffix}" for kind in kinds)
        for target, part in zip((train, evaluation), pair, strict=True):
            write_atomic(target, "".join(f"{line}\n" for line in [*header, *part]).encode())
        files.append((str(train), str(evaluation)))
    return files
