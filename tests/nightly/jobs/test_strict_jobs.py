"""Sandboxes change no answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.processes.sandbox import missing_sandbox
from ianvs.store import CaseStore

pytestmark = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")

METHODS = Path(__file__).parents[3] / "configs/methods_digits/benchmarkingjob.yaml"
FEW = ["seeds=[0]", "epochs=1", "scenario.rounds=2"]


def test_all_methods_answer_alike_with_and_without_sandboxes(tmp_path: Path) -> None:
    answers = {}
    for sealing in ("off", "strict"):
        results = ianvs.run(METHODS, workspace=tmp_path / sealing, settings=[*FEW, f"sealing={sealing}"])
        store = CaseStore(tmp_path / sealing)
        for case in results:
            assert case.status == "finished", case.failure
            name = case.case.testenv, case.case.algorithm, str(sorted(case.case.hyperparameters.items()))
            answers[sealing, *name] = [store.predictions(case.case.id, k) for k in range(len(case.rounds))]
    names = [name[1:] for name in answers if name[0] == "off"]
    assert len(names) > 20 and len(answers) == 2 * len(names)
    for name in names:
        for off, strict in zip(answers["off", *name], answers["strict", *name], strict=True):
            assert off.keys() == strict.keys()
            assert all(np.array_equal(off[key].labels, strict[key].labels) for key in off), name
