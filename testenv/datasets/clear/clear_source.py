"""The sources `clear10` and `clear100`: labelled photographs by year (Lin et al. 2021, arXiv 2201.06289).

Every bucket is a domain with its number as name, so the scenario domain-incremental has one round for each.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ianvs.base.errors import ValidationError
from ianvs.base.seeding import generator
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples, Source
from ianvs.exam.data.cache import cached_arrays, slice_of
from ianvs.exam.data.fingerprint import digest_of, file_digests
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.split import stratified_split
from ianvs.testenv.datasets.array_source import unknown
from ianvs.testenv.datasets.clear.clear_samples import cached_squares, feature_files, read_features
from ianvs.testenv.datasets.clear.clear_tree import METADATA, Labelled, Tree, find_tree, read_lists, read_metadata

VERSION = 1  # part of every fingerprint: increase it when the same files give other samples
SIZE = 224  # pixels, as in the authors' training
TEST_SHARE = 0.3  # of the protocol iid

Parts = tuple[tuple[Path, Labelled], ...]  # (folder, images) of the training and of the test part


class _Clear(Source):
    """A release, cut into a training and a test part.

    protocol: "heldout" trains on the released training part and tests on the released test set. "iid" cuts each bucket
    of the training part, 70 % to 30 %, by `split` 0 to 4: the authors' lists where the release has them, else
    class by class, seeded by `split`. "streaming" trains and tests on all labelled images of the training part; it
    is fair only for test sets of buckets to come.
    features: train on these released feature vectors instead of images.
    """

    takes: ClassVar[tuple[str, ...]] = ("using", "image_size")
    archives: ClassVar[Mapping[str, str]]  # {name: md5} of the training and of the test part

    protocol: Literal["heldout", "iid", "streaming"] = "heldout"
    split: int | None = Field(None, ge=0, le=4)
    features: Literal["moco_b0", "moco_imagenet", "byol_imagenet", "imagenet"] | None = None

    @model_validator(mode="after")
    def _split_of_iid(self) -> Self:
        if self.split is not None and self.protocol != "iid":
            raise ValueError(f"`split` belongs to `protocol: iid`; {self.protocol} has one cut. Take it out.")
        return self

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return the errors that can be found without opening an image."""
        place = spec.places.get("root", spec.place)
        if spec.root is None:
            message = f"{spec.name} needs `root`, the folder into which {self._archives()} were unpacked."
            return [ValidationError(message, place, code="missing-key")]
        problems = []
        if self.features is not None and spec.image_size is not None:
            message = "`image_size` is for images; with `features` none are read. Take one of them out."
            problems.append(
                ValidationError(message, spec.places.get("image_size", spec.place), code="conflicting-keys")
            )
        if spec.image_size is not None and spec.image_size[0] != spec.image_size[1]:
            message = f"images of {spec.name} are cut to squares. Give one number, such as `image_size: {SIZE}`."
            problems.append(ValidationError(message, spec.places.get("image_size", spec.place), code="invalid-value"))
        try:
            tree, parts = self._parts(spec)
            if self.features is not None:
                for folder, labelled in parts:
                    feature_files(tree, folder, self.features, labelled)
        except SourceError as broken:
            problems += [
                ValidationError(problem.message, problem.location or place, code=problem.code)
                for problem in broken.problems
            ]
        return problems

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the samples: the images of each part, and their content."""
        tree, parts = self._parts(spec)
        return self._fingerprint(spec, tree, parts, cache_dir)

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return images (N, size, size, 3) uint8, or features (N, D) float32, as memory maps. Raises SourceError."""
        tree, parts = self._parts(spec)
        fingerprint = self._fingerprint(spec, tree, parts, cache_dir)
        if self.features is not None:
            named, features = zip(("train", "test"), parts, strict=True), self.features
            key = f"{spec.name}-{fingerprint[:32]}"
            made = cached_arrays(
                cache_dir, key, lambda: {name: read_features(tree, *part, features) for name, part in named}
            )
            x = [made["train"], made["test"]]
        else:
            weight = len(parts[0][1]) / (len(parts[0][1]) + len(parts[1][1]))
            shares = slice_of(progress, 0.0, weight), slice_of(progress, weight, 1.0)
            x = [
                cached_squares(part.paths.tolist(), digests, _size(spec), cache_dir, share)
                for (_, part), digests, share in zip(parts, _digests(parts, cache_dir), shares, strict=True)
            ]
        train, test = (
            Samples(pixels, part.y, np.array([f"{spec.name}/{name}" for name in part.ids.tolist()]), part.buckets)
            for pixels, (_, part) in zip(x, parts, strict=True)
        )
        return Dataset(str(spec.name), "classification", train, test, tree.classes, fingerprint)

    def _parts(self, spec: DatasetSpec) -> tuple[Tree, Parts]:
        tree = find_tree(Path(spec.root or "."), self._archives(), self.features)
        train, test = self._cut(spec, tree)
        if spec.using:
            buckets = list(dict.fromkeys(train[1].buckets.tolist()))
            if wrong := unknown(spec, "bucket", buckets):
                raise SourceError(wrong)
            train, test = ((folder, part.take(np.isin(part.buckets, spec.using))) for folder, part in (train, test))
        return tree, (train, test)

    def _cut(self, spec: DatasetSpec, tree: Tree) -> Parts:
        """Return the training and the test part of a protocol, with all buckets."""
        split = self.split or 0
        if self.protocol == "heldout":
            if tree.layout != METADATA:
                message = (
                    "this release of CLEAR has no test set of its own. Set `protocol: iid` or `protocol: streaming`."
                )
                raise SourceError.single(message, spec.places.get("protocol", spec.place), "invalid-choice")
            if tree.test is None:
                archive, md5 = list(self.archives.items())[1]
                message = (
                    f"the released test set is not there: unpack {archive} (md5 {md5}) into "
                    f"{tree.root}, or set `protocol: iid`, which tests on a part of the training set."
                )
                raise SourceError([ValidationError(message, code="damaged-dataset")])
            released = read_metadata(tree.train, tree.classes), read_metadata(tree.test, tree.classes)
            return (tree.train, released[0]), (tree.test, released[1])
        if tree.layout != METADATA and self.protocol == "iid":
            return (tree.train, read_lists(tree, "train", split)), (tree.train, read_lists(tree, "test", split))
        whole = read_metadata(tree.train, tree.classes) if tree.layout == METADATA else read_lists(tree, "all")
        if self.protocol == "streaming":
            return (tree.train, whole), (tree.train, whole)
        groups = np.unique(np.stack([whole.buckets, whole.y.astype(str)]), axis=1, return_inverse=True)[1]
        rng = generator(split, 0, "CLEAR iid")
        train, test = stratified_split(groups.reshape(-1), len(whole), TEST_SHARE, rng)
        return (tree.train, whole.take(train)), (tree.train, whole.take(test))

    def _fingerprint(self, spec: DatasetSpec, tree: Tree, parts: Parts, cache_dir: Path) -> str:
        facts: dict[str, object] = {"version": VERSION, "name": spec.name, "classes": tree.classes}
        if self.features is None:
            facts["size"] = _size(spec)
            contents = _digests(parts, cache_dir)
        else:
            files = [feature_files(tree, folder, self.features, labelled) for folder, labelled in parts]
            contents = [file_digests([os.fspath(file) for file in by_id.values()], cache_dir) for by_id in files]
        for name, (_, labelled), content in zip(("train", "test"), parts, contents, strict=True):
            facts[name] = digest_of([labelled.ids.tolist(), content])
        return digest_of(facts)

    def _archives(self) -> str:
        return " and ".join(f"{archive} (md5 {md5})" for archive, md5 in self.archives.items())


