"""The sources `coco`, `yolo` and `voc`: images with boxes in common layouts."""

import os
from abc import abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from ianvs.base.errors import DataError, ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Source, SourceError
from ianvs.exam.data.fingerprint import listing_digest, settings_digest
from ianvs.exam.data.listing import Listing, column
from ianvs.exam.data.load_listing import check_listed, load_listed, reader_warnings
from ianvs.exam.data.typed_labels import Parts
from ianvs.testenv.data_types.detection.box_checks import checked_labels
from ianvs.testenv.data_types.detection.box_files import BoxFiles
from ianvs.testenv.data_types.detection.box_places import check_box_files
from ianvs.testenv.data_types.detection.coco_json import read_coco
from ianvs.testenv.data_types.detection.voc_xml import read_voc, read_voc_index
from ianvs.testenv.data_types.detection.yolo_txt import read_yolo

VERSION = 1  # part of every fingerprint: increase it when the same files give other samples


class BoxSource(Source):
    """Pictures with boxes; paths are relative to `root`. `image_size` resizes images and moves the boxes along.

    written_sizes: what is done about sizes that files of boxes write down, and EXIF orientations. check: a size that is
    not the picture's is refused. ignore: boxes are taken in pixels of the file.
    """

    takes: ClassVar[tuple[str, ...]] = ("image_size", "storage")

    written_sizes: Literal["check", "ignore"] = "check"

    @abstractmethod
    def read(self, root: Path) -> Parts:
        """Return the training and the test part. Raises DataError."""

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        try:
            parts = self._parts(spec)
            check_listed(parts, spec)
            return reader_warnings(parts)
        except SourceError as broken:
            return list(broken.problems)
        except DataError as error:
            return [ValidationError.from_exception(error, spec.places.get("name", spec.place), "unreadable-data")]

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the fingerprint of images, boxes and settings."""
        return self._fingerprint(self._parts(spec), spec, cache_dir)

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return the dataset, with memory maps of the decoded images, or the encoded images."""
        parts = self._parts(spec)
        return load_listed(parts, spec, self._fingerprint(parts, spec, cache_dir), cache_dir, progress)

    def _fingerprint(self, parts: Parts, spec: DatasetSpec, cache_dir: Path) -> str:
        train, test = (listing_digest(listing, cache_dir) for listing in parts)
        facts = {"source": [spec.name, VERSION], "class_names": parts[0].classes, "train": train, "test": test}
        return settings_digest(spec, facts)

    @property
    def _ignore_sizes(self) -> bool:
        return self.written_sizes == "ignore"

    def _listings(self, train: BoxFiles, test: BoxFiles, root: Path) -> Parts:
        return _listing(train, root, self._ignore_sizes), _listing(test, root, self._ignore_sizes)

    def _parts(self, spec: DatasetSpec) -> Parts:
        if spec.root is None:
            where = spec.places.get("name", spec.place)
            raise SourceError.single(
                f"{spec.name} needs `root`, the folder that its paths are relative to.", where, "missing-option"
            )
        train, test = self.read(spec.root)
        if train.classes != test.classes:
            message = f"the training part has the classes {train.classes}, the test part {test.classes}. Use one list."
            raise SourceError.single(message, spec.places.get("name", spec.place), "damaged-dataset")
        return train, test


class Coco(BoxSource):
    """train_annotations, test_annotations: json files. train_pictures, test_pictures: the folders of their images."""

    summary: ClassVar[str] = "images with boxes in COCO's layout: a json file of annotations for each part"

    train_annotations: str
    test_annotations: str
    train_pictures: str
    test_pictures: str

    def _state_of(self, file: Path) -> tuple[object, bool]:
        return _state(file), self._ignore_sizes

    def read(self, root: Path) -> Parts:
        train = _coco_part(
            root, self.train_annotations, self.train_pictures, *self._state_of(root / self.train_annotations)
        )
        return train, _coco_part(
            root, self.test_annotations, self.test_pictures, *self._state_of(root / self.test_annotations)
        )


class Yolo(BoxSource):
    """data: the file data.yaml. train_part, test_part: its keys of the training and the test images."""

    summary: ClassVar[str] = "images with boxes in YOLO's layout: data.yaml, and a txt file for each image"

    data: str = "data.yaml"
    train_part: str = "train"
    test_part: str = "val"

    def read(self, root: Path) -> Parts:
        train, test = (read_yolo(root / self.data, part) for part in (self.train_part, self.test_part))
        return self._listings(train, test, root)


class Voc(BoxSource):
    """train_split, test_split: lists of ImageSets/Main below `root`. Or train_list, test_list: files with lines
    "picture xml", as KubeEdge's pcb-aoi has them. The class list is that of the training part."""

    summary: ClassVar[str] = "images with boxes in PASCAL VOC's layout, or named by indices, as KubeEdge's pcb-aoi"

    train_split: str = "trainval"
    test_split: str = "test"
    train_list: str | None = None
    test_list: str | None = None

    @model_validator(mode="after")
    def _both_indices(self) -> Self:
        if (self.train_list is None) != (self.test_list is None):
            raise ValueError("give `train_list` and `test_list`, or none of them.")
        return self

    def read(self, root: Path) -> Parts:
        if self.train_list is not None and self.test_list is not None:
            train = read_voc_index(root / self.train_list)
            test = read_voc_index(root / self.test_list, train.classes)
        else:
            train = read_voc(root, self.train_split)
            test = read_voc(root, self.test_split, train.classes)
        return self._listings(train, test, root)


@lru_cache(maxsize=2)  # a training and a test part; checking, fingerprinting and loading read the same unchanged files
def _coco_part(root: Path, annotations: str, pictures: str, state: object, ignore_sizes: bool) -> Listing:
    return _listing(read_coco(root / annotations, root / pictures), root, ignore_sizes)


def _state(file: Path) -> object:
    """Return a value that changes when the file does."""
    return file.is_file() and (file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_ino)


def _listing(files: BoxFiles, root: Path, ignore_sizes: bool) -> Listing:
    names = [os.path.relpath(path, root) for path in files.pictures]
    labels: Any = checked_labels(files.labels, len(files.classes))
    return Listing(
        form="files",
        x=column([os.fspath(path.absolute()) for path in files.pictures]),
        label_form="detection",
        y=column(labels),
        ids=np.array(names, dtype=str),
        domains=column([""] * len(names)),
        sources=(root,),
        classes=files.classes,
        warnings=check_box_files(files, ignore_sizes=ignore_sizes),
    )
