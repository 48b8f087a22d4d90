"""In what two cases of the same algorithm differ, in words."""

from collections.abc import Mapping, Sequence
from typing import Any


def identity_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Between two identities, as PlannedAlgorithm.identity_of tells them; seeds do not count."""
    found = []
    old, new = before["algorithm"], now["algorithm"]
    if files := sorted(_changed(old.get("source", {}), new.get("source", {}), ())):
        found.append(f"source {', '.join(files)}")
    if files := sorted(_changed(old.get("weights", {}), new.get("weights", {}), ())):
        found.append(f"the content of {', '.join(files)}")
    found += _changed(old, new, ("source", "version", "weights"))
    found += ["data" if name == "dataset" else name for name in _changed(before["exam"], now["exam"], ("version",))]
    return found or ["version of ianvs's recipe"]


def _changed(old: Mapping[str, object], new: Mapping[str, object], without: Sequence[str]) -> list[str]:
    """Names of what is other in one than in the other, or only in one of them."""
    return [name for name in {**new, **old} if name not in without and old.get(name) != new.get(name)]
