"""Formats values and facts about where a job ran, for reports."""

import json
import re
from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

import numpy as np

from ianvs.results.stats import Difference

Value = int | float | str | bool | None


def shown_hyperparameters(hyperparameters: Mapping[str, object]) -> dict[str, Value]:
    """Return numbers, booleans and strings unchanged, lists and mappings as compact JSON."""
    return {
        name: value
        if isinstance(value, bool | int | float | str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for name, value in hyperparameters.items()
    }


def cell_text(value: Value) -> str:
    """Return the shortest text that reads back as `value`; "" for None."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def method_name(algorithm: str, testenv: str, settings: str = "") -> str:
    """Return "ewc (strength=100) in online"; an empty exam or empty settings are left out."""
    return f"{algorithm}{f' ({settings})' if settings else ''}{f' in {testenv}' if testenv else ''}"


def differing_settings(choices: Sequence[Mapping[str, object]]) -> set[str]:
    """Return hyperparameters in which these choices differ, including those that some of them lack."""
    names = {name for choice in choices for name in choice}
    return {name for name in names if len({str(choice.get(name)) for choice in choices}) > 1}


def shown_number(value: float, decimals: int) -> str:
    """Return `value` with so many decimals; without a fraction if it is large, and never "-0.00"."""
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def signed_number(value: float, decimals: int) -> str:
    shown = shown_number(value, decimals)
    return shown if shown.startswith("-") else f"+{shown}"


def decimals_for(error: float) -> int:
    """Return the number of decimals that shows two digits of an error; further ones are meaningless."""
    return max(0, 1 - floor(log10(error))) if error > 0 else 4


def difference_text(difference: Difference | None) -> str:
    """Return "+0.055 ± 0.032", with the digits that the margin supports, and more if these would hide which is
    larger.
    """
    if difference is None:
        return ""
    if difference.low is None or difference.high is None:
        return "equal" if difference.mean == 0 else signed_number(difference.mean, 4)
    margin = difference.high - difference.mean
    for decimals in range(min(decimals_for(margin), 11), 12):
        mean, reach = signed_number(difference.mean, decimals), shown_number(margin, decimals)
        if np.sign(abs(float(mean)) - float(reach)) == np.sign(abs(difference.mean) - margin):
            break
    return f"{mean} ± {reach}"


def fit(text: str, longest: int) -> str:
    """Return `text` shortened to at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def slug(name: str) -> str:
    """Return `name` with only characters that every file system accepts."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "unnamed"


def provenance_facts(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return versions, machine and commit, by name.

    provenance: from ianvs.results.stored.provenance.collect; of merged jobs the facts of all "parts", each once.
    """
    parts = [_facts(part) for part in provenance.get("parts", [provenance])]
    merged = {name: dict.fromkeys(filter(None, (part.get(name) for part in parts))) for name in parts[0]}
    return {name: "; ".join(facts) for name, facts in merged.items() if facts}


def commit_text(provenance: Mapping[str, Any]) -> str:
    """Return "0123456789ab with local changes"; "" if unknown."""
    git = provenance.get("git") or {}
    commit = str(git.get("commit", ""))[:12]
    return f"{commit} with local changes" if commit and git.get("dirty") else commit


def _facts(provenance: Mapping[str, Any]) -> dict[str, str]:
    packages = provenance.get("packages") or {}
    cpu = provenance.get("cpu") or {}
    memory = provenance.get("memory_bytes")
    facts = {
        "Python": provenance.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "Platform": provenance.get("platform"),
        "CPU": f"{cpu.get('model')}, {cpu.get('count')} cores" if cpu.get("model") else "",
        "Memory": f"{memory / 1e9:.0f} GB" if memory else "",
        "GPU": ", ".join(provenance.get("gpus") or ()),
        "Commit": commit_text(provenance),
    }
    return {name: str(fact or "") for name, fact in facts.items()}
