"""What a case costs: measured once, told under one name."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import ianvs
from ianvs.exam.metrics.system import SYSTEM
from ianvs.processes.engines import Task, Workload
from ianvs.processes.engines.inline import InlineEngine
from ianvs.running.session.measure import compiled_code, compiled_graphs, spending
from tests.errors import errors_of
from tests.jobs import write_job

BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"
TESTENV = """
dataset: {{name: digits}}
scenario: {{name: class-incremental, rounds: 5}}
metrics: [{metrics}]
"""


@pytest.mark.slow
def test_a_csv_has_one_column_for_each_quantity(tmp_path: Path) -> None:
    asked = ", ".join(["accuracy", *(metric.name for metric in SYSTEM)])
    results = ianvs.run(write_job(tmp_path, testenv=TESTENV.format(metrics=asked)))
    with (tmp_path / "ws" / results.name / "rank" / "all_rank.csv").open() as file:
        first, *_ = list(csv.DictReader(file))
    titles = [title.casefold() for title in first]
    assert len(set(titles)) == len(titles)
    for metric in SYSTEM:
        assert titles.count(metric.name.casefold()) == 1
    sizes = [case.rounds[-1].model_bytes / 1e6 for case in results]
    assert float(first["Model_size_mb"]) == pytest.approx(sum(sizes[:2]) / 2)
    assert results.cases["train_seconds"].tolist() == [sum(r.train_seconds for r in case.rounds) for case in results]


def test_two_names_of_one_metric_are_refused_with_both_names(tmp_path: Path) -> None:
    job = write_job(tmp_path, testenv=TESTENV.format(metrics="accuracy, BWT, GEM_BWT, acc"))
    assert errors_of(ianvs.validate, job) == [
        ("duplicate-column", f"{tmp_path}/testenv.yaml:4:28"),
        ("duplicate-column", f"{tmp_path}/testenv.yaml:4:37"),
    ]


def test_one_metric_of_two_scores_is_two_quantities(tmp_path: Path) -> None:
    job = write_job(tmp_path, testenv=TESTENV.format(metrics="accuracy, f1, BWT, {name: GEM_BWT, of: f1}"))
    assert ianvs.validate(job)


def test_processor_time_counts_threads_and_children_and_no_waiting() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    with spending() as waited:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)"], check=True)
    with spending() as worked:
        subprocess.run([sys.executable, "-c", code, BURN.format(seconds=0.5)], check=True)
    assert waited[0].seconds > 0.5 > waited[0].cpu_seconds
    assert worked[0].cpu_seconds > 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processor_time_counts_children_that_still_run() -> None:
    code = BURN.format(seconds=0.5) + "print(flush=True)\nimport time; time.sleep(3600)"
    child = None
    try:
        with spending() as watch:
            child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
        assert watch[0].cpu_seconds > 0.4
    finally:
        if child is not None:
            child.kill()
            child.communicate()


def test_the_processor_time_of_a_round_is_that_of_train_and_of_predict(tmp_path: Path) -> None:
    plugin = """
import time

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

class Burner:
    def train(self, train_data, valid_data=None):
        burn(0.1)
    def predict(self, data):
        burn(0.02)
        return [0] * len(data)
    def save(self, path):
        path.write_text("")
    def load(self, path): ...
"""
    job = write_job(tmp_path, plugin=plugin, name="Burner", hyperparameters="", job="seeds: [0]")
    [found] = ianvs.run(job, engine="inline")
    for round_ in found.rounds[1:]:
        assert 0.1 <= round_.train_cpu_seconds < 0.1 + 0.05 + round_.eval_cpu_seconds
        assert round_.eval_cpu_seconds >= 0.02  # all test sets are asked as one
    assert found.rounds[0].train_cpu_seconds is None
    assert found.metrics.keys() == {"accuracy", "BWT"}


def test_what_an_earlier_case_has_compiled_in_this_process_is_not_told_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = {"inductor": {"fxgraph_cache_miss": 7}}
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))  # type: ignore[arg-type]
    job = write_job(tmp_path, hyperparameters="", job="seeds: [0]")
    [found] = ianvs.run(job)
    assert "compiled graphs" not in found.remark
    before = compiled_graphs()
    counters["inductor"] = {"fxgraph_cache_miss": 8, "fxgraph_cache_hit": 3}
    assert compiled_code(before).startswith("3 of 4 ")


DAEMON = """
import os, time

class Daemon:
    def train(self, train_data, valid_data=None):
        reading, writing = os.pipe()
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
                end = time.process_time() + 0.4
                while time.process_time() < end:
                    pass
                os.write(writing, b"done")
            os._exit(0)
        os.wait()
        os.read(reading, 4)
        time.sleep(0.1)
    def predict(self, data):
        return [0] * len(data)
    def save(self, path):
        path.write_text("")
    def load(self, path): ...
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells")
@pytest.mark.parametrize("engine", ["{name: local}", "{name: local, start: spawn}"])
def test_processor_time_counts_what_outlived_its_parent(tmp_path: Path, engine: str) -> None:
    testenv = TESTENV.format(metrics="accuracy").replace("rounds: 5", "rounds: 2")
    about = f"seeds: [0]\nengine: {engine}"
    [found] = ianvs.run(
        write_job(tmp_path, plugin=DAEMON, name="Daemon", hyperparameters="", testenv=testenv, job=about)
    )
    assert found.status == "finished"
    assert all(0.3 < round_.train_cpu_seconds < 0.7 for round_ in found.rounds[1:])  # /proc counts hundredths


def test_the_inline_engine_imports_what_tasks_need_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("loaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    engine = InlineEngine(Workload(preload=("slow_to_import", "a_module_that_is_not_there")))
    assert "slow_to_import" not in sys.modules  # a job with nothing to do imports nothing
    engine.submit(Task("one", "tests.contract.running.session.test_costs:imported", "slow_to_import"))
    results = [event.payload for event in engine.events(0) if event.kind == "result"]
    assert results == [True]


def imported(name: str, report: object) -> bool:
    return name in sys.modules


SLOW_TO_SAVE = """
import time

class Slow:
    def __init__(self):
        time.sleep(0.2)
    def train(self, train_data, valid_data=None):
        time.sleep(0.1)
    def predict(self, data):
        time.sleep(0.05)
        return [0] * len(data)
    def save(self, path):
        time.sleep(0.3)
        path.write_text("")
    def load(self, path): ...
"""


def test_the_parts_of_a_cases_time_add_up_to_all_of_it(tmp_path: Path) -> None:
    names = ("build_seconds", "train_seconds", "save_seconds", "eval_seconds", "measure_seconds", "case_seconds")
    testenv = TESTENV.format(metrics=f"accuracy, {', '.join(names)}").replace("rounds: 5", "rounds: 2")
    job = write_job(tmp_path, plugin=SLOW_TO_SAVE, name="Slow", testenv=testenv, hyperparameters="", job="seeds: [0]")
    began = time.monotonic()
    [found] = ianvs.run(job, engine="inline")
    took = time.monotonic() - began
    build, train, save, answer, measure, whole = (found.metrics[name] for name in names)
    assert build >= 0.2 and train >= 0.2 and save >= 0.9 and answer >= 0.15
    assert train < save  # as whoever wrote it expects: 0.1 s a round, and 0.3 s
    assert build + train + save + answer + measure == pytest.approx(whole)
    assert whole < took
    for name in ("build", "save", "measure"):
        spent = [getattr(one, f"{name}_cpu_seconds") for one in found.rounds]
        assert all(value is not None and 0 <= value < took for value in spent)
