"""A job of KubeEdge Ianvs, written in our own form: what reading it has changed is written down, once for good."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path

from ianvs.config.models.base import at
from ianvs.config.strict_yaml import Steps
from ianvs.kubeedge.yaml.rewriting import Rewriting
from ianvs.kubeedge.yaml.yaml_text import yaml_text

__all__ = ["migrated"]


def migrated(files: Mapping[Path, Rewriting], working_directory: Path, folder: Path) -> dict[Path, str]:
    """{file below `folder`: its text} of the job's files, with a comment at each change."""
    names = [file.name for file in files]
    targets = {}
    for n, file in enumerate(files):
        before = names[:n].count(file.name)
        targets[file] = folder / (f"{file.stem}-{before + 1}{file.suffix}" if before else file.name)
    return {targets[file]: _text(file, one, working_directory, targets) for file, one in files.items()}


def _text(file: Path, rewriting: Rewriting, working_directory: Path, targets: dict[Path, Path]) -> str:
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
        job["working_directory"] = _relative(working_directory, folder)
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
