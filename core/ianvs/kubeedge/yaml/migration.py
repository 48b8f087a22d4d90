"""Writes a job of KubeEdge Ianvs in the native form, including all changes made while reading."""

import copy
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ianvs.config.models.base import at, entries
from ianvs.config.strict_yaml import Steps, resolve_scalar
from ianvs.kubeedge.yaml.rewriting import Rewriting

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*")
_WIDTH = 100  # maximum width of a list in one line

Comments = Mapping[Steps, Sequence[str]]


def migrated(files: Mapping[Path, Rewriting], working_directory: Path, folder: Path) -> dict[Path, str]:
    """Return {file below `folder`: its text} of the job's files, with a comment at each change."""
    names = [file.name for file in files]
    targets = {}
    for n, file in enumerate(files):
        before = names[:n].count(file.name)
        targets[file] = folder / (f"{file.stem}-{before + 1}{file.suffix}" if before else file.name)
    return {targets[file]: _text(file, rewriting, working_directory, targets) for file, rewriting in files.items()}


def _text(file: Path, rewriting: Rewriting, working_directory: Path, targets: dict[Path, Path]) -> str:
    folder = targets[file].parent
    data: object = copy.deepcopy(rewriting.data)
    comments: dict[Steps, list[str]] = {(): [f"Written by `ianvs migrate` from {_relative(file, folder)}."]}
    for change in rewriting.changes:
        if change.renamed is None:  # otherwise it is about a path, whose former value is stated below
            comments.setdefault(change.path, []).append(change.message)
    for path, (written, actual) in rewriting.paths.items():
        if at(data, *path) != str(actual):
            continue  # it was left out or replaced
        text = written if "${" in written else _relative(targets.get(actual, actual), folder)
        at(data, *path[:-1])[path[-1]] = text
        if text != written:
            comments.setdefault(path, []).append(f"was {written}")
    if (job := at(data, "benchmarkingjob")) is not None and "working_directory" not in job:
        job["working_directory"] = _relative(working_directory, folder)
        comment = "where Ianvs would be called: plugins are run there, and relative paths of theirs start there"
        comments["benchmarkingjob", "working_directory"] = [comment]
    if (algorithm := at(data, "algorithm")) is not None and "contract" not in algorithm:
        at(data)["algorithm"] = {"contract": "ianvs", **algorithm}
        comments["algorithm", "contract"] = ["its plugins are written for KubeEdge Ianvs and are handed paths"]
    return yaml_text(data, comments)


def _relative(path: Path, folder: Path) -> str:
    """Return `path` relative to `folder`, unless they share only the root of the file system."""
    if os.path.commonpath([path, folder]) == os.sep:
        return str(path)
    text = os.path.relpath(path, folder)
    return text if text.startswith(os.curdir) else f"./{text}"


def yaml_text(data: object, comments: Comments) -> str:
    """Return plain data as yaml with comments, which our reader reads as the same data.

    comments: by path of the entry below them; comments on missing entries are above the enclosing one.
    """
    placed: dict[Steps, list[str]] = {}
    for path, lines in comments.items():
        placed.setdefault(_nearest(data, path), []).extend(lines)
    return "\n".join([*_commented(placed, (), ""), *_lines(data, (), "", placed)]) + "\n"


def _nearest(data: object, path: Steps) -> Steps:
    """Return the longest prefix of `path` that has its own line."""
    for depth, step in enumerate(path):
        in_list = isinstance(data, list) and isinstance(step, int) and step < len(data) and not _in_line(data)
        if not in_list and not (isinstance(data, dict) and step in data):
            return path[:depth]
        data = at(data, step)
    return path


def _lines(value: object, path: Steps, indent: str, comments: Comments) -> Iterator[str]:
    """Yield the lines of a non-empty mapping or list, each of its entries on separate lines."""
    for (step,), inner in entries(value):
        where = (*path, step)
        yield from _commented(comments, where, indent)
        head = "-" if isinstance(step, int) else f"{_scalar(step)}:"
        if _in_line(inner):
            yield f"{indent}{head} {_flow(inner)}"
        elif isinstance(step, int):
            first, *rest = _lines(inner, where, f"{indent}  ", comments)
            while first.lstrip().startswith("#"):  # a comment on an entry's first key is above the entry
                yield f"{indent}{first.lstrip()}"
                first, *rest = rest
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{indent}{head}"
            yield from _lines(inner, where, f"{indent}  ", comments)


def _commented(comments: Comments, path: Steps, indent: str) -> Iterator[str]:
    for text in comments.get(path, ()):
        yield from (f"{indent}# {line}" for line in text.splitlines())


def _in_line(value: object) -> bool:
    if isinstance(value, dict):
        return not value or (value.keys() == {"values"} and _in_line(value["values"]))
    if isinstance(value, list):
        return not any(isinstance(part, dict) and part for part in value) and len(_flow(value)) <= _WIDTH
    return True


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) is not None and resolve_scalar(value) == value
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return json.dumps(value)
