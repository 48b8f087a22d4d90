"""Samples in arrays: from .npz, .npy and .pt files, or returned by a user's function."""

import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, closest, first_line, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.array_names import KEYS, array_names
from ianvs.exam.data.cells import CellError, classes_of, text_of
from ianvs.exam.data.listing import A_FUNCTION_READS, Listing, SourceError, column, numbered_names
from ianvs.exam.data.typed_labels import type_name

PACKED = (".npz", ".npy", ".pt", ".pth")

Layout = Literal["NHWC", "NCHW"]
"""(N, height, width, channels), as in ianvs, or (N, channels, height, width), as in PyTorch."""

_UNCLEAR = (
    "which does not tell where the channels are. Write `layout: NCHW` in the dataset if they come before height and "
    "width, as in PyTorch; `layout: NHWC` if they come last, or if these are no images."
)
_X = re.compile(r"(?<![a-zA-Z0-9])[xX](?![a-zA-Z0-9])")  # as in x_train, train-x, X


def read_arrays(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """Read x and y (optional: ids, domain, classes). A file for both parts has x_train, y_train, x_test, y_test.

    A .npy file has x; y is in the file beside it that `array_files` names. A .pt file may also have a pair (x, y).
    """
    read = _READERS[path.suffix.lower()][0]
    arrays, present = read(path, part)
    return held_listing(arrays, present, path, spec, part, "NCHW" if read is _torch else None)


def held_listing(
    arrays: Mapping[str, NDArray[Any]],
    present: Sequence[str],
    path: Path,
    spec: DatasetSpec,
    part: str,
    usual: Layout | None = None,
) -> Listing:
    """Return the samples of a file's arrays by name. present: names of all arrays. Raises SourceError."""
    names = array_names(present, part)
    if missing := [key for key in ("x", "y") if key not in names]:
        hint = closest(missing[0], present)
        wanted = f"Expected x and y, or x_{part} and y_{part}, or names as images and labels, each once."
        message = f"has no array {one_line(missing)}; it has: {one_line(present)}.{hint} {wanted} {A_FUNCTION_READS}"
        raise SourceError.single(message, Location(path), "missing-column")
    classes = tuple(map(str, arrays["classes"])) if "classes" in arrays else None
    held = {key: arrays[name] for key, name in names.items()}
    return arrays_listing(held, part, Location(path), names, classes, spec.layout, usual, type_name(spec))


def arrays_listing(
    arrays: Mapping[str, NDArray[Any]],
    part: str,
    place: Location,
    called: Mapping[str, str],
    classes: tuple[str, ...] | None,
    layout: Layout | None,
    usual: Layout | None,
    data_type: str | None = None,
) -> Listing:
    """Return the samples of the arrays by KEYS. called: their names at the source, `place`.

    x: (N, ...) numbers; uint8 are images, (N, height, width) becomes (N, height, width, 1); others become float32.
    In four axes, channels become the last. layout: the given layout; None: detected by the shape, else `usual`.
    y: (N,) integers or names; or masks, (N, height, width) integers 0 to 255 or (N, height, width, 3) colours.
    data_type: the data type of the labels; None: detected.
    """
    x, y = arrays["x"], arrays["y"]
    count = require_aligned(arrays, called, place)
    if data_type is None and y.ndim == 4:
        y = _mask_channels(y, called["y"], place)
    maps = y.ndim in (3, 4) and data_type is None
    laid_out = x.ndim == 4
    x = _features(x, called["x"], place)
    if laid_out:
        layout = layout or _layout_from_masks(x.shape, y.shape[1:3] if maps else y.shape[1:]) or usual
        if layout is None:
            raise SourceError.single(f"{called['x']} is {x.shape}, {_UNCLEAR}", place, "ambiguous-data")
    given = arrays["ids"].astype(str) if "ids" in arrays else None
    return Listing(
        form="arrays",
        x=np.moveaxis(x, 1, 3) if laid_out and layout == "NCHW" else x,
        label_form=data_type or ("maps" if maps else "class"),
        y=y if data_type else _masks_as_uint8(y, called["y"], place) if maps else class_tokens(y, called["y"], place),
        ids=numbered_names(part, count) if given is None else given,
        domains=column([text_of(name) for name in arrays["domain"]])
        if "domain" in arrays
        else np.full(count, "", object),
        sources=(place.file,),
        lines=np.full(count, place.line, dtype=np.int64),
        classes=classes,
        given=given,
        layout=str(layout) if laid_out else "",
    )


def require_aligned(arrays: Mapping[str, NDArray[Any]], called: Mapping[str, str], place: Location) -> int:
    """Return the number of samples. Raises SourceError if there is none, or lengths of arrays differ."""
    count = len(arrays["x"]) if arrays["x"].ndim else 0
    wrong = [called[key] for key in KEYS[1:] if key in arrays and arrays[key].shape[:1] != (count,)]
    if wrong or not count:
        message = f"{one_line(wrong or [called['x']])} should hold one entry for each of the {count} samples of"
        raise SourceError.single(f"{message} {called['x']}.", place, "mismatched-data")
    return count


def array_files(path: Path) -> dict[str, Path]:
    """Return the files that belong to `path` by column: beside a .npy file of x are those of y, ids and domain.

    Their names have "y" where that of x has "x" (x_train.npy, y_train.npy), else "_y" at the end.
    """
    if path.suffix.lower() != ".npy":
        return {"x": path}
    match = _X.search(path.stem)
    before, after = (path.stem[: match.start()], path.stem[match.end() :]) if match else (f"{path.stem}_", "")
    beside = {key: path.with_name(f"{before}{key}{after}{path.suffix}") for key in KEYS[1:]}
    return {"x": path} | {key: file for key, file in beside.items() if key == "y" or file.is_file()}


def plain_array(value: object) -> NDArray[Any]:
    """Convert an array, a torch tensor or a list to a numpy array."""
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        value = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return np.asarray(value)


def _npz(path: Path, part: str) -> tuple[dict[str, NDArray[Any]], Sequence[str]]:
    with _library_errors_as_source_errors(path), np.load(path, allow_pickle=False) as file:
        wanted = {"classes", *array_names(file, part).values()}
        return {name: file[name] for name in file if name in wanted}, list(file)


def _npy(path: Path, part: str) -> tuple[dict[str, NDArray[Any]], Sequence[str]]:
    files = array_files(path)
    if not files["y"].is_file():
        message = f"holds x alone; its labels are looked for in {files['y'].name} beside it, which is not there."
        raise SourceError.single(message, Location(path), "missing-file")
    arrays = {}
    for key, file in files.items():
        with _library_errors_as_source_errors(file):
            arrays[key] = np.load(file, mmap_mode="r", allow_pickle=False)
    return arrays, list(files)


def _torch(path: Path, part: str) -> tuple[dict[str, NDArray[Any]], Sequence[str]]:
    import torch

    with _library_errors_as_source_errors(path):
        held = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(held, tuple | list) and len(held) == 2:
        held = dict(zip(("x", "y"), held, strict=True))
    if not isinstance(held, dict):
        message = f"holds {type(held).__name__}; expected a dict with x and y, or a pair (x, y)."
        raise SourceError.single(message, Location(path), "invalid-array")
    return {str(name): plain_array(value) for name, value in held.items()}, [str(name) for name in held]


@contextmanager
def _library_errors_as_source_errors(path: Path) -> Iterator[None]:
    """Context manager: convert errors of libraries for broken files, or files without arrays, to SourceError."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, EOFError, pickle.UnpicklingError) as error:
        _, how, remedy = _READERS[path.suffix.lower()]
        raise SourceError.single(
            f"can't be read {how} ({first_line(error)}). {remedy}", Location(path), "unreadable-data"
        ) from None


_OF_TORCH = (_torch, "by torch.load with weights_only=True", "Save tensors alone: torch.save({'x': x, 'y': y}, path).")
_READERS = {  # by suffix: the library, the function that reads it, and the remedy if reading fails
    ".npz": (_npz, "as .npz without pickled objects", "Save plain arrays with numpy.savez."),
    ".npy": (_npy, "as .npy without pickled objects", "Save plain arrays with numpy.save."),
    ".pt": _OF_TORCH,
    ".pth": _OF_TORCH,
}


def _features(x: NDArray[Any], name: str, place: Location) -> NDArray[Any]:
    if x.dtype == np.uint8:
        return x[..., None] if x.ndim == 3 else x
    if x.dtype.kind not in "iufb":
        message = f"{name} holds {x.dtype}; expected numbers."
        raise SourceError.single(message, place, "invalid-array")
    return x.astype(np.float32, copy=False)


def _layout_from_masks(shape: tuple[int, ...], labelled: tuple[int, ...]) -> Layout | None:
    """Return the layout of (N, ., ., .) images, given the shape of their masks; None if it is ambiguous."""
    readings: dict[Layout, tuple[int, tuple[int, ...]]] = {
        "NHWC": (shape[3], shape[1:3]),
        "NCHW": (shape[1], shape[2:]),
    }
    for fits in (
        [layout for layout, (_, size) in readings.items() if size == labelled],
        [layout for layout, (channels, _) in readings.items() if channels in (1, 3, 4)],
        [layout for layout, (_, (height, width)) in readings.items() if height == width],
    ):
        if len(fits) == 1:
            return fits[0]
    return None


def _mask_channels(y: NDArray[Any], name: str, place: Location) -> NDArray[Any]:
    """Convert masks with channels to (N, height, width) for one channel, (N, height, width, 3) for colours."""
    if 1 in (y.shape[1], y.shape[3]):
        return y[:, 0] if y.shape[1] == 1 else y[..., 0]
    if y.shape[3] in (3, 4):
        return y[..., :3]
    message = (
        f"{name} is {y.dtype} {y.shape}; masks are class indices (N, height, width), or colours (N, height, width, 3) "
        "that `mask_values` in the dataset names. Of one channel for each class take the argmax."
    )
    raise SourceError.single(message, place, "invalid-array")


def _masks_as_uint8(y: NDArray[Any], name: str, place: Location) -> NDArray[np.uint8]:
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() > 255:
        message = f"masks in {name} must hold class indices from 0 to 255."
        raise SourceError.single(message, place, "invalid-array")
    return y.astype(np.uint8, copy=False)


def class_tokens(y: NDArray[Any], name: str, place: Location) -> NDArray[Any]:
    """Return (N,) classes from (N,) or (N, 1) class indices or names. Raises SourceError for anything else."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    broken = y[(y % 1 != 0) & ~np.isnan(y)] if y.dtype.kind == "f" and y.ndim == 1 else y[:0]
    if y.ndim != 1 or y.dtype.kind not in "iufUSbO" or len(broken):
        type_name = "regression" if y.ndim < 2 else "multilabel` or `data_type: regression"
        note = f" with fractions, such as {broken[0]:g}" if len(broken) else ""
        message = (
            f"{name} is {y.dtype} {y.shape}{note}; expected one whole number or name for each sample. Several labels "
            f"each, or numbers to be estimated, are read where the dataset says so: `data_type: {type_name}`."
        )
        raise SourceError.single(message, place, "invalid-array")
    try:
        found_classes = classes_of(y)
    except CellError as error:
        message = f"label {error.row} of {name} {error.message}. Give each sample one label."
        raise SourceError.single(message, place, "invalid-array") from None
    empty = np.flatnonzero(found_classes == "")
    if len(empty):
        message = (
            f"label {empty[0]} of {name} is empty ({len(empty)} of {len(y)} are). Fill it, or leave the sample out."
        )
        raise SourceError.single(message, place, "invalid-array")
    return found_classes
