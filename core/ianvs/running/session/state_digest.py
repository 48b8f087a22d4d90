"""Detects whether an evaluation changes a learner, by digests of its attributes before and after."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Digest = Mapping[str, int]
"""{place: checksum of a tensor or an array, or the length of a container}"""

_PER_SECOND = 1e9  # bytes per second of a checksum
_MAX_ENTRIES = 100_000  # limit of attributes and items
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


def digest_budget(round_seconds: float) -> int:
    """Return how many bytes to digest, so that two digests take 1 % of a round."""
    return int(min(1 << 30, max(1 << 22, 0.005 * round_seconds * _PER_SECOND)))


def state_digest(plugins: Iterable[object], most: int = 1 << 30) -> Digest:
    """Digest the attributes of the plugin's objects: tensors, buffers, arrays, and the lengths of containers.

    Args:
        plugins: The objects. Objects in another interpreter are not visible.
        most: Limit of bytes of tensors and arrays that are read; larger ones are sampled evenly.
    """
    arrays: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(type(plugin).__name__, plugin) for plugin in plugins]
    while waiting and len(seen) < _MAX_ENTRIES:
        place, item = waiting.pop()
        if isinstance(item, _PLAIN) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray) or _is_tensor(item):
            arrays[place] = item
        elif isinstance(item, Mapping):
            sizes[place] = len(item)
            waiting += [(f"{place}[{key!r}]", value) for key, value in list(item.items())]
        elif isinstance(item, list | tuple | set | frozenset):
            sizes[place] = len(item)
            if not isinstance(item, set | frozenset) and len(item) <= _MAX_ENTRIES and not _all_plain(item):
                waiting += [(f"{place}[{number}]", value) for number, value in enumerate(item)]
        elif not callable(item) or hasattr(item, "state_dict"):
            waiting += [(f"{place}.{name}", value) for name, value in list(getattr(item, "__dict__", {}).items())]
    every = -(-sum(int(item.nbytes) for item in arrays.values()) // most)
    return sizes | {place: _checksum(item, max(1, every)) for place, item in arrays.items()}


def changed_between(before: Digest, after: Digest) -> str:
    """Describe the first difference, "" for none.

    New entries are ignored, because a method may cache values in its first prediction.
    """
    for place, was in before.items():
        if place in after and after[place] != was:
            return place
    return ""


def _is_tensor(value: object) -> bool:
    return hasattr(value, "untyped_storage") and hasattr(value, "detach")


def _all_plain(values: Any) -> bool:
    return all(isinstance(value, _PLAIN) for value in values)


def _checksum(value: Any, every: int) -> int:
    """Return a checksum of every `every`-th number."""
    if _is_tensor(value):
        value = value.detach()
        if value.is_sparse or value.is_quantized or value.device.type == "meta":
            return int(value.numel())
        import torch

        flat = value.reshape(-1)
        if every > 1:
            flat = flat[torch.arange(0, len(flat), every, device=flat.device)]
        value = flat.contiguous().view(torch.uint8).cpu().numpy()
    elif value.dtype == object:
        return int(value.size)
    elif every > 1:
        value = value.reshape(-1)[::every]
    return zlib.crc32(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
