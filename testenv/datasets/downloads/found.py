"""What the preparers have in common: what is asked of them, and what they find."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ianvs.testenv.datasets.downloads.labelset import LabelSet
from ianvs.testenv.datasets.downloads.paired_folders import Pair


@dataclass(frozen=True)
class PrepareRequest:
    """`root` holds the dataset as downloaded."""

    root: Path
    domain: str | None = None  # instead of the preparer's own name for it
    classes: str | None = None  # "cityscapes": the 19 trainIds instead of the dataset's own classes
    test_split: str | None = None  # the folder that becomes the test part
    test_ratio: float = 0.2
    seed: int = 0
    skip_missing: bool = False  # leave pictures without labels out, with a warning


@dataclass(frozen=True)
class Found:
    """One domain as it lies on the disk; no picture has been opened yet."""

    domain: str
    labels: LabelSet
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    split: Mapping[str, str | int | float]  # how the test part was chosen
    mapping: Mapping[int, int] | None = None  # for pairs that are to be mapped: id in the file -> id in `labels` or 255
    warnings: tuple[str, ...] = ()
    first_channel: bool = False  # ids are in the first channel of several


@dataclass(frozen=True)
class Preparer:
    """`options` are the fields of PrepareRequest that it heeds beside those that all do."""

    name: str
    find: Callable[[PrepareRequest], tuple[Found, ...]]
    options: tuple[str, ...] = ()
    several: bool = False  # domains: each gets a folder of its own
