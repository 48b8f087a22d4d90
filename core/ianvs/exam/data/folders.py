"""A folder of class folders of pictures."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import numpy as np

from ianvs.base.errors import Place, Problem, one_line
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import Listing, SourceError, column

__all__ = ["read_folder"]


def read_folder(source: SourceSpec, spec: DatasetSpec) -> Listing:
    """`<class>/.../<picture>`, or `<domain>/<class>/.../<picture>` for the domains that `using` names.

    In the order of the sorted paths, which is the same on every machine.
    """
    names = _pictures(source.path)
    if not names:
        message = f"holds no pictures; expected <class>/<picture> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError([Problem(message, Place(source.path))])
    labels = [_class(name, spec.using) for name in names]
    loose = [name.as_posix() for name, label in zip(names, labels, strict=True) if label is None]
    if loose:
        message = f"these pictures lie in no class folder: {one_line(loose, 3)}. Put each into the folder of its class."
        raise SourceError([Problem(message, Place(source.path))])
    none = np.zeros(len(names), dtype=np.int64)
    return Listing(
        form="files",
        x=column([os.fspath(source.path / name) for name in names]),
        label_form="class",
        labels=column(labels),
        ids=np.array([name.as_posix() for name in names], dtype=str),
        domains=column([""] * len(names)),
        sources=(source.path,),
        origins=none,
        lines=none,
    )


def _pictures(folder: Path) -> list[PurePath]:
    found = []
    for here, _, files in os.walk(folder, followlinks=True):
        below = PurePath(here).relative_to(folder)
        found += [below / name for name in files if name.lower().endswith(PICTURE_SUFFIXES) and name[0] != "."]
    return sorted(found, key=lambda name: name.parts)


def _class(name: PurePath, domains: tuple[str, ...]) -> str | None:
    folders = name.parent.parts
    if folders and folders[0] in domains:
        folders = folders[1:]
    return folders[0] if folders else None
