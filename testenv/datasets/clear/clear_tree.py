"""The file lists of a CLEAR release (Lin et al. 2021, arXiv 2201.06289); no image is opened.

Two layouts were released. "metadata": the folders train_image_only (or train) and test, each with class_names.txt,
images, and labeled_metadata.json, which gives for each bucket and class a json of {flickr id: {"IMG_PATH": ...}}.
"lists": class_names.txt, and training_folder/filelists/{bucket}/all.txt with a line "path label" per image, and the
authors' five splits in training_folder/testset_ratio_0.3/split_{0..4}/{bucket}/{train,test}.txt. It has no test set.

Bucket 0 was released for pre-training, without labels; buckets without images are left out.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line, shown_path
from ianvs.base.tool_files import is_of_tool
from ianvs.exam.data.listing import SourceError, summary

METADATA, LISTS = "metadata", "lists"
TRAIN_FOLDERS = ("train_image_only", "train")  # the second one also has the features and the unlabelled metadata
OLD_FOLDER = "training_folder"


@dataclass(frozen=True)
class Tree:
    """An unpacked release. classes: those of class_names.txt; the index of a class is its line."""

    layout: str  # METADATA or LISTS
    root: Path
    train: Path  # the folder of the training part
    test: Path | None  # that of the released test set
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    """N labelled images, bucket by bucket.

    paths: (N,) files. ids: (N,) "bucket/class/flickr id". y: (N,) int64, index of the class. buckets: (N,) "1", ...
    """

    paths: NDArray[np.str_]
    ids: NDArray[np.str_]
    y: NDArray[np.int64]
    buckets: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, keep: NDArray[Any]) -> Labelled:
        """Return the images at `keep` (positions or a mask), in that order."""
        return Labelled(self.paths[keep], self.ids[keep], self.y[keep], self.buckets[keep])


def find_tree(root: Path, archives: str, features: str | None = None) -> Tree:
    """Return the release in `root`. Raises SourceError that names the right folder, or the missing `archives`.

    features: if both training folders exist, take the one with these features.
    """
    folders = [root / name for name in TRAIN_FOLDERS if (root / name / "labeled_metadata.json").is_file()]
    if folders:
        having = [folder for folder in folders if features and (folder / "features" / features).is_dir()]
        train, test = (having or folders)[0], root / "test"
        test_there = (test / "labeled_metadata.json").is_file()
        classes = _class_names([train, root])
        if test_there and (test_classes := _class_names([test, root])) != classes:
            strange = one_line(sorted({*test_classes} ^ {*classes})) or "their order differs"
            message = f"names other classes than {shown_path(train)}: {strange}. Unpack both parts of one release."
            raise SourceError.single(message, Location(test / "class_names.txt"), "damaged-dataset")
        return Tree(METADATA, root, train, test if test_there else None, classes)
    if (root / OLD_FOLDER / "filelists").is_dir():
        return Tree(LISTS, root, root / OLD_FOLDER, None, _class_names([root, root / OLD_FOLDER]))
    if (meant := _meant(root)) is not None:
        message = f"the release is in {shown_path(meant)}. Set `root` to that folder."
    else:
        message = f"{shown_path(root)} holds no release of CLEAR. Unpack {archives} there."
    raise SourceError([ValidationError(message, code="missing-data")])


def read_metadata(folder: Path, classes: Sequence[str]) -> Labelled:
    """Return the images listed in labeled_metadata.json of a training or test folder.

    Each bucket lists only its own images.
    """
    overview = folder / "labeled_metadata.json"
    problems: list[ValidationError] = []
    rows: list[tuple[str, str, int, str]] = []
    places: list[Location] = []
    for bucket, by_class in sorted(read_mapping(overview).items(), key=lambda item: _number(item[0])):
        for name in by_class:
            if name not in classes:
                message = f"bucket {bucket} names the class '{name}', class_names.txt does not.{closest(name, classes)}"
                problems.append(ValidationError(message, Location(overview), code="damaged-dataset"))
        for index, name in enumerate(classes):
            if name not in by_class:
                continue
            file = folder / by_class[name]
            if not file.is_file():
                message = f"names {by_class[name]}, which is not there. Unpack the archive again."
                problems.append(ValidationError(message, Location(overview), code="damaged-dataset"))
                continue
            for key, entry in sorted(
                read_mapping(file).items()
            ):  # sorted, because the order in a json file has no meaning
                if not isinstance(entry, dict) or "IMG_PATH" not in entry:
                    problems.append(
                        ValidationError(f"the entry '{key}' has no IMG_PATH.", Location(file), code="damaged-dataset")
                    )
                    continue
                rows.append((os.fspath(folder / entry["IMG_PATH"]), f"{bucket}/{name}/{key}", index, bucket))
                places.append(Location(file))
    return _labelled(rows, places, problems, Location(overview))


def read_lists(tree: Tree, part: str, split: int | None = None) -> Labelled:
    """Return the images in the layout LISTS.

    Part: "train" or "test" of the authors' split, or "all" if `split` is None.
    """
    above = tree.train / ("filelists" if split is None else f"testset_ratio_0.3/split_{split}")
    problems: list[ValidationError] = []
    rows: list[tuple[str, str, int, str]] = []
    places: list[Location] = []
    for bucket in _bucket_names(tree.train):
        file = above / bucket / f"{part}.txt"
        if not file.is_file():
            if bucket != "0":
                message = f"is not there, though bucket_indices.json has bucket {bucket}. Unpack the archive again."
                problems.append(ValidationError(message, Location(file), code="damaged-dataset"))
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            path, _, label = line.strip().rpartition(" ")
            index = int(label) if label.isdecimal() else -1
            if not path or not 0 <= index < len(tree.classes):
                message = f"'{line}' should be a path and a class index below {len(tree.classes)}."
                problems.append(ValidationError(message, Location(file, number, 1), code="damaged-dataset"))
                continue
            key = f"{bucket}/{tree.classes[index]}/{Path(path).stem}"
            rows.append((os.fspath(tree.root / path), key, index, bucket))
            places.append(Location(file, number, 1))
    return _labelled(rows, places, problems, Location(above))


def _labelled(
    rows: list[tuple[str, str, int, str]], places: list[Location], problems: list[ValidationError], location: Location
) -> Labelled:
    first: dict[str, Location] = {}
    for (_, key, _, _), place in zip(rows, places, strict=True):
        if key in first:
            problems.append(
                ValidationError(f"{key} is listed twice, at {first[key]} too. Keep one.", place, code="damaged-dataset")
            )
        first[key] = place
    listed = _listed_folders({os.path.dirname(path) for path, *_ in rows})  # noqa: PTH120  (150 000 of them)
    for (path, *_), place in zip(rows, places, strict=True):
        folder, name = os.path.split(path)
        if name not in listed[folder]:
            message = f"names {shown_path(path)}, which is not there. Unpack the archive again."
            problems.append(ValidationError(message, place, code="damaged-dataset"))
    if not rows and not problems:
        problems.append(
            ValidationError("names no labelled images. Unpack the archive again.", location, code="empty-dataset")
        )
    if problems:
        raise SourceError(summary(problems))
    paths, ids, y, buckets = zip(*rows, strict=True)
    return Labelled(np.array(paths), np.array(ids), np.array(y, dtype=np.int64), np.array(buckets))


def _listed_folders(folders: set[str]) -> dict[str, set[str]]:
    """Return file names by folder; listing a folder is faster than checking each of its files."""
    names: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        if Path(folder).is_dir():
            names[folder] = set(os.listdir(folder))  # noqa: PTH208
    return names


def _bucket_names(folder: Path) -> list[str]:
    file = folder / "bucket_indices.json"
    if file.is_file():
        names = _json(file)
        if not isinstance(names, list):
            raise SourceError.single("should be a list of buckets.", Location(file), "damaged-dataset")
    else:
        folders = [path for path in (folder / "filelists").iterdir() if path.is_dir()]
        names = [path.name for path in folders if not is_of_tool(path.name)]
    return sorted({str(name) for name in names}, key=_number)


def _number(bucket: str) -> tuple[int, str]:
    return (int(bucket) if bucket.isdecimal() else 1 << 30), bucket


def _class_names(folders: list[Path]) -> tuple[str, ...]:
    file = next((folder / "class_names.txt" for folder in folders if (folder / "class_names.txt").is_file()), None)
    if file is None:
        message = "is not there; its lines are the names of the classes. Unpack the archive again."
        raise SourceError.single(message, Location(folders[0] / "class_names.txt"), "damaged-dataset")
    names = tuple(line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    if not names or len(set(names)) < len(names):
        raise SourceError.single("should name each class once, one a line.", Location(file), "damaged-dataset")
    return names


def _meant(root: Path) -> Path | None:
    """Return the folder of the release if `root` is one level too deep or up to two levels too high; else None."""
    candidates = [root.parent]
    if root.is_dir():
        candidates += [path for pattern in ("*", "*/*") for path in sorted(root.glob(pattern)) if path.is_dir()]
    inside = [*(f"{name}/labeled_metadata.json" for name in TRAIN_FOLDERS), f"{OLD_FOLDER}/filelists"]
    return next((path for path in candidates if any((path / name).exists() for name in inside)), None)


def read_mapping(file: Path) -> dict[str, Any]:
    """Return the mapping in a json file. Raises SourceError."""
    value = _json(file)
    if not isinstance(value, dict):
        raise SourceError.single("should be a mapping.", Location(file), "damaged-dataset")
    return value


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        message = f"is no json ({error}). Unpack the archive again."
        raise SourceError.single(message, Location(file), "damaged-dataset") from None
