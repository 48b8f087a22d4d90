"""A plugin in an interpreter of its own, in one leaderboard with the same in ours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import yaml

import ianvs
from ianvs.base.errors import ConfigError, IanvsError
from ianvs.config.contracts import Interpreter
from ianvs.plugins.authors_files import imports_from
from ianvs.plugins.source import authors_sources
from ianvs.processes.interpreters.author_object import load_in
from tests.errors import located

PLUGIN = """
import os, sys
import numpy as np
assert "ianvs" not in sys.modules or {ours}

class Means:
    def __init__(self, shrinkage=0.0):
        self.shrinkage, self.sums, self.counts = shrinkage, {{}}, {{}}

    def train(self, train_data, folder):
        {train}
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
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for path in Path(numpy.__file__).parents[1].glob("numpy*"):
        (packages / path.name).symlink_to(path)
    return folder / "bin" / "python"


def _job(folder: Path, *, attack: str = "pass", train: str = "pass", both: bool = True) -> Path:
    algorithms = []
    for name in ("theirs", "ours") if both else ("theirs",):
        plugin = folder / f"{name}.py"
        plugin.write_text(PLUGIN.format(ours=name == "ours", attack=attack, train=train))
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


@pytest.mark.parametrize("init", [True, False])
def test_a_plugin_in_a_package_has_its_relative_imports(init: bool, tmp_path: Path) -> None:
    (tmp_path / "approach").mkdir()
    (tmp_path / "approach/base.py").write_text("class Base:\n    def load(self, path): ...\n")
    method = tmp_path / "approach/method.py"
    method.write_text("from .base import Base\nfrom .other import X\n\n\nclass Method(Base):\n    pass\n")
    (tmp_path / "approach/other.py").write_text("X = 1\n")
    if init:
        (tmp_path / "approach/__init__.py").write_text("from .method import Method\n")
    planned = {path: path.read_bytes() for path in authors_sources(str(method), "Method")}
    (tmp_path / "approach/other.py").unlink()  # what was planned is what runs
    with imports_from(planned):
        found = load_in(Interpreter(python=_interpreter(tmp_path / "venv")), str(method), "Method").target
    assert hasattr(found, "load")


@pytest.mark.slow
def test_both_have_the_same_score(tmp_path: Path) -> None:
    frame = ianvs.run(_job(tmp_path)).leaderboard_frame
    first, second = frame["accuracy"]
    assert len(frame) == 2
    assert first == second > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("times", "status"), [(1, "finished"), (9, "failed")])
def test_a_worker_that_is_killed_is_a_case_that_was_killed(tmp_path: Path, times: int, status: str) -> None:
    """It is tried once more, from the last round on."""
    train = f"""
        died = __import__("pathlib").Path({str(tmp_path / "died")!r})  # what lies in its own folder goes with the round
        if self.counts and (len(died.read_text()) if died.exists() else 0) < {times}:
            died.open("a").write("x")
            os.kill(os.getpid(), 9)
    """.strip()
    [result] = ianvs.run(_job(tmp_path, train=train, both=False))
    assert result.status == status
    assert (tmp_path / "died").read_text() == "x" * min(times, 2)
    if result.failure is not None:
        assert (result.failure.kind, result.failure.error) == ("killed", "SIGKILL")


@pytest.mark.slow
def test_what_it_runs_with_is_kept_and_counts(tmp_path: Path) -> None:
    file = _job(tmp_path, both=False)
    [result] = ianvs.run(file)
    assert f"numpy=={numpy.__version__}" in result.provenance["interpreter"]["packages"]
    [same] = ianvs.plan(file)
    assert same.state == "finished"
    (tmp_path / "venv").rename(tmp_path / "elsewhere")
    spec = (tmp_path / "theirs.yaml").read_text().replace("/venv/", "/elsewhere/")
    (tmp_path / "theirs.yaml").write_text(spec)
    [moved] = ianvs.plan(file)
    assert moved.case.id == same.case.id


def test_an_object_of_another_interpreter_is_called(tmp_path: Path) -> None:
    plugin = tmp_path / "adder.py"
    plugin.write_text(
        "import sys\n\nclass Adder:\n    def __init__(self, start):\n        self.start = start\n\n"
        "    def train(self, more, task):\n        return self.start + more + task\n\n"
        "    def predict(self):\n        return ['ianvs' in sys.modules, sys.prefix]\n"
    )
    python = _interpreter(tmp_path / "venv")
    loaded = load_in(Interpreter(str(python)), str(plugin), "Adder")
    adder = loaded.target(start=1)
    assert adder.train(2, task=3) == 6
    assert adder.predict() == [False, str(tmp_path / "venv")]
    with pytest.raises(TypeError, match="task"):
        adder.train(2)


