"""Counts samples and bytes of a plugin's `memory`. It needs nothing of ianvs: workers load it by its path."""

from __future__ import annotations

import collections
import numbers

_MOST = 5_000_000  # maximum number of examined items


def memory_size(memory: object) -> tuple[int | None, int | None, str]:
    """Measure a plugin's store of old samples.

    Args:
        memory: Anything with a length. Objects with `nbytes`, such as arrays and tensors, count with these, once each;
            lists, tuples, sets, deques and mappings with their content, strings in UTF-8, any other number with 8.

    Returns:
        (samples, bytes, unknown): its length; its size, None if unknown; the types without a known size, or "". Nothing
            is known
        of objects without a length, and a range only gives a number of samples.
    """
    if not hasattr(type(memory), "__len__"):
        return None, None, ""
    samples = len(memory)  # type: ignore[arg-type]
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
