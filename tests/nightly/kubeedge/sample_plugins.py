"""Small plugins written against the specification, their data, and how tests run them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from ianvs.config.contracts import ContractResult
from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.case_storage import read_outcome, read_pickle
from ianvs.kubeedge.run import run
from ianvs.kubeedge.scores import score
from ianvs.kubeedge.work import Work
from tests.nightly.kubeedge.children import in_child

HEAD = """
import json, os, pickle
import numpy as np
from sedna.common.class_factory import ClassFactory, ClassType
from sedna.common.config import Context
"""

ACCURACY = """
@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def accuracy(y_true, y_pred):
    given = dict(y_pred) if isinstance(y_pred, dict) else None
    answers = list(given.values()) if given is not None else list(y_pred)
    return sum(str(a) == str(b) for a, b in zip(y_true, answers)) / max(1, len(y_true))
"""


def plugin(folder: Path, name: str, *code: str) -> str:
    """A plugin's file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(HEAD + "".join(dedent(part) for part in code))
    return str(path)


def samples(folder: Path, index: str, rows: Sequence[tuple[str, str]]) -> str:
    """Files with one word each, and an index of relative paths with their labels."""
    lines = []
    for name, label in rows:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(label)
        lines.append(f"{name} {label}\n")
    (folder / index).write_text("".join(lines))
    return str(folder / index)


def metric(folder: Path, code: str = ACCURACY) -> MetricSpec:
    return MetricSpec("accuracy", Path(plugin(folder, "accuracy", code)))


def finish(
    work: Work, metrics: Sequence[MetricSpec] = (), sedna: Path | None = None, also: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], Any, ContractResult]:
    """Run and score, each in a process of its own: the numbers of the outcome, the result, and the scores.

    Nothing may be written beside W, but for `also`.
    """

    def ran() -> tuple[Any, Any]:
        run(work)
        return read_outcome(work.folder), read_pickle(work.folder, "result")

    around, own = Path(work.folder).parent, Path(work.folder).name
    before = tree(around)
    numbers, result = in_child(ran, sedna=sedna)
    scores = in_child(score, work, list(metrics), sedna=sedna)
    outside = {path for path in tree(around) - before - also if path.split("/")[0] != own}
    assert not outside and not (around / own / "tmp").exists(), outside
    return numbers, result, scores


def tree(folder: Path) -> set[str]:
    """Every file and folder below."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def killed(work: Work) -> None:
    """Run in a process that the plugin ends in the middle, as its file KILL beside W tells it to."""
    kill = Path(work.folder).with_name("KILL")
    kill.write_text("")
    assert in_child(run, work) is None, "the plugin was meant to end its process"
    assert not kill.exists() and read_outcome(work.folder) is None


# A plugin that calls `die()` ends its process there once, if a test has asked for it.
DIE = """
def die():
    import pathlib
    kill = pathlib.Path(os.environ["TMPDIR"]).parent.with_name("KILL")
    if kill.exists():
        kill.unlink()
        os._exit(9)
"""
