"""India Driving Dataset, part 1 (Varma et al. 2019): 6993 training and 981 validation images, 26 level-3 classes."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ianvs.exam.data.labels import IGNORED
from ianvs.testenv.datasets.downloads import cityscapes
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, Preparer, PrepareRequest, RawDomain, domain_of_splits

_CS = cityscapes.LABELS.palette

LABELS = LabelSet(
    palette=MappingProxyType(
        {
            "road": _CS["road"],
            "drivable fallback": (81, 0, 81),
            "sidewalk": _CS["sidewalk"],
            "non-drivable fallback": (152, 251, 152),
            "person": _CS["person"],
            "rider": _CS["rider"],
            "motorcycle": _CS["motorcycle"],
            "bicycle": _CS["bicycle"],
            "autorickshaw": (255, 204, 54),
            "car": _CS["car"],
            "truck": _CS["truck"],
            "bus": _CS["bus"],
            "vehicle fallback": (136, 143, 153),
            "curb": (220, 190, 40),
            "wall": _CS["wall"],
            "fence": _CS["fence"],
            "guard rail": (180, 165, 180),
            "billboard": (174, 64, 67),
            "traffic sign": _CS["traffic sign"],
            "traffic light": _CS["traffic light"],
            "pole": _CS["pole"],
            "obs-str-bar fallback": (169, 187, 214),
            "building": _CS["building"],
            "bridge": (150, 100, 100),
            "vegetation": _CS["vegetation"],
            "sky": _CS["sky"],
        }
    ),
    groups=MappingProxyType(
        {
            "drivable": ("road", "drivable fallback"),
            "non-drivable": ("sidewalk", "non-drivable fallback"),
            "living things": ("person", "rider"),
            "vehicles": ("motorcycle", "bicycle", "autorickshaw", "car", "truck", "bus", "vehicle fallback"),
            "roadside objects": (
                "curb",
                "wall",
                "fence",
                "guard rail",
                "billboard",
                "traffic sign",
                "traffic light",
                "pole",
                "obs-str-bar fallback",
            ),
            "far objects": ("building", "bridge", "vegetation"),
            "sky": ("sky",),
        }
    ),
)
"""By level-3 id. The 17 classes that Cityscapes has too bear its names, so that a union of domains joins them."""

TO_CITYSCAPES: Mapping[int, int] = MappingProxyType(
    {
        level3: cityscapes.LABELS.classes.index(name) if name in _CS else IGNORED
        for level3, name in enumerate(LABELS.classes)
    }
    | {IGNORED: IGNORED}
)
"""From level-3 ids to the trainIds of Cityscapes; what Cityscapes has not is ignored."""

_SUFFIX = "_gtFine_labellevel3Ids.png"


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`leftImg8bit/{split}/{drive}/*` with the `labellevel3Ids` images that AutoNUE's tool makes of the polygons."""
    pictures_in, labels_in = folder_of(request.root, "leftImg8bit"), folder_of(request.root, "gtFine")
    mapping = TO_CITYSCAPES if request.classes == "cityscapes" else None

    def pairs_of(split: str, warnings: list[str]) -> list[Pair]:
        folder = folder_of(pictures_in, split)
        pictures = files_below(folder, "_leftImg8bit.jpg") | files_below(folder, "_leftImg8bit.png")
        wanted = f"*{_SUFFIX} (made of the polygons by AutoNUE's createLabels.py with --id-type level3Id)"
        labels = files_below(folder_of(labels_in, split), _SUFFIX)
        pairs = pair_up(pictures, labels, wanted, request.skip_missing, warnings)
        return [replace(pair, mapped=mapping is not None) for pair in pairs]

    label_set = cityscapes.LABELS if mapping else LABELS
    return domain_of_splits(request, "IDD", label_set, pictures_in, "val", pairs_of, mapping)


PREPARER = Preparer("idd", find, ("test_split", "classes"))
