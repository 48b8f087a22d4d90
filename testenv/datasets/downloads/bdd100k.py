"""BDD100K, semantic segmentation (Yu et al. 2020): 7000 training and 1000 validation images of 1280x720.

Its segmentation masks hold the trainIds of Cityscapes.
"""

from collections.abc import Sequence

from ianvs.testenv.datasets.downloads import cityscapes
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import Preparer, PrepareRequest, RawDomain, domain_of_splits

LABELS = cityscapes.LABELS


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`seg/images/{split}/{id}.jpg` with `seg/labels/{split}/{id}_train_id.png`."""
    seg = request.root if request.root.name == "seg" else folder_of(request.root, "seg")
    pictures_in, labels_in = folder_of(seg, "images"), folder_of(seg, "labels")

    def pairs_of(split: str, warnings: list[str]) -> Sequence[Pair]:
        pictures = files_below(folder_of(pictures_in, split), ".jpg")
        labels = files_below(folder_of(labels_in, split), "_train_id.png")
        return pair_up(pictures, labels, "*_train_id.png", request.skip_missing, warnings)

    return domain_of_splits(request, "BDD", LABELS, pictures_in, "val", pairs_of)


PREPARER = Preparer("bdd100k", find, ("test_split",))
