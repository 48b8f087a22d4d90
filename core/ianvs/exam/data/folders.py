"""Folders of class folders of images."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePath

import numpy as np

from ianvs.base.errors import Location, one_line
from ianvs.base.tool_files import tool_part
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.csv_headers import yaml_list
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import Listing, SourceError, column, doubt


def holds_pictures(path: Path) -> tuple[Path, ...]:
    """A folder itself: which of its files are samples is told when it is read."""
    return (path,) if path.is_dir() else ()


def read_folder(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """`<class>/.../<image>`, or `<domain>/<class>/.../<image>` for the domains that `using` names.

    In the order of the sorted paths, which is the same on every machine.
    """
    names, left_out = _pictures(path)
    if not names:
        message = f"holds no pictures; expected <class>/<picture> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError.single(message, Location(path), "empty-dataset")
    labels = [_class(name, spec.using) for name in names]
    loose = [name.as_posix() for name, label in zip(names, labels, strict=True) if label is None]
    if loose:
        message = f"these images are in no class folder: {one_line(loose, 3)}. Put each into the folder of its class."
        raise SourceError.single(message, Location(path), "invalid-record")
    warnings = []
    if left_out:
        message = (
            f"{one_line(left_out, 5)} is left out: hidden files and those of tools are no samples. Rename a folder "
            "that is a class, or name its pictures in an index file."
        )
        warnings.append(doubt(message, Location(path)))
    outer, classes = _parallel_folders(names)
    if not spec.using and outer:
        message = (
            f"the class folders {one_line(outer)} hold the same folders each, {one_line(classes)}. If "
            "the outer ones are domains and the inner ones classes, write in the dataset "
            f"`using: {yaml_list(outer)}`."
        )
        warnings.append(doubt(message, Location(path)))
    return Listing(
        form="files",
        x=column([os.fspath(path / name) for name in names]),
        label_form="class",
        y=column(labels),
        ids=np.array([name.as_posix() for name in names], dtype=str),
        domains=column([""] * len(names)),
        sources=(path,),
        warnings=tuple(warnings),
    )


def domain_folders(path: Path) -> list[str]:
    """The folders of domains, where all folders in `path` hold the same class folders; [] where they don't."""
    return _parallel_folders(_pictures(path)[0])[0]


def _parallel_folders(names: Sequence[PurePath]) -> tuple[list[str], list[str]]:
    """(outer folders, inner folders) of images, if each of the outer ones holds all inner ones; else ([], [])."""
    inner = {name.parts[:2] for name in names if len(name.parts) > 2}
    classes = Counter(second for _, second in inner)
    outer = {first for first, _ in inner}
    if len(outer) > 1 and len(classes) > 1 and {*classes.values()} == {len(outer)}:
        return sorted(outer), sorted(classes)
    return [], []


def _pictures(folder: Path) -> tuple[list[PurePath], tuple[str, ...]]:
    """(images below a folder, sorted; folders and images that tools left there, which are none of the samples)."""
    pictures, left_out = [], set()
    for parent, _, files in os.walk(folder, followlinks=True):
        below = PurePath(parent).relative_to(folder)
        for name in files:
            if name.lower().endswith(PICTURE_SUFFIXES):
                path = below / name
                if (of_tool := tool_part(path)) is None:
                    pictures.append(path)
                else:
                    left_out.add(of_tool.as_posix())
    return sorted(pictures, key=lambda name: name.parts), tuple(sorted(left_out))


def _class(name: PurePath, domains: tuple[str, ...]) -> str | None:
    folders = name.parent.parts
    if folders and folders[0] in domains:
        folders = folders[1:]
    return folders[0] if folders else None
