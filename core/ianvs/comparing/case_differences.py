"""In what two cases differ: what determined their results, and with what software and machine they were computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ianvs.comparing.sides import CaseFacts
from ianvs.planning.identity_differences import identity_differences

__all__ = ["case_differences"]

_RECIPE = "version of ianvs's recipe"


def case_differences(before: CaseFacts, after: CaseFacts) -> list[str]:
    """In words, each once. Two cases of one id may have been computed by other software, or on another machine."""
    found = [] if before.id == after.id else _determining(before.identity, after.identity)
    return [*found, *_circumstances(before.provenance, after.provenance)]


def _determining(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    found = identity_differences(before, after)
    versions = [identity["algorithm"].get("version") for identity in (before, after)]
    if found == [_RECIPE] and versions[0] == versions[1]:
        found = []
    old, new = before["hyperparameters"], after["hyperparameters"]
    found += [_change(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)]
    return found or ["something that is not written down, such as a secret"]


def _circumstances(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = _flat(before), _flat(after)
    if old and new:  # else nothing is known of one of them
        yield from (
            _change(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)
        )


def _flat(provenance: Mapping[str, Any]) -> dict[str, object]:
    """What of a provenance may change a result."""
    if not provenance:
        return {}
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


def _change(name: str, old: object, new: object) -> str:
    return f"{name} {'none' if old is None else old} -> {'none' if new is None else new}"
