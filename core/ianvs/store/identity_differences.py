"""Human-readable differences between the identities of two cases of an algorithm."""

from collections.abc import Mapping, Sequence
from typing import Any

OTHER_VERSION = "version of ianvs's results"
_MAX_NAMED_FILES = 3  # facts whose files are listed separately


def identity_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two identities of PlannedAlgorithm.identity_of; seeds are ignored."""
    differences = []
    old, new = before["algorithm"], now["algorithm"]
    sources = old.get("source", {}), new.get("source", {})
    files = sorted(_changed(*sources, ()))
    redigested = [
        name for name in files if [_is_syntax_tree_digest(source.get(name)) for source in sources] == [False, True]
    ]
    edited = [name for name in files if name not in redigested]
    ours = [name for name in edited if "/ianvs/" in f"/{name}"]
    if theirs := [name for name in edited if name not in ours]:
        differences.append(f"source {', '.join(theirs)}")
    if ours:
        differences.append(f"ianvs itself ({len(ours)} file{'s' * (len(ours) > 1)})")
    if redigested:
        file_names = ", ".join(redigested) if len(redigested) <= _MAX_NAMED_FILES else f"{len(redigested)} source files"
        differences.append(f"how ianvs digests {file_names}")
    if files := sorted(_changed(old.get("weights", {}), new.get("weights", {}), ())):
        differences.append(f"the content of {', '.join(files)}")
    differences += _changed(old, new, ("source", "version", "weights"))
    differences += [
        "data" if name == "dataset" else name for name in _changed(before["exam"], now["exam"], ("version",))
    ]
    return differences or [OTHER_VERSION]


def _is_syntax_tree_digest(digest: str | None) -> bool | None:
    """Return whether a digest is of a syntax tree; those of ianvs 0.2 are of bytes, and are not compared with it."""
    return None if digest is None else digest.startswith("tree:")


def _changed(old: Mapping[str, object], new: Mapping[str, object], without: Sequence[str]) -> list[str]:
    """Return the names of entries that differ or are only in one of the two."""
    return [name for name in {**new, **old} if name not in without and old.get(name) != new.get(name)]
