"""Arrays in a .npz file."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.config.spec import SourceSpec
from ianvs.data.listing import Listing, SourceError, column
from ianvs.errors import Place, Problem, closest, one_line

__all__ = ["read_arrays"]


def read_arrays(source: SourceSpec, part: str) -> Listing:
    """x and y (optional: ids, domain, classes). A file for both parts has x_train, y_train, x_test, y_test.

    x: (N, ...) numbers; uint8 are pictures, (N, height, width) becomes (N, height, width, 1); others become float32.
    y: (N,) integers or names, or (N, height, width) integers 0 to 255 for label pictures.
    """
    try:
        with np.load(source.path, allow_pickle=False) as file:
            both = f"x_{part}" in file
            names = {key: f"{key}_{part}" if both else key for key in ("x", "y", "ids", "domain")} | {
                "classes": "classes"
            }
            arrays = {key: file[name] for key, name in names.items() if name in file}
            present = list(file)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        message = f"can't be read as .npz without pickled objects ({error}). Save plain arrays with numpy.savez."
        raise SourceError([Problem(message, Place(source.path))]) from None
    missing = [names[key] for key in ("x", "y") if key not in arrays]
    if missing:
        hint = closest(missing[0], present)
        wanted = f"Expected x and y, or x_{part} and y_{part}."
        message = f"has no array {one_line(missing)}; it has: {one_line(present)}.{hint} {wanted}"
        raise SourceError([Problem(message, Place(source.path))])
    x, y = arrays["x"], arrays["y"]
    count = len(x) if x.ndim else 0
    wrong = [names[key] for key in ("y", "ids", "domain") if key in arrays and arrays[key].shape[:1] != (count,)]
    if wrong or not count:
        message = f"{one_line(wrong or ['x'])} should hold one entry for each of the {count} samples of {names['x']}."
        raise SourceError([Problem(message, Place(source.path))])
    maps = y.ndim == 3
    return Listing(
        form="arrays",
        x=_features(x, source),
        label_form="maps" if maps else "class",
        labels=_maps(y, source) if maps else _tokens(y, source),
        ids=arrays["ids"].astype(str) if "ids" in arrays else np.array([f"{part}/{i:06d}" for i in range(count)]),
        domains=column([str(name) for name in arrays["domain"]] if "domain" in arrays else [""] * count),
        sources=(source.path,),
        origins=np.zeros(count, dtype=np.int64),
        lines=np.zeros(count, dtype=np.int64),
        classes=tuple(map(str, arrays["classes"])) if "classes" in arrays else None,
    )


def _features(x: NDArray[Any], source: SourceSpec) -> NDArray[Any]:
    if x.dtype == np.uint8:
        return x[..., None] if x.ndim == 3 else x
    if x.dtype.kind not in "iufb":
        message = f"x holds {x.dtype}; expected numbers."
        raise SourceError([Problem(message, Place(source.path))])
    return x.astype(np.float32)


def _maps(y: NDArray[Any], source: SourceSpec) -> NDArray[np.uint8]:
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() > 255:
        message = "label pictures in y hold class indices from 0 to 255; these don't."
        raise SourceError([Problem(message, Place(source.path))])
    return y.astype(np.uint8)


def _tokens(y: NDArray[Any], source: SourceSpec) -> NDArray[Any]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "iuUb":
        message = f"y is {y.dtype} {y.shape}; expected one integer or name for each sample."
        raise SourceError([Problem(message, Place(source.path))])
    return column([str(label) for label in y.tolist()])
