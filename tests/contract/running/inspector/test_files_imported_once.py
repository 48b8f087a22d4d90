"""A file of an author runs once for each command, and once for all that are asked of it; what it says is kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job
from tests.marks import slow

METHODS = """
    def train(self, train_data, **context): ...
    def predict(self, data): return [0] * len(data)
    def save(self, path): path.write_text(""); return path
    def load(self, path): ...
"""
FILES = {
    "plugin.py": f"""
class Model:
    reference = "plain.py:Plain"
    def __init__(self, a=1, b=2): ...
    def check_exam(self, *, shape): ...
{METHODS}
class Other(Model): ...
""",
    "plain.py": f"class Plain:\n    def __init__(self, a=1): ...\n{METHODS}",
    "metric.py": "def wrong(y_true, y_pred): return 0.5\ndef right(y_true, y_pred): return 0.5\n",
    "paradigm.py": "from ianvs.exam.paradigms import IncrementalLearning\nclass Rounds(IncrementalLearning): ...\n",
    "dataset.py": """
import numpy as np
def points(count=8):
    part = np.arange(4.0 * count, dtype="float32").reshape(count, 4), np.arange(count) % 2
    return part, part
""",
}
EXAM = """
dataset: {name: points, url: ./dataset.py, count: 8}
scenario: {name: CIL, rounds: 2}
metrics: [accuracy, IM, {name: wrong, url: ./metric.py}, {name: right, url: ./metric.py}]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Of two classes in one file, which name a reference in another; each file leaves a line in `runs`."""
    (tmp_path / "runs").touch()
    settings = "seeds: [0]"
    path = write_job(
        tmp_path, name="Model", hyperparameters="", testenv=EXAM, job=settings, algorithms=("x", "y"), engine="local"
    )
    for name, source in FILES.items():
        note = f"import os; print({name!r}, os.getpid(), file=open({str(tmp_path / 'runs')!r}, 'a'))\n"
        (tmp_path / name).write_text(note + source)
    text = edited(
        (tmp_path / "algorithm.yaml").read_text(), "incrementallearning", "{name: Rounds, url: ./paradigm.py}"
    )
    (tmp_path / "algorithm.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(edited(text, "name: Model", "name: Other"))
    path.write_text(edited(path.read_text(), "{name: y, url: ./algorithm.yaml}", "{name: y, url: ./other.yaml}"))
    return path


def runs(job: Path) -> list[list[str]]:
    """(file, process) for each time that a file has run since the last call."""
    file = job.parent / "runs"
    lines = file.read_text().splitlines()
    file.write_text("")
    return [line.split() for line in lines]


@pytest.mark.slow
def test_validate_runs_each_file_once(job: Path) -> None:
    ianvs.validate(job, settings={"b": 3})
    ran = runs(job)
    once = dict.fromkeys(FILES, 1)
    assert Counter(name for name, _ in ran) == {**once, "metric.py": 3}  # two in the process that tries it on the exam
    by_file = {name: {pid for file, pid in ran if file == name} for name in FILES}
    assert len({*by_file["plugin.py"], *by_file["plain.py"], *by_file["paradigm.py"]}) == 1, "one process asks them all"
    ianvs.validate(job, settings={"b": 4})
    assert Counter(name for name, _ in runs(job)) == {"plugin.py": 1, "plain.py": 1}  # they are built with other values


def test_plan_runs_each_file_once_ever(job: Path) -> None:
    plan = ianvs.plan(job, settings={"b": 3})
    assert {case.algorithm for case, _ in plan.cases()} == {"x", "y", "Plain (joint reference)"}
    assert Counter(name for name, _ in runs(job)) == dict.fromkeys(FILES, 1)
    ianvs.plan(job, settings={"b": 4})
    assert runs(job) == []


@pytest.mark.slow
def test_a_run_asks_once_before_its_first_case(job: Path) -> None:
    assert ianvs.run(job, settings={"b": 3}).exit_code == 0
    ran = runs(job)
    asked = ran[0][1]
    assert Counter(name for name, pid in ran if pid == asked) == {"paradigm.py": 1, "plugin.py": 1, "plain.py": 1}
    assert Counter(name for name, _ in ran)["dataset.py"] == 1


@pytest.mark.parametrize(
    ("source", "times"),
    [
        # It may have been the file before: who ends a process of several is asked again, in a new one.
        ("import os; os._exit(3)", 2),
        slow("raise SystemExit", 2),
        slow("while True: ...", 1),
        slow("1 / 0", 1),
        slow("def f(:", 0),
    ],
)
def test_a_broken_file_leaves_the_others_alone(
    job: Path, source: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)
    note = (job.parent / "plugin.py").read_text().splitlines()[0]
    (job.parent / "plugin.py").write_text(f"{note}\n{source}\n")
    (job.parent / "other.py").write_text(FILES["plugin.py"])
    other = job.parent / "other.yaml"
    other.write_text(edited(other.read_text(), "./plugin.py", "./other.py"))
    if source.startswith("while"):
        job.write_text(edited(job.read_text(), "seeds: [0]", "seeds: [0]\n  limits: {check_seconds: 20}"))
    assert errors_of(ianvs.validate, job, settings={"b": 3}) == [("unloadable-plugin", "algorithm.yaml:5:13")]
    assert Counter(name for name, _ in runs(job))["plugin.py"] == times


@pytest.mark.slow
def test_what_a_file_prints_is_no_answer(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in FILES:
        (job.parent / name).write_text(f"print('[1]', flush=True)\n{(job.parent / name).read_text()}")
    ianvs.validate(job)
    assert "[1]" not in capfd.readouterr().out
