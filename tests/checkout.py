"""A small checkout as users of KubeEdge Ianvs have them: every path starts at its root."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tests.edits import edited

__all__ = ["Checkout"]

REGISTERED = "from sedna.common.class_factory import ClassFactory, ClassType\n\n\n"

JOB = """\
benchmarkingjob:
  name: toy
  workspace: ./workspace
  testenv: ./examples/toy/testenv/testenv.yaml
  test_object:
    type: algorithms
    algorithms:
      - name: toy
        url: ./examples/toy/algorithm/algorithm.yaml
  rank:
    sort_by: [{accuracy: descend}]
    visualization: {mode: selected_only, method: print_table}
    selected_dataitem: {paradigms: [all], modules: [all], hyperparameters: [all], metrics: [all]}
    save_mode: selected_and_all
"""
TESTENV = """\
testenv:
  dataset:
    train_index: ./dataset/train.txt
    test_index: ./dataset/test.txt
  metrics:
    - name: accuracy
      url: ./examples/toy/testenv/accuracy.py
"""
ALGORITHM = """\
algorithm:
  paradigm_type: singletasklearning
  modules:
    - type: basemodel
      name: Toy
      url: ./examples/toy/algorithm/basemodel.py
      hyperparameters:
        - lr: {values: [0.1, 0.2]}
        - epochs: {values: [1, 2]}
"""
BASEMODEL = f"""\
import os

{REGISTERED}@ClassFactory.register(ClassType.GENERAL, alias="Toy")
class BaseModel:
    def __init__(self, lr, epochs):
        raise AssertionError("nothing of a plugin is run to read its job")
"""
ACCURACY = f"""\
{REGISTERED}@ClassFactory.register(ClassType.GENERAL)
def accuracy(y_true, y_pred):
    return 0.0
"""


class Checkout:
    """Its files, right at first, for tests to make one thing odd in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job = root / "examples/toy/benchmarkingjob.yaml"
        self.testenv = root / "examples/toy/testenv/testenv.yaml"
        self.algorithm = root / "examples/toy/algorithm/algorithm.yaml"
        self.basemodel = root / "examples/toy/algorithm/basemodel.py"
        self.write(self.job, JOB)
        self.write(self.testenv, TESTENV)
        self.write(self.algorithm, ALGORITHM)
        self.write(self.basemodel, BASEMODEL)
        self.write(self.testenv.with_name("accuracy.py"), ACCURACY)
        for part, lines in (("train", "a.png cat\nb.png dog\n"), ("test", "c.png cat\n")):
            self.write(root / f"dataset/{part}.txt", lines)
        for name in "abc":
            self.write(root / f"dataset/{name}.png", f"picture {name}")

    def write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))

    def change(self, file: Path, old: str, new: str) -> None:
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file.name}"
        file.write_text(edited(text, old, new))
