"""A plugin in an interpreter of its own, in one leaderboard with the same in ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ianvs
from ianvs.base.errors import ConfigError, IanvsError
from ianvs.config.contracts import Surroundings
from ianvs.processes.interpreters.author_object import load_in

PLUGIN = """
import os, sys
import numpy as np
assert "ianvs" not in sys.modules or {ours}

class Means:
    def __init__(self, shrinkage=0.0):
        self.shrinkage, self.sums, self.counts = shrinkage, {{}}, {{}}

    def train(self, train_data):
        x, y = train_data.x, train_data.y
        for label in np.unique(y).tolist():
            rows = x[y == label].reshape(-1, x[0].size)
            self.sums[label] = self.sums.get(label, 0) + rows.sum(0, dtype=float)
            self.counts[label] = self.counts.get(label, 0) + len(rows)

    def predict(self, data):
        {attack}
        if not self.sums:
            return np.zeros(len(data), int)
        labels = sorted(self.sums)
        means = np.stack([self.sums[c] / (self.counts[c] + self.shrinkage) for c in labels])
        x = data.x.reshape(len(data), -1).astype(float)
        return np.array(labels)[((x[:, None] - means) ** 2).sum(2).argmin(1)]

    def save(self, path):
        np.savez(path, labels=[*self.sums], sums=[*self.sums.values()], counts=[*self.counts.values()])
        return str(path) + ".npz"

    def load(self, path):
        with np.load(path) as saved:
            self.sums = dict(zip(saved["labels"].tolist(), saved["sums"]))
            self.counts = dict(zip(saved["labels"].tolist(), saved["counts"]))
"""


def _interpreter(folder: Path) -> Path:
    """An environment of this Python that has numpy, and nothing else of ours: neither ianvs nor torch is told to it."""
    import numpy

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "numpy").symlink_to(Path(numpy.__file__).parent)
    libraries = Path(numpy.__file__).parents[1] / "numpy.libs"
    if libraries.is_dir():
        (packages / "numpy.libs").symlink_to(libraries)
    return folder / "bin" / "python"


def _job(folder: Path, *, attack: str = "pass", both: bool = True, more: str = "") -> Path:
    (folder / "theirs").mkdir()
    algorithms = []
    for name in ("theirs", "ours") if both else ("theirs",):
        plugin = folder / f"{name}.py"
        plugin.write_text(PLUGIN.format(ours=name == "ours", attack=attack))
        module = {"type": "basemodel", "name": "Means", "url": str(plugin)}
        spec = {"paradigm_type": "incrementallearning", "modules": [module]}
        if name == "theirs":
            spec["python"] = str(_interpreter(folder / "venv"))
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"algorithm": spec}))
        algorithms.append({"name": name, "url": f"{name}.yaml"})
    metrics = [{"name": "accuracy"}]
    exam = {"dataset": {"name": "digits"}, "scenario": {"name": "class-incremental", "rounds": 2}, "metrics": metrics}
    (folder / "testenv.yaml").write_text(yaml.safe_dump({"testenv": exam}))
    job = {
        "name": "interpreters",
        "workspace": str(folder / "workspace"),
        "testenv": "testenv.yaml",
        "seeds": [0],
        "jobs": 1,
        "test_object": {"type": "algorithms", "algorithms": algorithms},
        "rank": {"sort_by": [{"accuracy": "descend"}]},
    }
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump({"benchmarkingjob": job}))
    return file


@pytest.mark.slow
def test_both_have_the_same_score(tmp_path: Path) -> None:
    frame = ianvs.run(_job(tmp_path)).leaderboard_frame
    first, second = frame["accuracy"]
    assert len(frame) == 2
    assert first == second > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    ["open('/tmp/left-behind', 'w')", "os.fork()", "__import__('socket').socket()"],
    ids=["file", "fork", "net"],
)
def test_a_copy_is_shut_in(tmp_path: Path, attack: str) -> None:
    [result] = ianvs.run(_job(tmp_path, attack=attack, both=False))
    assert result.status == "failed"
    assert any(error in str(result.failure) for error in ("PermissionError", "Read-only file system"))
    assert not Path("/tmp/left-behind").exists()


def test_an_object_of_another_interpreter_is_called(tmp_path: Path) -> None:
    plugin = tmp_path / "adder.py"
    plugin.write_text(
        "import sys\n\nclass Adder:\n    def __init__(self, start):\n        self.start = start\n\n"
        "    def train(self, more, task):\n        return self.start + more + task\n\n"
        "    def predict(self):\n        return ['ianvs' in sys.modules, sys.prefix]\n"
    )
    python = _interpreter(tmp_path / "venv")
    loaded = load_in(Surroundings(str(python)), str(plugin), "Adder")
    adder = loaded.target(start=1)
    assert adder.train(2, task=3) == 6
    assert adder.predict() == [False, str(tmp_path / "venv")]
    with pytest.raises(TypeError, match="task"):
        adder.train(2)


def test_a_worker_that_is_killed_ends_who_asked(tmp_path: Path) -> None:
    plugin = tmp_path / "ends.py"
    plugin.write_text("import os\n\nclass Ends:\n    def train(self):\n        os.kill(os.getpid(), 9)\n")
    python = _interpreter(tmp_path / "venv")
    pid = os.fork()
    if pid == 0:
        load_in(Surroundings(str(python)), str(plugin), "Ends").target().train()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9


def test_what_is_not_prepared_is_told(tmp_path: Path) -> None:
    file = _job(tmp_path, both=False)
    (tmp_path / "requirements.txt").write_text("numpy\n")
    spec = yaml.safe_load((tmp_path / "theirs.yaml").read_text())
    del spec["algorithm"]["python"]
    spec["algorithm"]["environment"] = {"requirements": "requirements.txt"}
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump(spec))
    with pytest.raises((IanvsError, ConfigError), match="ianvs prepare"):
        ianvs.validate(file)
