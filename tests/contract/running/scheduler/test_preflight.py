"""A score that can't work on an exam's data is found before anything is trained."""

from __future__ import annotations

from pathlib import Path

import ianvs
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import MAJORITY, write_job

NEVER = edited(MAJORITY, "        if round == self.fail_in_round:", "        raise SystemExit(9)\n        if round:")


def job(folder: Path, metric: str, code: str = "") -> Path:
    if code:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mine.py").write_text(code)
    exam = f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: [accuracy, {metric}]"
    return write_job(folder, plugin=NEVER, hyperparameters="", testenv=exam, job="engine: inline")


def test_a_metric_of_an_author_that_raises_is_told_with_its_place(tmp_path: Path) -> None:
    code = "def mine(y_true, y_pred):\n    return y_true.no_such_thing\n"
    assert errors_of(ianvs.run, job(tmp_path, "{name: mine, url: ./mine.py}", code)) == [
        ("failed-plugin", f"{tmp_path}/testenv.yaml:4:30")
    ]


def test_a_score_of_replies_is_refused_for_classes(tmp_path: Path) -> None:
    assert errors_of(ianvs.run, job(tmp_path, "ROUGE_L")) == [("unfit-metric", f"{tmp_path}/testenv.yaml:4:23")]


def test_a_score_that_works_is_not_in_the_way(tmp_path: Path) -> None:
    code = "def mine(y_true, y_pred):\n    return float((y_true == y_pred).mean())\n"
    path = job(tmp_path, "{name: mine, url: ./mine.py}", code)
    (tmp_path / "plugin.py").write_text(MAJORITY)
    assert ianvs.run(path).exit_code == 0
