"""In what two cases differ: what determined their results, and with what software and machine they were computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ianvs.results.comparing.sides import CaseFacts
from ianvs.store.identity_differences import identity_differences

__all__ = ["case_differences", "changes"]

_RECIPE = "version of ianvs's recipe"


def case_differences(before: CaseFacts, after: CaseFacts) -> list[str]:
    """In words, each once. Two cases of one id may have been computed by other software, or on another machine."""
    found = [] if before.id == after.id else _determining(before.identity, after.identity)
    if before.provenance and after.provenance:  # else nothing is known of one of them
        found += changes(_flat(before.provenance), _flat(after.provenance))
    return found


def _determining(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    found = identity_differences(before, after)
    versions = [identity["algorithm"].get("version") for identity in (before, after)]
    if found == [_RECIPE] and versions[0] == versions[1]:
        found = []
    found += changes(before["hyperparameters"], after["hyperparameters"])
    return found or ["something that is not written down, such as a secret"]


def _flat(provenance: Mapping[str, Any]) -> dict[str, object]:
    """What of a provenance may change a result."""
    git = provenance.get("git") or {}
    commit = str(git.get("commit", ""))[:12]
    packages = {name: version for name, version in (provenance.get("packages") or {}).items() if version}
    return {
        **packages,
        "Python": provenance.get("python"),
        "platform": provenance.get("platform"),
        "CPU": (provenance.get("cpu") or {}).get("model"),
        "GPU": ", ".join(provenance.get("gpus") or ()) or None,
        "device": provenance.get("device"),
        "commit": f"{commit} with local changes" if commit and git.get("dirty") else commit or None,
    }


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """ "name old -> new" of each value that is another one, or is only in one of the two."""
    pairs = ((name, before.get(name), after.get(name)) for name in {**before, **after})
    return [
        f"{name} {'none' if old is None else old} -> {'none' if new is None else new}"
        for name, old, new in pairs
        if old != new
    ]
