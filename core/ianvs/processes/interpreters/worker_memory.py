"""Counts samples and bytes of a plugin's `memory`. It needs nothing of ianvs: workers load it by its path."""

from __future__ import annotations

import collections
import numbers

_MOST = 5_000_000  # maximum number of examined items
_FIELDS = {"x", "y", "inputs", "labels", "targets", "images", "features", "logits"}  # of samples, as keys of a mapping


def memory_size(memory: object) -> tuple[int | None, int | None, str]:
    """Measure a plugin's store of old samples.

    Args:
        memory: Anything with a length. Objects with `nbytes`, such as arrays and tensors, count with these, once each;
            lists, tuples, sets, deques and mappings with their content, strings in UTF-8, any other number with 8.

    Returns:
        (samples, bytes, unknown): its length, or the number of samples in a mapping (see `_samples`); its size, None if
            unknown; the types without a known size, or "". Nothing is known of objects without a length, and a range
            only gives a number of samples.
    """
    if not hasattr(type(memory), "__len__"):
        return None, None, ""
    samples = _samples(memory)
    if isinstance(memory, range):  # a number of samples that are stored elsewhere
        return samples, None, ""
    size, waiting, seen, count = 0, [memory], set(), 0
    while waiting:
        item = waiting.pop()
        count += 1
        if count > _MOST:
            return samples, None, f"more than {_MOST:,} items"
        if isinstance(item, (int, float, complex)):
            size += 8
        elif isinstance(item, str):
            size += len(item.encode("utf-8", "surrogatepass"))
        elif isinstance(item, (bytes, bytearray)):
            size += len(item)
        elif item is not None and id(item) not in seen:
            seen.add(id(item))
            nbytes = getattr(item, "nbytes", None)
            if isinstance(nbytes, numbers.Integral):
                size += int(nbytes)
            elif isinstance(item, dict):
                waiting.extend(item.values())
            elif isinstance(item, (list, tuple, set, frozenset, collections.deque)):
                waiting.extend(item)
            else:
                return samples, None, f"objects of type {type(item).__name__}"
    return samples, size, ""


def _samples(memory: object) -> int:
    """Return the number of samples: the length, but of exemplars by class, {class: array or list}, those of each class.

    An array with several axes has a sample in each row; one with a single axis is a sample. In a mapping of fields that
    belong together, as {"x": (N, ...), "y": (N,)}, each sample has a row in every one of them.
    """
    if not isinstance(memory, dict) or type(memory).__len__ is not dict.__len__ or not memory:
        return len(memory)  # type: ignore[arg-type]
    counts = [_rows(value) for value in memory.values()]
    names = {str(key).lower() for key in memory}
    if names & _FIELDS and len({len(value) for value in memory.values() if hasattr(value, "__len__")}) == 1:
        return max(len(value) for value in memory.values() if hasattr(value, "__len__"))
    return sum(counts)


def _rows(value: object) -> int:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if len(shape) > 1 else 1
    return len(value) if isinstance(value, (list, collections.deque)) else 1
