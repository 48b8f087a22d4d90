"""Notes that say why a number is missing or a case failed."""

from __future__ import annotations

from pathlib import Path

import ianvs
from ianvs.base.types import CaseResult
from tests.jobs import write_job

PLUGIN = """
class Plugin:
    def train(self, data):
        {train}
        self.label = int(data.y[0])

    def predict(self, data): return [self.label] * len(data)
    def save(self, path): path.write_text(str(self.label))
    def load(self, path): self.label = int(path.read_text())
"""
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy, BWT, FWT]
"""


def run(folder: Path, train: str) -> CaseResult:
    plugin = PLUGIN.format(train=train)
    job = write_job(
        folder, engine="local", plugin=plugin, name="Plugin", hyperparameters="", testenv=TESTENV, job="seeds: [0]"
    )
    [case] = ianvs.run(job)
    return case


def test_a_metric_of_the_untrained_model_says_why_it_is_blank(tmp_path: Path) -> None:
    case = run(tmp_path, "pass")
    assert case.metrics["FWT"] is None
    assert any("FWT is blank" in text and "before its first round" in text for text in case.warnings)
    assert not any("BWT is blank" in text for text in case.warnings)


def test_a_breakpoint_without_a_terminal_names_the_command_for_it(tmp_path: Path) -> None:
    case = run(tmp_path, "breakpoint()")
    assert case.failure is not None
    assert "--engine inline" in case.failure.message
