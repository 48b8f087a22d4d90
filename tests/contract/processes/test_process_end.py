"""What is said of a process that code of an author has ended: how, where, and the end of its output."""

import sys
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError, IanvsError, shown_path
from ianvs.processes.process_end import describe_end
from tests.errors import errors_of
from tests.jobs import write_job

STACK = f"""a line
Fatal Python error: Segmentation fault

Current thread 0x00007f9310c21b80 (most recent call first):
  File "{sys.base_prefix}/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/plugin.py", line 4 in predict
  File "{Path(ianvs.__file__).parent}/running/scoring.py", line 324 in _guarded
"""


@pytest.mark.parametrize(
    ("code", "output", "text"),
    [
        (3, "", "exit status 3"),
        (3, "one\n\ntwo \nthree\nfour.\n", "exit status 3; the end of its output: two / three / four"),
        (-11, STACK, "killed by SIGSEGV at plugin.py:4; the end of its output: a line"),
        (139, STACK, "killed by SIGSEGV at plugin.py:4; the end of its output: a line"),
        (139, "", "exit status 139"),
        (-250, "", "killed by signal 250"),
        (None, "a", "; the end of its output: a"),
        (1, "x" * 400, f"exit status 1; the end of its output: ...{'x' * 300}"),
        (1, "token=hf_abcdefghijklmnopqrstuvwxyz012345\n", "exit status 1; the end of its output: token=***"),
    ],
)
def test_an_end_in_words(code: int | None, output: str, text: str) -> None:
    assert describe_end(code, output) == text


ENDS = {
    "exit": "import sys; print('no licence'); sys.exit(1)",
    "os._exit": "import os; print('no licence', flush=True); os._exit(3)",
    "crash": "import ctypes; print('no licence', flush=True); ctypes.string_at(0)",
}
PLUGIN = """
import numpy as np
class Mine:
    def train(self, train_data, valid_data=None): ...
    def predict(self, data): return np.zeros(len(data), int)
    def save(self, path): ...
    def load(self, path): ...
"""
DATASET = "def mine(): ..."
METRIC = "def score(y_true, y_pred): return 0.5"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("owner", ["dataset", "metric", "plugin", "plugin in another interpreter"])
def test_what_ends_while_it_is_imported_is_told_with_the_reason(owner: str, end: str, tmp_path: Path) -> None:
    dataset = "{name: mine, url: ./dataset.py}" if owner == "dataset" else "{name: digits}"
    metrics = "[accuracy, {name: score, url: ./metric.py}]"
    exam = f"dataset: {dataset}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: {metrics}"
    path = write_job(tmp_path, testenv=exam, plugin=PLUGIN, name="Mine", hyperparameters="", engine="local")
    (tmp_path / "dataset.py").write_text(DATASET)
    (tmp_path / "metric.py").write_text(METRIC)
    file = tmp_path / f"{owner.split()[0]}.py"
    file.write_text(f"{ENDS[end]}\n{file.read_text()}")
    if "interpreter" in owner:
        algorithm = tmp_path / "algorithm.yaml"
        algorithm.write_text(f"algorithm:\n  python: {sys.executable}\n" + algorithm.read_text().partition("\n")[2])
    errors_of(ianvs.validate, path)


def test_a_metric_that_ends_the_process_is_told_before_anything_runs(tmp_path: Path) -> None:
    exam = "dataset: {name: digits}\nscenario: {name: CIL, rounds: 5}\nmetrics: [accuracy, {name: score, url: ./m.py}]"
    path = write_job(tmp_path, testenv=exam, engine="local")
    (tmp_path / "m.py").write_text("def score(y_true, y_pred):\n    raise SystemExit(2)\n")
    errors_of(ianvs.run, path)
    (tmp_path / "m.py").write_text("import os\ndef score(y_true, y_pred):\n    os._exit(2)\n")
    with pytest.raises(IanvsError, match="the process that prepares the exam ended: exit status 2"):
        ianvs.run(path)


@pytest.mark.parametrize(
    "before", ["import numpy.not_a_module", "import not_there_at_all", "undefined", "x = (", "class Mine_: ...\n_"]
)
def test_a_file_that_can_not_be_imported_is_told_alike_in_every_interpreter(before: str, tmp_path: Path) -> None:
    exam = "dataset: {name: digits}\nscenario: {name: CIL, rounds: 5}\nmetrics: [accuracy]"
    plugin = PLUGIN.replace("Mine", "Mien") if before.startswith("class") else f"{before}\n{PLUGIN}"
    path = write_job(tmp_path, testenv=exam, plugin=plugin, name="Mine", hyperparameters="", engine="local")

    def message() -> str:
        with pytest.raises(ConfigError) as caught:
            ianvs.validate(path)
        [error] = caught.value.problems
        return error.message.rstrip(".").replace(shown_path(sys.executable), "python")

    told = message()
    algorithm = tmp_path / "algorithm.yaml"
    algorithm.write_text(f"algorithm:\n  python: {sys.executable}\n" + algorithm.read_text().partition("\n")[2])
    assert message() == told.replace("plugin.py:1:5:", "plugin.py:1:")  # the column of a syntax error