class Clear10(_Clear):
    summary: ClassVar[str] = "photographs by year in 10 buckets, 11 classes; 33 000 + 5 500 (Lin et al. 2021)"
    made_of: ClassVar[tuple[str, ...]] = ("CLEAR-10",)
    archives: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "clear10-train-image-only.zip": "5171f720810d60b471c308dee595d430",
            "clear10-test.zip": "bf9a85bfb78fe742c7ed32648c9a3275",
        }
    )


class Clear100(_Clear):
    summary: ClassVar[str] = "photographs by year in 10 buckets, 100 classes; 100 000 + 50 000 (Lin et al. 2021)"
    made_of: ClassVar[tuple[str, ...]] = ("CLEAR-100",)
    archives: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "clear100-train-image-only.zip": "ea85cdba9efcb3abf77eaab5554052c8",
            "clear100-test.zip": "e160815fb5fd4bc71dacd339ff41e6a9",
        }
    )


def _size(spec: DatasetSpec) -> int:
    return SIZE if spec.image_size is None else spec.image_size[0]


def _digests(parts: Parts, cache_dir: Path) -> list[list[str]]:
    """Return content hashes of the images of each part, computed together, so all splits share one cache."""
    paths = sorted({path for _, labelled in parts for path in labelled.paths.tolist()})
    digest_of = dict(zip(paths, file_digests(paths, cache_dir), strict=True))
    return [[digest_of[path] for path in labelled.paths.tolist()] for _, labelled in parts]
