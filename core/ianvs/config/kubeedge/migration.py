"""A job of KubeEdge Ianvs, written in our own form: what reading it has changed is written down, once for good."""

from __future__ import annotations

import copy
import os
from pathlib import Path

from ianvs.config.kubeedge.dialect import Dialect
from ianvs.config.kubeedge.rewriting import Rewriting
from ianvs.config.kubeedge.yaml_text import yaml_text
from ianvs.config.models.base import at
from ianvs.config.strict_yaml import Steps

__all__ = ["migrated"]


def migrated(dialect: Dialect, folder: Path) -> dict[Path, str]:
    """{file below `folder`: its text} of the job's files, with a comment at each change."""
    names = [file.name for file in dialect.files]
    targets = {}
    for n, file in enumerate(dialect.files):
        before = names[:n].count(file.name)
        targets[file] = folder / (f"{file.stem}-{before + 1}{file.suffix}" if before else file.name)
    return {targets[file]: _text(file, rewriting, dialect, targets) for file, rewriting in dialect.files.items()}


def _text(file: Path, rewriting: Rewriting, dialect: Dialect, targets: dict[Path, Path]) -> str:
    folder = targets[file].parent
    data: object = copy.deepcopy(rewriting.data)
    comments: dict[Steps, list[str]] = {(): [f"Written by `ianvs migrate` from {_relative(file, folder)}."]}
    for change in rewriting.changes:
        if change.renamed is None:  # else it is about a path, and what that was is said below
            comments.setdefault(change.path, []).append(change.message)
    for path, (written, found) in rewriting.paths.items():
        if at(data, *path) != str(found):
            continue  # it was left out, or another one stands there now
        text = written if "${" in written else _relative(targets.get(found, found), folder)
        at(data, *path[:-1])[path[-1]] = text
        if text != written:
            comments.setdefault(path, []).append(f"was {written}")
    if (job := at(data, "benchmarkingjob")) is not None and "working_directory" not in job:
        job["working_directory"] = _relative(dialect.working_directory, folder)
        said = "where Ianvs would be called: plugins are run there, and relative paths of theirs start there"
        comments["benchmarkingjob", "working_directory"] = [said]
    if (algorithm := at(data, "algorithm")) is not None and "contract" not in algorithm:
        at(data)["algorithm"] = {"contract": "ianvs", **algorithm}
        comments["algorithm", "contract"] = ["its plugins are written for KubeEdge Ianvs and are handed paths"]
    return yaml_text(data, comments)


def _relative(path: Path, folder: Path) -> str:
    """`path` as seen from `folder`, unless all that they share is the root of the file system."""
    if os.path.commonpath([path, folder]) == os.sep:
        return str(path)
    text = os.path.relpath(path, folder)
    return text if text.startswith(os.curdir) else f"./{text}"
