"""A metric that names a column, and a dataset that fills it: a file each, and nothing between them."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.base.types import PredictionKey
from ianvs.store import CaseStore, ExamStore
from tests.edits import edited
from tests.errors import recorded
from tests.jobs import write_job

EXAMPLES = Path(__file__).parents[4] / "examples"

LOOKS = """
import numpy as np

class Looks:
    def train(self, train_data, valid_data=None):
        assert not any("cost" in name for name in dir(train_data))

    def predict(self, data):
        assert not any("cost" in name for name in dir(data))
        return np.ones(len(data), dtype=int)

    def save(self, path): ...
    def load(self, path): ...
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    for name in ("own_column", "own_algorithm"):
        copytree(EXAMPLES / name, tmp_path / name)
    return tmp_path / "own_column"


def exam(folder: Path, metrics: str = "[accuracy, {name: cost_of_errors, url: %s}]") -> str:
    metrics = metrics.replace("%s", str(folder / "cost_of_errors.py"))
    return f"dataset: {{name: machines, url: {folder / 'machines.py'}, using: north south}}\nmetrics: {metrics}"


def test_the_example_scores_by_its_column(example: Path) -> None:
    workspace = example / "workspace"
    store, exams = CaseStore(workspace), ExamStore(workspace)
    for result in ianvs.run(example / "benchmarkingjob.yaml", workspace=workspace, settings=["engine=inline"]):
        exam_id = str((store.identity(result.case.id) or {})["exam_id"])
        truth, columns = exams.truth(exam_id), exams.columns(exam_id, 2)
        answers = store.predictions(result.case.id, 2)
        costs = [
            (columns[j]["cost"] * (np.asarray(answers[PredictionKey(j)].labels) != truth[j])).mean()
            for j in range(len(truth))
        ]
        assert result.metrics["cost_of_errors"] == pytest.approx(np.mean(costs))
        assert min(costs) > 0


def test_learners_see_no_columns(example: Path, tmp_path: Path) -> None:
    path = write_job(
        tmp_path / "job", plugin=LOOKS, name="Looks", hyperparameters="", testenv=exam(example), job="engine: inline"
    )
    [result] = ianvs.run(path)
    assert result.failure is None
    assert result.metrics["cost_of_errors"] > 0


def test_an_accumulating_metric_and_one_under_a_decorator_get_it_too(example: Path, tmp_path: Path) -> None:
    (tmp_path / "ways.py").write_text(
        "from ianvs.exam.metrics import score_metric\n"
        "class summed:\n"
        "    needs = ['cost']\n"
        "    def __init__(self): self.parts = []\n"
        "    def update(self, y_true, y_pred, cost): self.parts.append((cost * (y_pred != y_true)).mean())\n"
        "    def compute(self): return self.parts[-1]\n"
        "@score_metric('decorated', formula='', source='', needs=('cost',))\n"
        "def decorated(record):\n"
        '    """Mean cost."""\n'
        "    return (record.columns['cost'] * (record.y_true != record.y_pred)).mean()\n"
    )
    ways = f", {{name: summed, url: {tmp_path / 'ways.py'}}}, {{name: decorated, url: {tmp_path / 'ways.py'}}}]"
    metrics = edited("[accuracy, {name: cost_of_errors, url: %s}]", "]", ways)
    testenv = exam(example, metrics)
    path = write_job(
        tmp_path / "job", plugin=LOOKS, name="Looks", hyperparameters="", testenv=testenv, job="engine: inline"
    )
    [result] = ianvs.run(path)
    assert result.failure is None
    assert result.metrics["summed"] == result.metrics["decorated"] == result.metrics["cost_of_errors"]


@pytest.mark.parametrize("command", [ianvs.validate, ianvs.run])
def test_a_column_that_the_dataset_lacks_is_told_with_the_place_of_the_metric(
    example: Path, tmp_path: Path, command: object
) -> None:
    dataset = example / "machines.py"
    dataset.write_text(edited(dataset.read_text(), '"columns": {"cost": cost}', '"columns": {"costs": cost}'))
    path = write_job(tmp_path / "job", hyperparameters="", testenv=exam(example), job="engine: inline")
    with pytest.raises(ConfigError) as caught:
        command(path)  # type: ignore[operator]
    assert [(code, place.rpartition("/")[2]) for code, place in recorded(caught.value.problems)] == [
        ("unfit-metric", "testenv.yaml:3:30")
    ]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ('{"cost": cost[:-1]}', "mismatched-data"),
        ('{"a b": cost}', "invalid-result"),
        ('{"cost": [object()] * len(y)}', "invalid-result"),
        ("cost", "invalid-result"),
    ],
)
def test_columns_that_are_none_are_refused(example: Path, tmp_path: Path, columns: str, code: str) -> None:
    dataset = example / "machines.py"
    dataset.write_text(edited(dataset.read_text(), '"columns": {"cost": cost}', f'"columns": {columns}'))
    path = write_job(tmp_path / "job", hyperparameters="", testenv=exam(example), job="engine: inline")
    with pytest.raises(ConfigError) as caught:
        ianvs.validate(path)
    assert {found for found, _ in recorded(caught.value.problems)} == {code}
