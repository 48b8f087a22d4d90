"""A small job on disk that is right, for tests to make one thing wrong in it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ianvs.base.errors import ConfigError, ValidationError
from ianvs.config import load_job
from ianvs.config.spec import JobSpec
from tests.edits import edited
from tests.errors import Found, recorded

JOB = """\
benchmarkingjob:
  name: first
  workspace: ./workspace
  testenv: ./testenv.yaml
  test_object:
    type: algorithms
    algorithms:
      - name: student
        url: ./algorithm.yaml
  rank:
    sort_by:
      - accuracy: descend
    visualization:
      mode: selected_only
      method: print_table
    selected_dataitem:
      metrics: [all]
    save_mode: selected_and_all
"""
TESTENV = """\
testenv:
  dataset:
    train_index: ./train.txt
    test_index: ./test.txt
  metrics:
    - name: accuracy
  incremental_rounds: 2
"""
ALGORITHM = """\
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Student
      url: ./student.py
      hyperparameters:
        - learning_rate:
            values: [0.1, 1e-3]
        - epochs:
            values: [1]
"""


class Files:
    """The files in one folder, which is the working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("job.yaml", JOB)
        self.write("testenv.yaml", TESTENV)
        self.write("algorithm.yaml", ALGORITHM)
        for name in ("train.txt", "test.txt", "student.py"):
            self.write(name, "")

    def write(self, name: str, text: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        self.write(name, edited(text, old, new))

    def add_hyperparameter(self, text: str) -> None:
        """Write `text` as the second entry of the algorithm's hyperparameters, on line 10."""
        self.change("algorithm.yaml", "        - epochs", f"        - {text}\n        - epochs")

    def dataset(self, *lines: str, metrics: str = "[accuracy]", more: str = "") -> None:
        """A testenv with these lines in its dataset, the first of them on line 3."""
        body = "".join(f"    {line}\n" for line in lines)
        self.write("testenv.yaml", f"testenv:\n  dataset:\n{body}  metrics: {metrics}\n{more}")

    def load(self, **overrides: Any) -> JobSpec:
        return load_job("job.yaml", **{"environment": {}, **overrides})

    def problems(self, path: str = "job.yaml", **overrides: Any) -> tuple[ValidationError, ...]:
        """What is wrong, in the order in which a user sees it; each is one line."""
        with pytest.raises(ConfigError) as caught:
            load_job(path, **{"environment": {}, **overrides})
        assert len(str(caught.value).split("\n")) == len(caught.value.problems) + 1
        return caught.value.problems

    def errors(self, path: str = "job.yaml", **overrides: Any) -> list[Found]:
        """Code and location of each error; messages are compared with the snapshot."""
        return recorded(self.problems(path, **overrides))

    def warnings(self) -> list[Found]:
        return recorded(self.load().warnings)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    return Files(tmp_path)
