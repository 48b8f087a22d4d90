"""In what two cases of the same algorithm differ, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

_FEW = 3  # files that are named one by one


def identity_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Between two identities, as PlannedAlgorithm.identity_of tells them; seeds do not count."""
    differences = []
    old, new = before["algorithm"], now["algorithm"]
    sources = old.get("source", {}), new.get("source", {})
    files = sorted(_changed(*sources, ()))
    recounted = [name for name in files if [_by_tree(source.get(name)) for source in sources] == [False, True]]
    edited = [name for name in files if name not in recounted]
    ours = [name for name in edited if "/ianvs/" in f"/{name}"]
    if theirs := [name for name in edited if name not in ours]:
        differences.append(f"source {', '.join(theirs)}")
    if ours:
        differences.append(f"ianvs itself ({len(ours)} file{'s' * (len(ours) > 1)})")
    if recounted:
        counted = ", ".join(recounted) if len(recounted) <= _FEW else f"{len(recounted)} source files"
        differences.append(f"the way that ianvs counts {counted}")
    if files := sorted(_changed(old.get("weights", {}), new.get("weights", {}), ())):
        differences.append(f"the content of {', '.join(files)}")
    differences += _changed(old, new, ("source", "version", "weights"))
    differences += [
        "data" if name == "dataset" else name for name in _changed(before["exam"], now["exam"], ("version",))
    ]
    return differences or ["version of ianvs's recipe"]


def _by_tree(digest: str | None) -> bool | None:
    """Up to ianvs 0.2 all files counted by their bytes: those digests tell of no edit. None: there is no such file."""
    return None if digest is None else digest.startswith("tree:")


def _changed(old: Mapping[str, object], new: Mapping[str, object], without: Sequence[str]) -> list[str]:
    """Names of what is other in one than in the other, or only in one of them."""
    return [name for name in {**new, **old} if name not in without and old.get(name) != new.get(name)]
