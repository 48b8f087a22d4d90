"""predictions.npz: the predictions in and after one round.

A round may evaluate a thousand test sets of a few samples, so arrays of one kind, such as the labels of all test sets,
are stored as one array. `asked` lists which test set was predicted when. "0" holds the first kind, "0 of" the test set
and end of each part; both lists as differences, which compress well. `extras` names the kinds, "" for labels.

Predictions of a prequential stream are beside it, under names with the prefix "stream ".

Up to ianvs 0.2 every array was separate: "3" the labels of test set 3 after the round, "3@120" after 120 samples, "3
probe" an extra.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import PredictionKey, Predictions

Entries = list[tuple[PredictionKey, str, NDArray[Any]]]  # (key, name or "" for labels, values) of an array


_STREAM = "stream "


def write_predictions(
    path: Path | IO[bytes],
    predictions: Mapping[PredictionKey, Predictions],
    stream: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write predictions. stream: (n,) arrays by name, of the chunks of a prequential round."""
    kinds: dict[tuple[str, np.dtype[Any], tuple[int, ...]], list[tuple[int, NDArray[Any]]]] = {}
    for number, answers in enumerate(predictions.values()):
        for extra, values in {"": answers.labels, **answers.extras}.items():
            array = np.asarray(values)
            kinds.setdefault((extra, array.dtype, array.shape[1:]), []).append((number, array))
    keys = [(key.test, -1 if key.samples is None else key.samples) for key in predictions]
    names = np.array([extra for extra, _, _ in kinds], dtype=str)
    arrays: dict[str, Any] = {"asked": keys, "extras": names}
    for name, parts in enumerate(kinds.values()):
        ends = np.cumsum([len(values) for _, values in parts])
        arrays[f"{name} of"] = [(number, end) for (number, _), end in zip(parts, ends, strict=True)]
        arrays[f"{name}"] = np.concatenate([values for _, values in parts])
    for array_name, pairs in arrays.items():
        if isinstance(pairs, list):  # stored as (n, 2) differences of consecutive pairs
            arrays[array_name] = np.diff(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=0, prepend=0)
    arrays |= {f"{_STREAM}{name}": values for name, values in (stream or {}).items()}
    np.savez_compressed(path, **arrays)


def read_predictions(path: Path | IO[bytes]) -> dict[PredictionKey, Predictions]:
    with np.load(path, allow_pickle=False) as stored:
        alone = ((*_asked_of(name), values) for name, values in stored.items())
        entries = _unpacked(stored) if "asked" in stored.files else list(alone)
    labels = {key: values for key, extra, values in entries if not extra}
    extras: dict[PredictionKey, dict[str, NDArray[Any]]] = {key: {} for key in labels}
    for key, extra, values in entries:
        if extra:
            extras[key][extra] = values
    return {key: Predictions(values, extras[key]) for key, values in labels.items()}


def read_stream(path: Path | IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return the `stream` argument of `write_predictions`; {} if there was none."""
    with np.load(path, allow_pickle=False) as stored:
        return {name.removeprefix(_STREAM): stored[name] for name in stored.files if name.startswith(_STREAM)}


def read_extras(path: Path | IO[bytes]) -> set[str]:
    """Return names of stored extras besides labels."""
    with np.load(path, allow_pickle=False) as stored:
        names = stored["extras"].tolist() if "asked" in stored.files else (_asked_of(name)[1] for name in stored.files)
        return {name for name in names if name}


def _unpacked(stored: Mapping[str, NDArray[Any]]) -> Entries:
    keys = [PredictionKey(test, None if samples < 0 else samples) for test, samples in _sums(stored["asked"])]
    parts: list[tuple[int, str, NDArray[Any]]] = []
    for name, extra in enumerate(stored["extras"].tolist()):
        values, start = stored[f"{name}"], 0
        for number, end in _sums(stored[f"{name} of"]):
            parts.append((number, extra, values[start:end]))
            start = end
    return [(keys[number], extra, values) for number, extra, values in sorted(parts, key=lambda part: part[0])]


def _asked_of(name: str) -> tuple[PredictionKey, str]:
    key, _, extra = name.partition(" ")
    test, _, samples = key.partition("@")
    return PredictionKey(int(test), int(samples) if samples else None), extra


def _sums(steps: NDArray[np.int64]) -> list[list[int]]:
    sums: list[list[int]] = steps.cumsum(axis=0).tolist()
    return sums
