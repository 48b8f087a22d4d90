"""Names of arrays in .npz, .pt and HDF5 files: those of ianvs, and what other tools call them."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

KEYS = ("x", "y", "ids", "domain")
"""What a file may hold of its samples; the last two are optional."""

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "x": ("images", "image", "imgs", "data", "features", "inputs", "input", "samples"),
        "y": ("labels", "label", "targets", "target"),
    }
)


def array_names(names: Iterable[str], part: str) -> dict[str, str]:
    """Find the arrays of a part by their names.

    `x`, or `x_train` for one of the parts, is looked for first; then the names of other tools, such as `images`,
    `train_images` or `X_train`. Upper and lower case, hyphens and underscores make no difference in these.

    Args:
        names: The names of all arrays of a file, or of the part's group.
        part: "train" or "test".

    Returns:
        By key of KEYS the name of its array. A key is left out if no array, or more than one, can be meant.
    """
    names = list(names)
    suffix = f"_{part}" if f"x_{part}" in names else ""
    matches = {key: f"{key}{suffix}" for key in KEYS if f"{key}{suffix}" in names}
    for wanted in (part,) if suffix else (part, ""):
        for key in ("x", "y"):
            candidates = [name for name in names if _folded(name) in _spellings(key, wanted)]
            if key not in matches and len(candidates) == 1:
                matches[key] = candidates[0]
    of_part = {key: f"{key}_{part}" for key in ("ids", "domain") if f"{key}_{part}" in names}
    return {**of_part, **matches}


def _spellings(key: str, part: str) -> set[str]:
    return {
        spelling for name in (key, *_OTHER_NAMES[key]) for spelling in ((part + name, name + part) if part else (name,))
    }


def _folded(name: str) -> str:
    return re.sub(r"[-_ .]", "", name.casefold())
