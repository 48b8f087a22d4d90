"""What differs between the stored answers of two trees, by exam and algorithm; see compare.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["CannotCompareError", "Key", "Method", "compare_answers", "load_answers"]

Key = tuple[str, int, int, int, str]
"""Case (JSON), round, test set, samples of a stream so far (-1: end of the round), part."""


class CannotCompareError(Exception):
    """A tree, a job or its results are missing or broken; the message says which."""


def load_answers(path: Path) -> dict[Key, np.ndarray]:
    """Read a file of read_answers.py.

    Raises:
        CannotCompareError: Two cases can't be told apart by algorithm, hyperparameters and seed.
    """
    found: dict[Key, np.ndarray] = {}
    with np.load(path, allow_pickle=False) as stored:
        for number, record in enumerate(json.loads(str(stored["index"]))):
            samples = -1 if record["samples"] is None else record["samples"]
            case = json.dumps(record["case"], sort_keys=True)
            key = (case, record["round"], record["test"], samples, record["part"])
            if key in found:
                raise CannotCompareError(f"two cases are called {case}: they can't be matched")
            found[key] = stored[str(number)]
    return found


@dataclass
class Method:
    """What differs of one algorithm in one exam.

    Attributes:
        answers, changed: How many answers there are (rows of labels), and how many of them differ.
        parts: Rows that differ, by what is stored beside labels.
        missing: Arrays that only one tree has.
        scores: Largest difference of each score that differs; nan where one of the two is undefined.
        status: (old, new) of cases that ended differently.
    """

    cases: set[str] = field(default_factory=set)
    different: set[str] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)
    tests: set[int] = field(default_factory=set)
    answers: int = 0
    changed: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    status: list[tuple[str, str]] = field(default_factory=list)

    def describe(self) -> str:
        """One line about what differs; "equal" if nothing does."""
        if not self.different:
            return "equal"
        said = [f"{len(self.different)} of {len(self.cases)} cases"]
        said += [f"ended as {new}, not {old}" for old, new in self.status]
        said += [f"{number} arrays only in {side}" for side, number in self.missing.items()]
        for name, numbers in (("rounds", self.rounds), ("test sets", self.tests)):
            said += [f"{name} {', '.join(map(str, sorted(numbers)))}"] if numbers else []
        if self.changed:
            said.append(f"{self.changed / self.answers:.2%} of answers ({self.changed} of {self.answers})")
        said += [f"{rows} rows of '{part}'" for part, rows in self.parts.items()]
        if self.scores:
            name, most = max(self.scores.items(), key=lambda score: (np.isnan(score[1]), score[1]))
            said.append(f"largest difference of scores {most:.3g} ({name})")
        return "; ".join(said)


def compare_answers(old: Mapping[Key, np.ndarray], new: Mapping[Key, np.ndarray]) -> dict[tuple[str, str], Method]:
    """Compare two results of `load_answers`.

    Returns:
        What differs, by (exam, algorithm).
    """
    methods: dict[tuple[str, str], Method] = {}
    for key in sorted(old.keys() | new.keys()):
        case, round_, test, _, part = key
        facts = json.loads(case)
        name = facts["algorithm"] + (f" (reference {facts['role']})" if facts["role"] else "")
        method = methods.setdefault((facts["exam"], name), Method())
        method.cases.add(case)
        before, after = old.get(key), new.get(key)
        if part == "labels":
            method.answers += len(before if before is not None else new[key])
        if before is not None and after is not None and not (rows := rows_that_differ(before, after)):
            continue
        method.different.add(case)
        if round_ >= 0:
            method.rounds.add(round_)
        if test >= 0:
            method.tests.add(test)
        if before is None or after is None:
            side = "OLD" if after is None else "NEW"
            method.missing[side] = method.missing.get(side, 0) + 1
        elif part == "labels":
            method.changed += rows
        elif part == "status":
            method.status.append((str(before[0]), str(after[0])))
        elif part.startswith("score "):
            method.scores[part.removeprefix("score ")] = largest_difference(before, after)
        else:
            method.parts[part] = method.parts.get(part, 0) + rows
    return methods


def rows_that_differ(before: np.ndarray, after: np.ndarray) -> int:
    """How many rows (samples) of two arrays are unequal; nan equals nan. All of the longer one if shapes differ."""
    if before.shape != after.shape:
        return max(1, before.shape[0] if before.ndim else 1, after.shape[0] if after.ndim else 1)
    unequal = before != after
    if before.dtype.kind in "fc" and after.dtype.kind in "fc":
        unequal &= ~(np.isnan(before) & np.isnan(after))
    return int(unequal.reshape(len(unequal), -1).any(axis=1).sum()) if unequal.ndim else int(unequal)


def largest_difference(before: np.ndarray, after: np.ndarray) -> float:
    """Of two score matrices; nan if their shapes differ or a score is defined in one of them alone."""
    if before.shape != after.shape or (np.isnan(before) != np.isnan(after)).any():
        return float("nan")
    return float(np.nanmax(np.abs(before - after)))
