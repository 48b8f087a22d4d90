"""Whether an examination changes a learner: what of its state can be seen, before and after."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Digest = Mapping[str, int]
"""{place: checksum of a tensor or an array, or the length of a container}"""

_PER_SECOND = 1e9  # bytes, of a checksum
_MOST = 100_000  # places that are looked at
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


def bytes_within(seconds: float) -> int:
    """How many bytes of a state can be looked at, twice, in a hundredth of a round that took so many seconds."""
    return int(min(1 << 30, max(1 << 22, 0.005 * seconds * _PER_SECOND)))


def state_digest(plugins: Iterable[object], most: int = 1 << 30) -> Digest:
    """Walk over the attributes of the author's objects: tensors, buffers, arrays, and how long containers are.

    Args:
        plugins: The objects. What another interpreter holds can't be seen.
        most: Bytes of tensors and arrays that are looked at; of more those at even distances.
    """
    arrays: dict[str, Any] = {}
    found: dict[str, int] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(type(plugin).__name__, plugin) for plugin in plugins]
    while waiting and len(seen) < _MOST:
        place, one = waiting.pop()
        if isinstance(one, _PLAIN) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray) or _is_tensor(one):
            arrays[place] = one
        elif isinstance(one, Mapping):
            found[place] = len(one)
            waiting += [(f"{place}[{key!r}]", value) for key, value in list(one.items())]
        elif isinstance(one, list | tuple | set | frozenset):
            found[place] = len(one)
            if not isinstance(one, set | frozenset) and len(one) <= _MOST and not _all_plain(one):
                waiting += [(f"{place}[{number}]", value) for number, value in enumerate(one)]
        elif not callable(one) or hasattr(one, "state_dict"):
            waiting += [(f"{place}.{name}", value) for name, value in list(getattr(one, "__dict__", {}).items())]
    every = -(-sum(int(one.nbytes) for one in arrays.values()) // most)
    return found | {place: _checksum(one, max(1, every)) for place, one in arrays.items()}


def changed_between(before: Digest, after: Digest) -> str:
    """The first place that is not what it was, in words; "" for none.

    What was not there before is none: a method may keep what it computes when it is first asked.
    """
    for place, was in before.items():
        if place in after and after[place] != was:
            return place
    return ""


def _is_tensor(one: object) -> bool:
    return hasattr(one, "untyped_storage") and hasattr(one, "detach")


def _all_plain(values: Any) -> bool:
    return all(isinstance(value, _PLAIN) for value in values)


def _checksum(one: Any, every: int) -> int:
    """Of each `every`-th number."""
    if _is_tensor(one):
        one = one.detach()
        if one.is_sparse or one.is_quantized or one.device.type == "meta":
            return int(one.numel())
        import torch

        flat = one.reshape(-1)
        if every > 1:
            flat = flat[torch.arange(0, len(flat), every, device=flat.device)]
        one = flat.contiguous().view(torch.uint8).cpu().numpy()
    elif one.dtype == object:
        return int(one.size)
    elif every > 1:
        one = one.reshape(-1)[::every]
    return zlib.crc32(np.ascontiguousarray(one).reshape(-1).view(np.uint8).data)
