"""A job that was written for KubeEdge Ianvs runs as it is, and its table has the columns that Ianvs's tables have."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.results.report.build_document import document_of
from tests.edits import edited

EXAMPLE = Path(__file__).parents[3] / "examples" / "from_ianvs"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As of Ianvs: the example lies where its paths say, below the root."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(EXAMPLE, root / "examples" / "from_ianvs", ignore=shutil.ignore_patterns("dataset", "workspace"))
    make = root / "examples" / "from_ianvs" / "make_data.py"
    exec(compile(make.read_text(), str(make), "exec"), {"__name__": "__main__", "__file__": str(make)})
    return root


@pytest.fixture
def job(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(checkout)
    return checkout / "examples" / "from_ianvs" / "benchmarkingjob.yaml"


def nearest_mean(shrink: float) -> float:
    """Accuracy of the example's method, from the arrays."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16 * 255).astype("uint8").astype(float)
    train, test = slice(0, 1200), slice(1200, 1797)
    means = np.stack([x[train][y[train] == c].mean(axis=0) for c in range(10)])
    means = (1 - shrink) * means + shrink * x[train].mean(axis=0)
    return float(np.mean(np.linalg.norm(x[test][:, None] - means, axis=2).argmin(axis=1) == y[test]))


@pytest.mark.slow
def test_it_runs_beside_another_sedna_and_writes_nothing_outside(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rival" / "sedna").mkdir(parents=True)
    (tmp_path / "rival" / "sedna" / "__init__.py").write_text("raise ImportError('something else called sedna')")
    monkeypatch.syspath_prepend(str(tmp_path / "rival"))
    before = {path for path in job.parents[2].rglob("*") if "__pycache__" not in path.parts}
    results = ianvs.run(job, workspace=tmp_path / "ws")
    assert {path for path in job.parents[2].rglob("*") if "__pycache__" not in path.parts} == before
    found = {result.case.hyperparameters["shrink"]: result.metrics["accuracy"] for result in results}
    assert found == pytest.approx({0.0: nearest_mean(0.0), 0.9: nearest_mean(0.9)})
    with (tmp_path / "ws" / "from_ianvs" / "rank" / "all_rank.csv").open(newline="") as file:
        header, first, _ = csv.reader(file)
    theirs = ["rank", "algorithm", "accuracy", "paradigm", "basemodel", "basemodel-shrink", "time", "url"]
    assert header[: len(theirs)] == theirs
    assert first[:2] == ["1", "nearest_mean"]
    assert (tmp_path / "ws" / first[theirs.index("url")] / "result.json").is_file()
    assert all("contract ianvs" in row.status for row in results.leaderboard.rows)
    again = ianvs.run(job, workspace=tmp_path / "ws")
    assert (again.ran, [dict(r.metrics) for r in again]) == (0, [dict(r.metrics) for r in results])
    assert ianvs.load_results(tmp_path / "ws", "from_ianvs").contract == "ianvs"


INCREMENTAL = """
import os, signal
from pathlib import Path
from sedna.common.class_factory import ClassFactory, ClassType

@ClassFactory.register(ClassType.GENERAL, alias="Counts")
class Counts:
    def __init__(self): self.rounds = 0
    def train(self, train_data, valid_data=None, **kwargs):
        self.rounds += 1
        flag = Path({flag!r})
        if self.rounds == 2 and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    def save(self, path): Path(path).write_text(str(self.rounds)); return path
    def load(self, model_url=None, **kwargs): pass
    def predict(self, data, **kwargs): return {{one: str(self.rounds) for one in data}}
    def evaluate(self, data, model_path="", metric=None, **kwargs): return {{"score": 1.0}}

@ClassFactory.register(ClassType.HEM, alias="All")
class All:
    def __init__(self, **kwargs): pass
    def __call__(self, result): return True

@ClassFactory.register(ClassType.HEM, alias="Nothing")
class Nothing(All):
    def __call__(self, result): return False

@ClassFactory.register(ClassType.GENERAL, alias="score")
def score(y_true, y_pred, **kwargs): return float(sum(int(value) for value in y_pred.values()))
"""


def incremental_job(tmp_path: Path, *miners: str) -> Path:
    """The job of an algorithm for each way to pick hard examples."""
    flag, plugin = tmp_path / "flag", tmp_path / "plugin.py"
    plugin.write_text(INCREMENTAL.format(flag=str(flag)))
    lines = []
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text("x")
        lines.append(f"{number}.txt {number % 2}\n")
    (tmp_path / "index.txt").write_text("".join(lines))
    (tmp_path / "start.txt").write_text("")
    (tmp_path / "testenv.yaml").write_text(
        f"testenv:\n  incremental_rounds: 3\n  dataset: {{train_index: {tmp_path}/index.txt, "
        f"test_index: {tmp_path}/index.txt}}\n  model_eval: {{model_metric: {{name: score, url: {plugin}}}, "
        f"threshold: 0, operator: '>='}}\n"
        f"  metrics: [{{name: score, url: {plugin}}}, {{name: samples_transfer_ratio}}]\n"
    )
    for miner in miners:
        (tmp_path / f"{miner}.yaml").write_text(
            f"algorithm:\n  paradigm_type: incrementallearning\n  initial_model_url: {tmp_path}/start.txt\n  modules:\n"
            f"    - {{type: basemodel, name: Counts, url: {plugin}}}\n"
            f"    - {{type: hard_example_mining, name: {miner}, url: {plugin}}}\n"
        )
    algorithms = ", ".join(f"{{name: {miner}, url: {tmp_path}/{miner}.yaml}}" for miner in miners)
    (tmp_path / "job.yaml").write_text(
        f"benchmarkingjob:\n  name: killed\n  workspace: {tmp_path}/ws\n  testenv: {tmp_path}/testenv.yaml\n"
        f"  test_object: {{type: algorithms, algorithms: [{algorithms}]}}\n"
        "  rank: {sort_by: [{score: ascend}]}\n"
    )
    return tmp_path / "job.yaml"


def test_a_case_that_trained_nothing_takes_no_rank(tmp_path: Path) -> None:
    results = ianvs.run(incremental_job(tmp_path, "Nothing", "All"), engine="inline")
    assert results.exit_code == 0
    marks = {row.algorithm: (row.rank, row.out_of_rank) for row in results.leaderboard.rows}
    assert marks == {"Nothing": (None, "untrained"), "All": (1, "")}
    [untrained] = (row for row in results.leaderboard.rows if row.algorithm == "Nothing")
    assert "nothing was trained" in untrained.status
    [leader] = document_of(results.leaderboard).texts("leader")
    assert leader.startswith("All leads")


@pytest.mark.slow
def test_a_case_that_was_killed_goes_on_and_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    job, flag = incremental_job(tmp_path, "All"), tmp_path / "flag"
    [undisturbed] = ianvs.run(job, workspace=tmp_path / "other")
    flag.touch()
    [resumed] = ianvs.run(job)  # a case that was lost is tried once more
    assert not flag.exists()
    assert dict(resumed.metrics) == dict(undisturbed.metrics)
    assert resumed.metrics["score"] == 3 * 12  # every sample is hard, so that every round has trained


def test_algorithms_of_both_contracts_in_one_job_are_refused(job: Path, tmp_path: Path) -> None:
    (tmp_path / "native.yaml").write_text(
        "algorithm:\n  contract: native\n  paradigm_type: incrementallearning\n  modules:\n"
        "    - {type: basemodel, name: Finetune}\n"
    )
    both = edited(
        job.read_text(),
        "    algorithms:\n",
        f'    algorithms:\n      - {{name: native, url: "{tmp_path}/native.yaml"}}\n',
    )
    (tmp_path / "both.yaml").write_text(both)
    with pytest.raises(ConfigError, match="contract"):
        ianvs.validate(tmp_path / "both.yaml", root=job.parents[2])
