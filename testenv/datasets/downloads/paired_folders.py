"""Images and their segmentation masks in folders."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import DataError, one_line, shown_path
from ianvs.base.tool_files import is_of_tool, tool_part


@dataclass(frozen=True)
class Pair:
    """An image and its mask. `key` identifies both: the path below their split's folder without suffix."""

    key: str
    picture: Path
    label: Path
    mapped: bool = False  # the ids in `label` have to be mapped


def folder_of(parent: Path, name: str) -> Path:
    """Return the folder `parent/name`. If there is none, raises DataError that lists the existing ones."""
    folder = parent / name
    if folder.is_dir():
        return folder
    if not parent.is_dir():
        raise DataError(f"{shown_path(parent)}: there is no such folder.", code="missing-file")
    inside = sorted(entry.name for entry in parent.iterdir() if entry.is_dir() and not is_of_tool(entry.name))
    message = f"there is no folder '{name}' in it, only {one_line(inside) or 'files'}."
    raise DataError(
        f"{shown_path(parent)}: {message} `--root` is the folder into which the dataset was unpacked.",
        code="damaged-dataset",
    )


def files_below(folder: Path, suffix: str) -> dict[str, Path]:
    """Return the files that end in `suffix`, sorted, by their path below `folder` without the suffix."""
    below = (path for path in folder.rglob(f"*{suffix}") if path.is_file())
    files = (path for path in below if tool_part(path.relative_to(folder)) is None)
    return {path.relative_to(folder).as_posix()[: -len(suffix)]: path for path in sorted(files)}


def pair_up(
    pictures: Mapping[str, Path], labels: Mapping[str, Path], wanted: str, skip_missing: bool, warnings: list[str]
) -> tuple[Pair, ...]:
    """Return pairs of images and masks with the same key.

    Raises DataError if one is missing, or warns with `skip_missing`. wanted: the form of a mask's file name, for the
    message.
    """
    if not pictures and not labels:
        raise DataError(
            "found neither images nor masks. Is `--root` right, and was all of it unpacked?",
            code="damaged-dataset",
        )
    alone = [path for key, path in pictures.items() if key not in labels]
    if alone:
        _lost(alone, len(pictures), f"has no mask {wanted}", skip_missing, warnings)
    unseen = [path for key, path in labels.items() if key not in pictures]
    if unseen:
        _lost(unseen, len(labels), "has no image", skip_missing, warnings)
    return tuple(Pair(key, picture, labels[key]) for key, picture in pictures.items() if key in labels)


def unused_splits(folder: Path, used: Collection[str]) -> list[str]:
    """Return a warning for each folder of images that is used in neither part."""
    folders = (entry.name for entry in folder.iterdir() if entry.is_dir() and not is_of_tool(entry.name))
    others = sorted(name for name in folders if name not in used)
    return [f"the images of '{name}' are in neither index" for name in others]


def _lost(paths: list[Path], count: int, problem: str, skip_missing: bool, warnings: list[str]) -> None:
    first = f"{shown_path(paths[0])}: {problem}"
    more = f" ({len(paths)} of {count} files have none)" if len(paths) > 1 else ""
    if not skip_missing:
        raise DataError(
            f"{first}{more}. Complete the download, or leave these files out by `--skip-missing`.",
            code="damaged-dataset",
        )
    warnings.append(f"{first}{more}: left out")
