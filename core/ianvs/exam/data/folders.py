"""Folders of class folders of images."""

import os
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

import numpy as np

from ianvs.base.errors import Location, ValidationError, one_line
from ianvs.base.split_words import LEFT_OUT, parts_by_word, role_of
from ianvs.base.tool_files import tool_part
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.csv_headers import yaml_list
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import Listing, SourceError, column, data_warning
from ianvs.exam.data.split_columns import is_used_for_both


def holds_pictures(path: Path) -> tuple[Path, ...]:
    """Return the folder itself, if the path is one; its samples are found when it is read."""
    return (path,) if path.is_dir() else ()


@dataclass(frozen=True)
class ClassFolders:
    """The images of one part.

    Attributes:
        names: Their paths.
        classes: Their classes.
        domains: Their outer folders if `using` names one of these, else "".
        warnings: Data that are read in an unexpected way.
        marks: As of a `Listing`.
    """

    names: Sequence[PurePath]
    classes: Sequence[str]
    domains: Sequence[str]
    warnings: tuple[ValidationError, ...]
    marks: tuple[str, ...] = ()


def read_folder(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """Read `<class>/.../<image>`, or `<domain>/<class>/.../<image>` for the domains in `using`.

    Folders train and test above or below the outermost ones determine the parts. Samples are in the order of the sorted
    paths, which is the same on every machine.
    """
    names, left_out = _list_images(path)
    if not names:
        message = f"holds no images; expected <class>/<image> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError.single(message, Location(path), "empty-dataset")
    by_class = class_folders(names, path, spec, part)
    warnings = []
    if left_out:
        message = (
            f"{one_line(left_out, 5)} is left out: hidden files and those of tools are no samples. Rename a folder "
            "that is a class, or name its images in an index file."
        )
        warnings.append(data_warning(message, Location(path)))
    return Listing(
        form="files",
        x=column([os.fspath(path / name) for name in by_class.names]),
        label_form="class",
        y=column(by_class.classes),
        ids=np.array([name.as_posix() for name in by_class.names], dtype=str),
        domains=column([""] * len(by_class.names)),
        sources=(path,),
        warnings=(*warnings, *by_class.warnings),
    )


def class_folders(names: Sequence[PurePath], path: Path, spec: DatasetSpec, part: str) -> ClassFolders:
    """Return the images of a part with their classes, determined by their folders.

    Args:
        names: The paths of the images below `path`, sorted.
        path: A folder or an archive.
        spec: The dataset.
        part: "train" or "test".

    Raises:
        SourceError: If images are in no class folder, or the folders of the parts do not fit.
    """
    warnings: list[ValidationError] = []
    marks: tuple[str, ...] = ()
    names, inside = list(names), list(names)
    if (level := _split_level(names, path, spec)) is not None:
        parts = parts_by_word({name.parts[level] for name in names}) or {}
        _require_no_share(parts, path, spec)
        both = is_used_for_both(path, spec)
        warnings += _part_warnings([name.parts[level] for name in names], parts, path, part, both)
        marks = ("without validation",) if part == "test" and LEFT_OUT in parts.values() else ()
        names = [name for name in names if parts[name.parts[level]] == part]
        inside = [PurePath(*name.parts[:level], *name.parts[level + 1 :]) for name in names]
    labels = [_class(name, spec.using) for name in inside]
    loose = [name.as_posix() for name, label in zip(names, labels, strict=True) if label is None]
    if loose:
        message = f"these images are in no class folder: {one_line(loose, 3)}. Put each into the folder of its class."
        raise SourceError.single(message, Location(path), "invalid-record")
    below = sorted({name.parts[1] for name in inside if len(name.parts) > 2})
    if not spec.using and len({*labels}) == 1 and len(below) > 1 and path.is_dir():
        message = (
            f"all images are read as of one class, {labels[0]}, the folder around them. If the folders in it, "
            f"{one_line(below, 4)}, are the classes, give {path.name}/{labels[0]} in place of {path.name}."
        )
        warnings.append(data_warning(message, Location(path)))
    outer, classes = _parallel_folders(inside)
    if not spec.using and outer:
        message = (
            f"the class folders {one_line(outer)} hold the same folders each, {one_line(classes)}. If "
            "the outer ones are domains and the inner ones classes, write in the dataset "
            f"`using: {yaml_list(outer)}`."
        )
        warnings.append(data_warning(message, Location(path)))
    outermost = outer if outer and spec.using else spec.using  # a misspelt name in `using` has a similar folder
    domains = [name.parts[0] if name.parts[0] in outermost else "" for name in inside]
    return ClassFolders(names, [str(label) for label in labels], domains, tuple(warnings), marks)


def _split_level(names: Sequence[PurePath], path: Path, spec: DatasetSpec) -> int | None:
    """Return the level of the folders named like parts of a dataset; None without such folders."""
    outer = {name.parts[0] for name in names if len(name.parts) > 1}
    roles = {role_of(folder) for folder in outer}
    if not outer & {*spec.using} and roles - {None}:
        flat = [name.as_posix() for name in names if len(name.parts) < 3]
        if "train" in roles and len(roles - {None}) > 1 and (flat or None in roles):
            _refuse_parts(sorted(outer, key=lambda folder: (role_of(folder) is None, folder)), flat, path)
        if not flat and None not in roles:
            return 0
    second = {name.parts[1] for name in names if len(name.parts) > 2}
    roles = {role_of(folder) for folder in second}
    if all(len(name.parts) > 2 for name in names) and not second & {*spec.using}:
        return 1 if None not in roles and "train" in roles and len(roles) > 1 else None
    return None


def _refuse_parts(outer: Sequence[str], flat: Sequence[str], path: Path) -> None:
    """Raise SourceError for folders train and test beside others, or without class folders."""
    parts = one_line([folder for folder in outer if role_of(folder) is not None])
    if flat:
        message = (
            f"the folders {parts} are called as parts of a dataset, and these images are in no class folder: "
            f"{one_line(flat, 3)}. Put each into the folder of its class, such as {outer[0]}/cat. If {parts} are "
            "classes, rename them."
        )
    else:
        others = one_line([folder for folder in outer if role_of(folder) is None], 3)
        message = (
            f"the folders {parts} are called as parts of a dataset, {others} beside them is not. Name the parts: "
            f"`train_data: {path.name}/{_with_role(outer, 'train')}` and `test_data: {path.name}/"
            f"{_with_role(outer, 'test', 'validation')}`. If {parts} are classes, rename them."
        )
    raise SourceError.single(message, Location(path), "ambiguous-data")


def _with_role(folders: Sequence[str], *roles: str) -> str:
    return next(folder for role in roles for folder in folders if role_of(folder) == role)


def _require_no_share(parts: Mapping[str, str], path: Path, spec: DatasetSpec) -> None:
    if spec.test_share is not None and len({role_of(folder) for folder in parts}) > 1:
        message = (
            f"the folders {one_line(sorted(parts))} of {path.name} say which images are tested, and `test_share` would "
            "draw others. Give it as `train_data` and as `test_data`, in place of `test_share`; or rename the folders."
        )
        raise SourceError.single(message, spec.places.get("test_share", Location(path)), "conflicting-keys")


def _part_warnings(
    folders: Sequence[str], parts: Mapping[str, str], path: Path, part: str, both: bool
) -> Iterator[ValidationError]:
    """Yield warnings about the folders of the parts. Raises SourceError if there are none for this part."""
    counts = Counter(parts[folder] for folder in folders)
    if not counts[part]:
        message = (
            f"no image is of the {part} part: the folders that tell the parts are {one_line(sorted(parts))}. Name "
            f"the folder that holds it as `{part}_data`, or rename the folders."
        )
        raise SourceError.single(message, Location(path), "missing-data")
    if len(parts) > 1 and both:
        if part == "train":  # one message for both parts
            counted = f"{counts['train']} images for training, {counts['test']} for testing"
            message = f"the folders {one_line(sorted(parts))} are read as the split: {counted}. Nothing has to be done."
            yield data_warning(message, Location(path))
    elif len(parts) > 1:
        named = one_line(sorted(folder for folder in parts if parts[folder] == part))
        message = (
            f"{counts[part]} of {len(folders)} images are of the {part} part by the folder {named}, and the others are "
            "left out. If the folders are no parts of a dataset, rename them."
        )
        yield data_warning(message, Location(path))
    if part == "test" and counts[LEFT_OUT]:
        unused = one_line(sorted(folder for folder in parts if parts[folder] == LEFT_OUT))
        message = (
            f"{counts[LEFT_OUT]} validation images (in the folder {unused}) are left out: they are neither training "
            "nor test samples. To use them, move them into the folder of a part."
        )
        yield data_warning(message, Location(path))


def domain_folders(path: Path) -> list[str]:
    """Return the folders of domains if all folders in `path` hold the same class folders; else [].

    Folders of parts do not count: in `train/real/cat` and `real/train/cat` the domain is `real`.
    """
    return _outer_folders(_list_images(path)[0])


def packed_domains(path: Path) -> list[str]:
    """Return `domain_folders` for the images in a zip file; [] for other files."""
    if path.suffix.lower() != ".zip":
        return []
    try:
        with zipfile.ZipFile(path) as file:
            return _outer_folders(packed_images(file)[1])
    except (OSError, zipfile.BadZipFile):  # its reader reports what is wrong with it
        return []


def packed_images(file: zipfile.ZipFile) -> tuple[PurePosixPath, list[PurePosixPath]]:
    """Return (the folder that contains all images of an archive, their paths below it)."""
    names = [PurePosixPath(name) for name in file.namelist() if name.lower().endswith(PICTURE_SUFFIXES)]
    names = sorted((name for name in names if tool_part(Path(name)) is None), key=lambda name: name.parts)
    around = 0
    while names and len({name.parts[: around + 1] for name in names}) == 1 and len(names[0].parts) > around + 2:
        around += 1
    prefix = PurePosixPath(*names[0].parts[:around]) if names else PurePosixPath()
    return prefix, [PurePosixPath(*name.parts[around:]) for name in names]


def _outer_folders(names: Sequence[PurePath]) -> list[str]:
    roles = [{role_of(name.parts[level]) for name in names if len(name.parts) > level + 1} for level in (0, 1)]
    level = next((level for level in (0, 1) if None not in roles[level] and "train" in roles[level]), None)
    inside = names if level is None else [PurePath(*name.parts[:level], *name.parts[level + 1 :]) for name in names]
    return _parallel_folders(inside)[0]


def _parallel_folders(names: Sequence[PurePath]) -> tuple[list[str], list[str]]:
    """Return (outer folders, inner folders) of images, if each of the outer ones holds all inner ones; else ([],
    []).
    """
    inner = {name.parts[:2] for name in names if len(name.parts) > 2}
    classes = Counter(second for _, second in inner)
    outer = {first for first, _ in inner}
    if len(outer) > 1 and len(classes) > 1 and {*classes.values()} == {len(outer)}:
        return sorted(outer), sorted(classes)
    return [], []


def _list_images(folder: Path) -> tuple[list[PurePath], tuple[str, ...]]:
    """Return (images below a folder, sorted; folders and images that tools left there, which are no samples)."""
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
