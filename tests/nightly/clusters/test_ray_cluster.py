"""The Ray engine on several nodes, which here are on one machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.processes.engines import Event, Workload
from ianvs.processes.engines.ray.ray_engine import RayEngine
from tests.contract.engines.test_engines import task, until_ended
from tests.contract.running.scheduler.test_resources import Told, mixed_job
from tests.edits import edited
from tests.errors import located, raised
from tests.jobs import MAJORITY, write_job
from tests.waiting import wait_for


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that runs no tasks, and two nodes of one CPU each."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    # Ray takes 15 s to give up a node that is silent. On a busy machine a living one is silent for seconds.
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        add_node(made, num_cpus=1)
    yield made
    ray.shutdown()  # of a test that failed: no node is removed that this process is connected to
    made.shutdown()


def add_node(cluster: Any, **resources: int) -> None:
    """A node with a folder of its own for code: nodes of one machine remove what another has unpacked there."""
    cluster.add_node(runtime_env_dir_name=f"code_of_node_{len(cluster.worker_nodes)}", **resources)


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(IanvsError, match=r"ray://127\.0\.0\.1:9") as caught:
        RayEngine(Workload(), address="ray://127.0.0.1:9")
    assert located(raised(caught.value)) == [("unreachable-server", "")]


def node_of(pid: int, cluster: Any) -> Any:
    """The node of `cluster` that the process belongs to."""
    above = {process.pid for process in psutil.Process(pid).parents()}
    return next(node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid in above)


@pytest.mark.slow
def test_a_lost_node_costs_its_task_and_no_other(cluster: Any, tmp_path: Path) -> None:
    with closing(RayEngine(Workload(), address=cluster.address)) as engine:
        assert engine.slots == 2
        for key in "ab":
            engine.submit(task("until_told", tmp_path / key, key=key, log=tmp_path / f"{key}.txt"))
        pids: dict[str, int] = {}
        wait_for(
            lambda: len(pids.update({e.key: e.payload for e in engine.events(0.1) if e.kind == "started"}) or pids) == 2
        )
        wait_for(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
        lost = node_of(pids["a"], cluster)
        assert lost is not node_of(pids["b"], cluster)

        cluster.remove_node(lost, allow_graceful=False)

        lost_events = until_ended(engine)
        assert [(event.key, event.kind) for event in lost_events] == [("a", "lost"), ("a", "ended")]
        assert lost_events[-1].payload == -signal.SIGKILL
        assert "lost" in (tmp_path / "a.txt").read_text()
        wait_for(lambda: not psutil.pid_exists(pids["a"]))
        engine.cancel("b")
        kept = until_ended(engine)
        assert [(event.key, event.kind, event.payload) for event in kept] == [
            ("b", "result", "stopped"),
            ("b", "ended", 0),
        ]
        engine.submit(task("succeed", key="a"))
        assert until_ended(engine)[-1] == Event("a", "ended", 0)


@pytest.mark.slow
def test_those_that_need_no_card_do_not_wait_for_those_that_do(cluster: Any, tmp_path: Path) -> None:
    add_node(cluster, num_cpus=1, num_gpus=1)
    slow = edited(MAJORITY, "        for label in", "        import time; time.sleep(0.5)\n        for label in")
    engine = f"jobs: 2\nengine: {{name: ray, address: '{cluster.address}', shared: true}}"
    told = Told()
    results = ianvs.run(mixed_job(tmp_path, "{gpus: 1}", engine, plugin=slow), listener=told)
    assert [found.status for found in results] == ["finished"] * 4
    assert any(said.startswith("second_majority: ") for said in told.waited), "there is one card for two"
    assert any(len(beside) > 2 for beside in told.beside), "two on cores beside one on the card"


# --- cases ------------------------------------------------------------------------------------------------------------

SPEAKING = "from helper import SAID\n" + edited(
    MAJORITY, "        for label in", "        print(SAID, __file__)\n        for label in"
)


def job(folder: Path, **changes: str) -> Path:
    """A job whose plugin says where it was loaded from, and has a module beside it."""
    path = write_job(folder, engine="local", plugin=changes.pop("plugin", SPEAKING), **changes)
    (folder / "helper.py").write_text("SAID = 'loaded from'\n")
    return path


AWAY = "jobs: 2\nengine: {name: ray, shared: false, build_exams: there}"


def matrices(results: ianvs.Results) -> list[Any]:
    return [found.matrices["accuracy"].values.tolist() for found in results]


def leftovers(workspace: Path) -> list[Path]:
    return [path for path in workspace.rglob(".*") if path.name not in (".lock", ".locks", ".names")]


@pytest.mark.slow
def test_storage_that_is_not_shared_changes_no_result(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    here = ianvs.run(job(tmp_path / "here"), engine="inline")
    away = ianvs.run(job(tmp_path / "away", job=f"seeds: [0, 1]\n{AWAY}"))
    assert [found.status for found in away] == ["finished"] * 4
    assert [found.case.id for found in away] == [found.case.id for found in here]
    assert matrices(away) == matrices(here)
    logs = [log.read_text() for log in (tmp_path / "away" / "ws").glob("cases/*/log.txt")]
    assert len(logs) == 4
    assert not any(f"loaded from {tmp_path}" in log for log in logs), "the plugin was loaded from where Ray put it"
    assert not list((tmp_path / "away" / "ws" / "cache").glob("digits*")), "a node decodes into a view of its own"
    assert not leftovers(tmp_path / "away" / "ws")
    assert len(list((tmp_path / "away" / "ws" / "cases" / ".names").iterdir())) == 4
    assert ianvs.run(tmp_path / "away" / "benchmarkingjob.yaml").ran == 0


@pytest.mark.slow
def test_a_worker_finds_out_that_it_does_not_see_the_workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(RayEngine, "_marker", lambda self, workspace: tmp_path / "elsewhere")
    path = job(tmp_path, hyperparameters="- bias: {values: [0]}", job="seeds: [0]\nengine: ray")
    flag = tmp_path / "fails"
    plugin = edited(
        SPEAKING,
        "        print(SAID",
        f"        if round == 3 and open({str(flag)!r}).read(): os._exit(3)\n        print(SAID",
    )
    (tmp_path / "plugin.py").write_text("import os\n" + plugin)

    flag.write_text("yes")
    [cut_off] = ianvs.run(path)
    assert cut_off.status == "failed"
    assert [round_.index for round_ in cut_off.rounds] == [0, 1, 2]
    log = cut_off.directory / "log.txt"
    assert log.read_text().count("loaded from") == 2

    flag.write_text("")
    [resumed] = ianvs.run(path)
    assert resumed.status == "finished"
    assert log.read_text().count("loaded from") == 5, "the finished rounds travelled there, and were not trained again"
