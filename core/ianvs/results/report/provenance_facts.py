"""Where and with what a job ran, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["provenance_facts"]


def provenance_facts(found: Mapping[str, Any]) -> dict[str, str]:
    """What is known of versions, machine and commit, each under its name.

    found: as ianvs.results.stored.provenance.collect gives it; of merged jobs what each of its "parts" says, once.
    """
    parts = [_facts(part) for part in found.get("parts", [found])]
    said = {name: dict.fromkeys(filter(None, (part.get(name) for part in parts))) for name in parts[0]}
    return {name: "; ".join(facts) for name, facts in said.items() if facts}


def _facts(found: Mapping[str, Any]) -> dict[str, str]:
    packages = found.get("packages") or {}
    git = found.get("git") or {}
    cpu = found.get("cpu") or {}
    memory = found.get("memory_bytes")
    commit = str(git.get("commit", ""))[:12]
    facts = {
        "Python": found.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "Platform": found.get("platform"),
        "CPU": f"{cpu.get('model')}, {cpu.get('count')} cores" if cpu.get("model") else "",
        "Memory": f"{memory / 1e9:.0f} GB" if memory else "",
        "GPU": ", ".join(found.get("gpus") or ()),
        "Commit": f"{commit} with local changes" if commit and git.get("dirty") else commit,
    }
    return {name: str(fact or "") for name, fact in facts.items()}
