"""CamVid in 11 classes (Brostow et al. 2009; grouping of Badrinarayanan et al. 2017): one domain a sequence."""

from types import MappingProxyType

from ianvs.base.errors import DataError, shown_path
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, Preparer, PrepareRequest, RawDomain

LABELS = LabelSet(
    palette=MappingProxyType(
        {
            "sky": (128, 128, 128),
            "building": (128, 0, 0),
            "pole": (192, 192, 128),
            "road": (128, 64, 128),
            "sidewalk": (60, 40, 222),
            "tree": (128, 128, 0),
            "sign": (192, 128, 128),
            "fence": (64, 64, 128),
            "car": (64, 0, 128),
            "pedestrian": (64, 64, 0),
            "bicyclist": (0, 128, 192),
        }
    )
)
"""In the order of SegNet's segmentation masks, where 11 is void: len(classes), which is read as "ignore"."""

_SUFFIX = "_TrainIds.png"


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`rgb/{split}/{sequence}/*.jpg` (or png) with `gt/{split}/{sequence}/*_TrainIds.png`."""
    splits = ("train", request.test_split or "test")
    warnings: list[str] = []
    parts: list[dict[str, list[Pair]]] = []
    for split in splits:
        folder = folder_of(folder_of(request.root, "rgb"), split)
        labels = files_below(folder_of(folder_of(request.root, "gt"), split), _SUFFIX)
        by_domain: dict[str, list[Pair]] = {}
        pictures = files_below(folder, ".jpg") | files_below(folder, ".png")
        for pair in pair_up(pictures, labels, f"*{_SUFFIX}", request.skip_missing, warnings):
            sequence, slash, _ = pair.key.partition("/")
            if not slash:
                message = "is in no folder of a sequence; expected rgb/{split}/{sequence}/{image}."
                raise DataError(f"{shown_path(pair.picture)}: {message}", code="damaged-dataset")
            by_domain.setdefault(sequence, []).append(pair)
        parts.append(by_domain)
    train, test = parts
    for domain in sorted(train.keys() ^ test.keys()):
        has, lacks = splits if domain in train else splits[::-1]
        message = f"the sequence {domain} has images in {has}, none in {lacks}. A domain needs both."
        raise DataError(f"{shown_path(request.root)}: {message}", code="damaged-dataset")
    split_rule = {"train": "train", "test": splits[1]}
    return tuple(
        RawDomain(domain, LABELS, tuple(train[domain]), tuple(test[domain]), split_rule, None, tuple(warnings))
        for domain in sorted(train)
    )


PREPARER = Preparer("camvid", find, ("test_split",), several=True)
