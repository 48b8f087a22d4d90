"""BDD100K, semantic segmentation (Yu et al. 2020): 7000 training and 1000 validation pictures of 1280x720.

Its label pictures hold the trainIds of Cityscapes.
"""

from ianvs.testenv.datasets.downloads import cityscapes
from ianvs.testenv.datasets.downloads.found import Found, Preparer, PrepareRequest
from ianvs.testenv.datasets.downloads.paired_folders import files_below, folder_of, pair_up, unused_splits

LABELS = cityscapes.LABELS


def find(request: PrepareRequest) -> tuple[Found, ...]:
    """`seg/images/{split}/{id}.jpg` with `seg/labels/{split}/{id}_train_id.png`."""
    seg = request.root if request.root.name == "seg" else folder_of(request.root, "seg")
    pictures_in, labels_in = folder_of(seg, "images"), folder_of(seg, "labels")
    splits = ("train", request.test_split or "val")
    warnings: list[str] = []
    train, test = (
        pair_up(
            files_below(folder_of(pictures_in, split), ".jpg"),
            files_below(folder_of(labels_in, split), "_train_id.png"),
            "*_train_id.png",
            request,
            warnings,
        )
        for split in splits
    )
    warnings += unused_splits(pictures_in, splits)
    split_rule = {"train": "train", "test": splits[1]}
    return (Found(request.domain or "BDD", LABELS, train, test, split_rule, None, tuple(warnings)),)


PREPARER = Preparer("bdd100k", find, ("test_split",))