def test_an_object_that_nobody_has_any_more_is_gone_there_too(tmp_path: Path) -> None:
    plugin = tmp_path / "counted.py"
    plugin.write_text(
        "class Counted:\n    there = 0\n\n    def __init__(self):\n        Counted.there += 1\n\n"
        "    def __del__(self):\n        Counted.there -= 1\n\n"
        "    def predict(self):\n        return Counted.there\n"
    )
    target = load_in(Interpreter(str(_interpreter(tmp_path / "venv"))), str(plugin), "Counted").target
    kept = target()
    for _ in range(5):
        last = target()
    assert last.predict() == 3, "the one before it goes when the next is made"
    del last
    target()
    assert kept.predict() == 2


def test_plugins_of_one_folder_are_told_of_by_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adapts9.py").write_text("def adapted(target):\n    return target\n")
    monkeypatch.syspath_prepend(tmp_path)
    where = Interpreter(str(_interpreter(tmp_path / "venv")), "adapts9")
    found = {}
    for place in ("one/first.py", "one/second.py", "other/first.py"):
        plugin = tmp_path / place
        plugin.parent.mkdir(exist_ok=True)
        text = f"import os\nclass Asked:\n    place = lambda self: [os.getpid(), {place!r}]\n"
        plugin.write_text(text)
        target = load_in(where, str(plugin), "Asked").target
        found[place] = target
    told = [target().place() for target in found.values()]  # the first after all were loaded
    assert [place for _, place in told] == list(found)
    first, second, other = (number for number, _ in told)
    assert first == second != other


def test_a_worker_that_is_killed_ends_who_asked(tmp_path: Path) -> None:
    plugin = tmp_path / "ends.py"
    plugin.write_text("import os\n\nclass Ends:\n    def train(self):\n        os.kill(os.getpid(), 9)\n")
    python = _interpreter(tmp_path / "venv")
    pid = os.fork()
    if pid == 0:
        load_in(Interpreter(str(python)), str(plugin), "Ends").target().train()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9


def _to_prepare(folder: Path, requirements: str, *, both: bool = False) -> Path:
    file = _job(folder, both=both)
    (folder / "requirements.txt").write_text(f"{requirements}\n")
    spec = yaml.safe_load((folder / "theirs.yaml").read_text())
    del spec["algorithm"]["python"]
    spec["algorithm"]["environment"] = {"requirements": "requirements.txt"}
    (folder / "theirs.yaml").write_text(yaml.safe_dump(spec))
    return file


@pytest.mark.slow
def test_an_old_numpy_stands_beside_ours(tmp_path: Path) -> None:
    """In one leaderboard, in an environment that `ianvs prepare` has made, which has no torch."""
    file = _to_prepare(tmp_path, "numpy==1.26.4", both=True)
    try:
        [(name, _, made)] = ianvs.prepare(file)
    except IanvsError as error:
        pytest.skip(f"NO ENVIRONMENT COULD BE MADE, which needs an index of packages: {error}")
    assert (name, made) == ("theirs", True)
    assert [made for _, _, made in ianvs.prepare(file)] == [False]
    results = ianvs.run(file)
    first, second = results.leaderboard_frame["accuracy"]
    assert first == second > 0.8
    [packages] = [one.provenance["interpreter"]["packages"] for one in results if one.case.algorithm == "theirs"]
    assert "numpy==1.26.4" in packages
    assert not any(one.startswith("torch==") for one in packages)


def test_an_interpreter_without_numpy_is_told(tmp_path: Path) -> None:
    job = _job(tmp_path, both=False)
    for path in (tmp_path / "venv").glob("lib/python*/site-packages/numpy*"):
        path.unlink()
    with pytest.raises(ConfigError, match=r"theirs\.yaml:.*numpy") as caught:
        ianvs.validate(job)
    assert "invalid-interpreter" in [code for code, _ in located(caught.value.problems)]


def test_what_is_not_prepared_is_told(tmp_path: Path) -> None:
    file = _to_prepare(tmp_path, "numpy")
    with pytest.raises((IanvsError, ConfigError), match="ianvs prepare"):
        ianvs.validate(file)
