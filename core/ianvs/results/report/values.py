"""How values, and what is known of where a job ran, may be shown: typed, and compact."""

import json
import re
from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

import numpy as np

from ianvs.results.stats import Difference

Value = int | float | str | bool | None


def shown_hyperparameters(hyperparameters: Mapping[str, object]) -> dict[str, Value]:
    """Numbers, truth values and texts as they are, lists and mappings as compact JSON."""
    return {
        name: value
        if isinstance(value, bool | int | float | str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for name, value in hyperparameters.items()
    }


def cell_text(value: Value) -> str:
    """The shortest text that reads back as `value`; "" for None."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def method_name(algorithm: str, testenv: str, settings: str = "") -> str:
    """ "ewc (strength=100) in online"; "" of an exam or of settings leaves its part out."""
    return f"{algorithm}{f' ({settings})' if settings else ''}{f' in {testenv}' if testenv else ''}"


def telling(choices: Sequence[Mapping[str, object]]) -> set[str]:
    """Hyperparameters in which these choices differ; one that some of them lack is among them."""
    names = {name for one in choices for name in one}
    return {name for name in names if len({str(one.get(name)) for one in choices}) > 1}


def shown_number(value: float, decimals: int) -> str:
    """`value` with so many decimals; without a fraction when it is huge, and never "-0.00"."""
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def signed_number(value: float, decimals: int) -> str:
    shown = shown_number(value, decimals)
    return shown if shown.startswith("-") else f"+{shown}"


def decimals_for(error: float) -> int:
    """So many that two digits of an error can be read: further ones of a number with it say nothing."""
    return max(0, 1 - floor(log10(error))) if error > 0 else 4


def difference_text(found: Difference | None) -> str:
    """ "+0.055 ± 0.032", with the digits that the margin leaves, and more where these would hide which is larger."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return "equal" if found.mean == 0 else signed_number(found.mean, 4)
    margin = found.high - found.mean
    for decimals in range(decimals_for(margin), 12):
        mean, reach = signed_number(found.mean, decimals), shown_number(margin, decimals)
        if np.sign(abs(float(mean)) - float(reach)) == np.sign(abs(found.mean) - margin):
            break
    return f"{mean} ± {reach}"


def fit(said: str, longest: int) -> str:
    """`said` in at most `longest` characters."""
    return said if len(said) <= longest else f"{said[: longest - 1]}…"


def slug(name: str) -> str:
    """`name` with only what every file system takes."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "unnamed"


def provenance_facts(found: Mapping[str, Any]) -> dict[str, str]:
    """What is known of versions, machine and commit, each under its name.

    found: as ianvs.results.stored.provenance.collect gives it; of merged jobs what each of its "parts" says, once.
    """
    parts = [_facts(part) for part in found.get("parts", [found])]
    said = {name: dict.fromkeys(filter(None, (part.get(name) for part in parts))) for name in parts[0]}
    return {name: "; ".join(facts) for name, facts in said.items() if facts}


def commit_text(found: Mapping[str, Any]) -> str:
    """ "0123456789ab with local changes"; "" where none is known."""
    git = found.get("git") or {}
    commit = str(git.get("commit", ""))[:12]
    return f"{commit} with local changes" if commit and git.get("dirty") else commit


def _facts(found: Mapping[str, Any]) -> dict[str, str]:
    packages = found.get("packages") or {}
    cpu = found.get("cpu") or {}
    memory = found.get("memory_bytes")
    facts = {
        "Python": found.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "Platform": found.get("platform"),
        "CPU": f"{cpu.get('model')}, {cpu.get('count')} cores" if cpu.get("model") else "",
        "Memory": f"{memory / 1e9:.0f} GB" if memory else "",
        "GPU": ", ".join(found.get("gpus") or ()),
        "Commit": commit_text(found),
    }
    return {name: str(fact or "") for name, fact in facts.items()}
