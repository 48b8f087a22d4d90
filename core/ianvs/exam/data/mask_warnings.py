"""Warnings about unusual numbers in segmentation masks."""

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import one_line
from ianvs.exam.data.csv_headers import yaml_text
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.labels import IGNORED

_LARGE = 0.2  # share of ignored pixels above which a class that occurs nowhere is suspicious
_MANY = 100  # number of unnamed classes above which masks were probably not numbered on purpose
_SHOWN = 20  # classes listed in a remedy


def mask_warnings(counts: NDArray[np.int64], dataset: Dataset) -> dict[str, str]:
    """Return warnings by name. counts: (256,) pixels of each class in both parts, at 255 those without a class."""
    names = dataset.classes
    occurring = np.flatnonzero(counts[: min(len(names), IGNORED)])
    absent = [name for index, name in enumerate(names) if index not in occurring]
    share = counts[IGNORED] / max(1, counts.sum())
    doubts: dict[str, str] = {}
    from_one = bool(share) and not _numbered(names) and len(names) > 1 and 0 not in occurring
    if from_one or (share and len(occurring) == 1) or (share > _LARGE and absent and not _numbered(names)):
        which = f"the only class in the masks is '{names[occurring[0]]}'" if len(occurring) == 1 else (
            f"no mask holds {one_line(absent)}"
        )  # fmt: skip
        if _numbered(names):
            pairs = [f"background: {occurring[0]}", f"foreground: {IGNORED}"]
        else:  # all numbers that occur: with the key, other numbers are refused
            pairs = [f"{yaml_text(names[index])}: {index}" for index in occurring.tolist()]
            pairs.append(f"{yaml_text(absent[0] if absent else 'foreground')}: {IGNORED}")
        doubts["ignored classes"] = (
            f"{which}, and {share:.1%} of the pixels are ignored: {IGNORED} in a mask means no class, which is neither "
            f"learned nor scored. If {IGNORED} stands for a class, say so in the dataset: "
            f"`mask_values: {{{', '.join(pairs)}}}`."
        )
        if from_one:
            numbers = one_line([f"{yaml_text(name)}: {number}" for number, name in enumerate(names, start=1)], _SHOWN)
            doubts["ignored classes"] += (
                f" If the masks number the classes from 1, so that {len(names)} is read as no class, write "
                f"`mask_values: {{{numbers}}}`."
            )
    elif _numbered(names) and (len(absent) > len(occurring) or len(names) > _MANY):
        shown = ", ".join(f"NAME_{index}: {number}" for index, number in enumerate(occurring[:4].tolist()))
        doubts["gaps in masks"] = (
            f"masks hold {len(occurring)} numbers from {occurring[0]} to {occurring[-1]}, so there are {len(names)} "
            f"classes, of which {len(absent)} occur nowhere. Where the numbers are colours or greys, name the class of "
            f"each: `mask_values: {{{shown}{', ...' if len(occurring) > 4 else ''}}}`. Many numbers also come from "
            "lossy compression, such as JPEG: take the original masks."
        )
    return doubts


def _numbered(names: tuple[str, ...]) -> bool:
    """Return whether the classes are named by their numbers."""
    return names == tuple(map(str, range(len(names))))
