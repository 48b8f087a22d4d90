"""The samples of a CLEAR release: images cut to squares, or the released features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, Location, ValidationError, first_line, shown_path
from ianvs.exam.data.cache import Progress, decoded_once
from ianvs.exam.data.decode import decode_picture
from ianvs.exam.data.listing import SourceError, summary
from ianvs.testenv.datasets.clear.clear_tree import METADATA, Labelled, Tree, read_lists, read_mapping


def square(path: str, size: int) -> NDArray[np.uint8]:
    """Return (size, size, 3) RGB: the shorter side is resized to `size`, bilinear with antialiasing, then the centre is
    cut.

    Equals torchvision's Resize(size) and CenterCrop(size). Raises SourceError if the file is not an image.
    """
    from PIL import Image

    rgb = Image.fromarray(decode_picture(path, None))
    width, height = rgb.size
    if width <= height:
        width, height = size, size * height // width
    else:
        width, height = size * width // height, size
    rgb = rgb.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return np.asarray(rgb.crop((left, top, left + size, top + size)), dtype=np.uint8)


def cached_squares(
    paths: Sequence[str], digests: Sequence[str], size: int, cache_dir: Path, progress: Progress | None = None
) -> NDArray[np.uint8]:
    """Return the images as one read-only memory map (N, size, size, 3), decoded only at the first call.

    Raises SourceError that names the broken ones.
    """
    shape = (size, size, 3)
    return decoded_once(
        "square", [size, [*digests]], paths, lambda index: square(paths[index], size), cache_dir, progress, shape
    )


def feature_files(tree: Tree, folder: Path, features: str, labelled: Labelled) -> dict[str, Path]:
    """Return the files with the features of `labelled`: by "bucket/class" in the layout METADATA, by bucket in LISTS.

    folder: the part's folder. Raises SourceError if there are none.
    """
    home = folder / "features" / features
    if not home.is_dir():
        available = sorted(path.name for path in (folder / "features").glob("*") if path.is_dir())
        has = (
            f"It has: {', '.join(available)}."
            if available
            else "The archives without `image-only` in their name have some."
        )
        raise SourceError.single(
            f"{shown_path(folder)} has no features '{features}'. {has}", Location(home), "invalid-choice"
        )
    if tree.layout != METADATA:
        files = {bucket: home / bucket / "all.pth" for bucket in dict.fromkeys(labelled.buckets.tolist())}
    else:
        named = read_mapping(home / "features.json") if (home / "features.json").is_file() else {}
        files = {}
        for key in dict.fromkeys(name.rpartition("/")[0] for name in labelled.ids.tolist()):
            bucket, name = key.split("/")
            files[key] = folder / named.get(bucket, {}).get(name, home / bucket / f"{name}.pth")
    problems = [
        ValidationError("is not there. Unpack the archive again.", Location(file), code="damaged-dataset")
        for file in files.values()
        if not file.is_file()
    ]
    if problems:
        raise SourceError(summary(problems))
    return files


def read_features(tree: Tree, folder: Path, labelled: Labelled, features: str) -> NDArray[np.float32]:
    """Return (N, D) float32, one row for each image of `labelled`. Raises SourceError."""
    files = feature_files(tree, folder, features, labelled)
    by_name: dict[str, Any] = {}
    everything = read_lists(tree, "all") if tree.layout != METADATA else None
    for key, file in files.items():
        loaded = _loaded(file)
        if not (isinstance(loaded, dict) if everything is None else isinstance(loaded, tuple | list)):
            form = "a mapping of Flickr ids to vectors" if everything is None else "vectors and labels"
            raise SourceError.single(
                f"should hold {form}. Unpack the archive again.", Location(file), "damaged-dataset"
            )
        if everything is None:
            by_name |= {f"{key}/{flickr}": vector for flickr, vector in loaded.items()}
        else:  # in the order of all.txt
            listed = everything.take(everything.buckets == key)
            vectors, labels = loaded
            if [int(label) for label in labels] != listed.y.tolist():
                message = f"its labels are not those of {shown_path(tree.train / 'filelists' / key / 'all.txt')}."
                raise SourceError.single(message, Location(file), "damaged-dataset")
            by_name |= dict(zip(listed.ids.tolist(), vectors, strict=True))
    missing = [name for name in labelled.ids.tolist() if name not in by_name]
    if missing:
        message = f"there are no features of {missing[0]} and {len(missing) - 1} others. Unpack the archive again."
        raise SourceError.single(message, Location(folder / "features" / features), "damaged-dataset")
    rows = [np.asarray(by_name[name], dtype=np.float32).reshape(-1) for name in labelled.ids.tolist()]
    if len({len(row) for row in rows}) > 1:
        raise SourceError.single(
            "its vectors differ in length.", Location(folder / "features" / features), "damaged-dataset"
        )
    return np.stack(rows)


def _loaded(file: Path) -> Any:
    import pickle

    import torch

    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise DataError(
            f"{shown_path(file)} can't be read as features: {first_line(error)}", code="unreadable-data"
        ) from None
