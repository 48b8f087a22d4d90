"""Cityscapes, fine annotations (Cordts et al. 2016): 2975 training and 500 validation images of 2048x1024."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ianvs.exam.data.labels import IGNORED
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, Preparer, PrepareRequest, RawDomain, domain_of_splits

LABELS = LabelSet(
    palette=MappingProxyType(
        {
            "road": (128, 64, 128),
            "sidewalk": (244, 35, 232),
            "building": (70, 70, 70),
            "wall": (102, 102, 156),
            "fence": (190, 153, 153),
            "pole": (153, 153, 153),
            "traffic light": (250, 170, 30),
            "traffic sign": (220, 220, 0),
            "vegetation": (107, 142, 35),
            "terrain": (152, 251, 152),
            "sky": (70, 130, 180),
            "person": (220, 20, 60),
            "rider": (255, 0, 0),
            "car": (0, 0, 142),
            "truck": (0, 0, 70),
            "bus": (0, 60, 100),
            "train": (0, 80, 100),
            "motorcycle": (0, 0, 230),
            "bicycle": (119, 11, 32),
        }
    ),
    groups=MappingProxyType(
        {
            "flat": ("road", "sidewalk"),
            "construction": ("building", "wall", "fence"),
            "object": ("pole", "traffic light", "traffic sign"),
            "nature": ("vegetation", "terrain"),
            "sky": ("sky",),
            "human": ("person", "rider"),
            "vehicle": ("car", "truck", "bus", "train", "motorcycle", "bicycle"),
        }
    ),
)
"""The 19 classes that are evaluated, by trainId."""

_OF_TRAIN_ID = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
LABEL_IDS: Mapping[int, int] = MappingProxyType(
    dict.fromkeys((*range(34), IGNORED), IGNORED) | {label: train for train, label in enumerate(_OF_TRAIN_ID)}
)
"""From the labelId of a `labelIds` image to the trainId; the classes that are not evaluated are ignored."""

_TRAIN_IDS, _LABEL_IDS = "_gtFine_labelTrainIds.png", "_gtFine_labelIds.png"


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`labelTrainIds` images where the official tool has written them, else `labelIds` ones, to be mapped."""
    pictures_in, labels_in = folder_of(request.root, "leftImg8bit"), folder_of(request.root, "gtFine")

    def pairs_of(split: str, warnings: list[str]) -> list[Pair]:
        folder = folder_of(labels_in, split)
        ready, raw = files_below(folder, _TRAIN_IDS), files_below(folder, _LABEL_IDS)
        pictures = files_below(folder_of(pictures_in, split), "_leftImg8bit.png")
        pairs = pair_up(pictures, raw | ready, f"*{_TRAIN_IDS} or *{_LABEL_IDS}", request.skip_missing, warnings)
        return [replace(pair, mapped=pair.key not in ready) for pair in pairs]

    return domain_of_splits(request, "CS", LABELS, pictures_in, "val", pairs_of, LABEL_IDS)


PREPARER = Preparer("cityscapes", find, ("test_split",))
