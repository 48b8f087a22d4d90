"""The input and output types of the preparers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ianvs.testenv.datasets.downloads.paired_folders import Pair, unused_splits


@dataclass(frozen=True)
class LabelSet:
    """Names of classes in the order of their ids, with their colours; `groups` is empty or holds every class once."""

    palette: Mapping[str, tuple[int, int, int]]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.palette)


@dataclass(frozen=True)
class PrepareRequest:
    """`root` holds the dataset as downloaded."""

    root: Path
    domain: str | None = None  # instead of the preparer's default name
    classes: str | None = None  # "cityscapes": the 19 trainIds instead of the dataset's own classes
    test_split: str | None = None  # the folder that is used as the test part
    test_ratio: float = 0.2
    seed: int = 0
    skip_missing: bool = False  # leave out images without labels, with a warning


@dataclass(frozen=True)
class RawDomain:
    """One domain of a download; no image has been opened yet."""

    domain: str
    labels: LabelSet
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    split: Mapping[str, str | int | float]  # how the test part was chosen
    mapping: Mapping[int, int] | None = (
        None  # for pairs that have to be mapped: id in the file -> id in `labels` or 255
    )
    warnings: tuple[str, ...] = ()
    first_channel: bool = False  # ids are in the first channel of several


@dataclass(frozen=True)
class Preparer:
    """A function that finds a dataset's files.

    `options` are the fields of PrepareRequest that it uses besides the common ones.
    """

    name: str
    find: Callable[[PrepareRequest], tuple[RawDomain, ...]]
    options: tuple[str, ...] = ()
    several: bool = False  # domains; each gets its own folder


def domain_of_splits(
    request: PrepareRequest,
    domain: str,
    labels: LabelSet,
    pictures: Path,
    test_split: str,
    pairs_of: Callable[[str, list[str]], Sequence[Pair]],
    mapping: Mapping[int, int] | None = None,
) -> tuple[RawDomain, ...]:
    """Return the one domain of a dataset whose images lie in folders below `pictures`, one for each split.

    domain, test_split: defaults if the request names no other. pairs_of: returns the pairs of a split, and may add to a
    list of warnings. mapping: for pairs that have to be mapped.
    """
    splits, warnings = ("train", request.test_split or test_split), list[str]()
    train, test = (tuple(pairs_of(split, warnings)) for split in splits)
    warnings += unused_splits(pictures, splits)
    mapping = mapping if any(pair.mapped for pair in (*train, *test)) else None
    split = {"train": "train", "test": splits[1]}
    return (RawDomain(request.domain or domain, labels, train, test, split, mapping, tuple(warnings)),)
