"""Cloud-Robotics (KubeEdge): about 2600 images from a robot dog, 30 classes in 7 groups."""

from collections.abc import Sequence
from types import MappingProxyType

from ianvs.testenv.datasets.downloads import cityscapes
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, Preparer, PrepareRequest, RawDomain, domain_of_splits

LABELS = LabelSet(
    palette=MappingProxyType(
        {
            **cityscapes.LABELS.palette,
            # No table of colours is public for the following: these are our own.
            "stair": (0, 200, 200),
            "curb": (220, 190, 40),
            "ramp": (180, 100, 180),
            "runway": (90, 40, 90),
            "flowerbed": (255, 105, 180),
            "door": (140, 80, 30),
            "CCTV camera": (40, 40, 40),
            "Manhole": (100, 60, 60),
            "hydrant": (255, 80, 0),
            "belt": (200, 255, 0),
            "dustbin": (0, 160, 60),
        }
    ),
    groups=MappingProxyType(
        {
            "flat": ("road", "sidewalk", "ramp", "runway"),
            "human": ("person", "rider"),
            "vehicle": ("car", "truck", "bus", "train", "motorcycle", "bicycle"),
            "construction": ("building", "wall", "fence", "stair", "curb", "flowerbed", "door"),
            "object": (
                "pole",
                "traffic sign",
                "traffic light",
                "CCTV camera",
                "Manhole",
                "hydrant",
                "belt",
                "dustbin",
            ),
            "nature": ("vegetation", "terrain"),
            "sky": ("sky",),
        }
    ),
)
"""By trainId: the 19 classes of Cityscapes, then 11 of its own."""


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`rgb/{split}/{scene}/{number}.png` with `gtFine/{split}/{scene}/{number}_TrainIds.png`, of all scenes."""
    pictures_in, labels_in = folder_of(request.root, "rgb"), folder_of(request.root, "gtFine")

    def pairs_of(split: str, warnings: list[str]) -> Sequence[Pair]:
        pictures = files_below(folder_of(pictures_in, split), ".png")
        labels = files_below(folder_of(labels_in, split), "_TrainIds.png")
        return pair_up(pictures, labels, "*_TrainIds.png", request.skip_missing, warnings)

    return domain_of_splits(request, "CR", LABELS, pictures_in, "test", pairs_of)


PREPARER = Preparer("cloud_robotics", find, ("test_split",))
