"""Cases on a Slurm of two nodes (tests/nightly/clusters/slurm/cluster), whose parts are killed one after another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import ianvs
from ianvs.base.errors import ConfigError, IanvsError
from ianvs.processes.engines import Event, Task, Workload
from ianvs.processes.engines.slurm import slurm_engine
from ianvs.processes.engines.slurm.slurm_engine import SlurmEngine
from tests.contract.engines.test_engines import task, until_ended
from tests.contract.running.scheduler.test_resources import Told, mixed_job
from tests.edits import edited
from tests.errors import located, raised
from tests.jobs import MAJORITY, write_job
from tests.nightly.clusters.slurm.there import need_slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.slurm
ASKED = Path("/tmp/ianvs-slurm/asked")  # of the cluster's script: ids of jobs whose slurmstepd it is to kill

# A round takes a while, and its end is told in the log, so that it is seen if one is trained again.
SLOW = edited(
    MAJORITY,
    "        for label in",
    "        import time; time.sleep(0.2); print('trained', round, flush=True)\n        for label in",
)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """A Slurm, in whose queue a test leaves nothing."""
    need_slurm()
    yield
    wait_for(lambda: not queue())


def queue(*options: str) -> list[str]:
    """Ids of this user's jobs."""
    asked = ["squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i", *options]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def job(folder: Path, engine: str, seeds: int = 24) -> Path:
    said = f"seeds: {list(range(seeds))}\njobs: 4\nengine: {engine}"
    return write_job(folder, engine="local", plugin=SLOW, hyperparameters="- bias: {values: [0]}", job=said)


def finished(folder: Path) -> int:
    return len(list((folder / "ws" / "cases").glob("*/result.json")))


def started(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "ianvs", "-f", str(path)], stdout=-3, cwd=path.parent)


def pilots(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any("slurm.pilot:main" in word for word in words) and any(str(folder) in word for word in words):
            found.append(process)
    return found


def trained(folder: Path) -> Counter[tuple[str, str]]:
    """How often each round of each case was."""
    return Counter(
        (log.parent.name, line)
        for log in (folder / "ws" / "cases").glob("*/log.txt")
        for line in log.read_text().splitlines()
        if line.startswith("trained")
    )


def scores(results: ianvs.Results) -> dict[str, object]:
    return {found.case.id: found.matrices["accuracy"].values.tolist() for found in results}


def same_as_local(folder: Path, path: Path, rounds_lost: int) -> None:
    """The leaderboard is that of one machine, and no more than that many rounds were trained twice."""
    results = ianvs.run(path, engine="inline")
    assert results.ran == 0, "nothing was left to do"
    assert [found.status for found in results] == ["finished"] * len(results)
    assert scores(results) == scores(ianvs.run(job(folder / "local", "local", len(results))))
    counts = trained(folder)
    assert len(counts) == 5 * len(results)
    assert counts.total() - len(counts) <= rounds_lost
    assert not (folder / "ws" / ".slurm").exists()
    assert {one.name for one in folder.iterdir()} == {
        "algorithm.yaml",
        "benchmarkingjob.yaml",
        "local",
        "plugin.py",
    } | {*("testenv.yaml", "ws", *(["__pycache__"] if (folder / "__pycache__").exists() else []))}


def test_whatever_is_killed_the_leaderboard_is_the_same(tmp_path: Path) -> None:
    path = job(tmp_path, "{name: slurm, pilots: 4, signal_delay_s: 10, time: 5}")

    def after(count: int, act: Callable[[], None]) -> None:
        wait_for(lambda: finished(tmp_path) >= count and bool(queue("--states=RUNNING")) and bool(pilots(tmp_path)))
        act()

    first = started(path)
    after(2, lambda: pilots(tmp_path)[0].kill())
    after(5, lambda: subprocess.run(["scancel", queue("--states=RUNNING")[0]], check=True) and None)
    after(8, lambda: (ASKED / numbers()[0]).touch())
    after(11, first.kill)
    first.wait()

    assert started(path).wait(240) == 0

    same_as_local(tmp_path, path, rounds_lost=1 + 1 + 1)  # of the pilot, and what slurmstepd took along


def numbers() -> list[str]:
    """Of running jobs, what slurmstepd calls them."""
    return [line for line in queue("--states=RUNNING", "--format=%A") if line]


def test_a_time_limit_that_is_too_short_ends_rounds_cleanly(tmp_path: Path) -> None:
    path = job(tmp_path, "{name: slurm, partition: short, pilots: 2, time: 1, signal_delay_s: 50}", seeds=12)
    (tmp_path / "plugin.py").write_text(SLOW.replace("sleep(0.2)", "sleep(1.5)"))
    assert started(path).wait(400) == 0
    plugin = (tmp_path / "plugin.py").read_text()
    results = ianvs.run(path, engine="inline")
    assert (results.ran, {found.status for found in results}) == (0, {"finished"})
    assert max(trained(tmp_path).values()) == 1, plugin
    assert not (tmp_path / "ws" / ".slurm").exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("partition: nowhere", "nowhere"),
        ("partition: short, time: 2-0", "[Tt]ime limit"),
        ("partition: theirs, account: art", "Invalid account"),
        ("gpus: 7", "node configuration"),
    ],
)
def test_what_slurm_refuses_is_told_in_its_words(tmp_path: Path, option: str, words: str) -> None:
    path = job(tmp_path, f"{{name: slurm, {option}}}")
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError, match=words) as caught:
            command(path)
        assert [code for code, _ in located(caught.value.problems)] == ["invalid-engine"]
    assert not queue("--states=all", "--name=ianvs")


def test_validate_takes_no_job(tmp_path: Path) -> None:
    before = queue("--states=all")
    ianvs.validate(job(tmp_path, "slurm"))
    assert set(queue("--states=all")) <= set(before)


def test_why_a_task_waits_is_said_in_slurms_words(tmp_path: Path) -> None:
    engine = SlurmEngine(Workload(jobs=2, workspace=tmp_path), extra=["--exclusive"], gpus=1)  # one node has a card
    for key in "ab":
        engine.submit(task("until_told", tmp_path / key, key=key))
    found: list[Event] = []
    wait_for(lambda: found.extend(engine.events(0.2)) or any(one.kind == "queued" for one in found))
    waits = next(event for event in found if event.kind == "queued")
    assert waits.payload == "Resources"
    engine.cancel(waits.key)
    other = "b" if waits.key == "a" else "a"
    wait_for((tmp_path / other).exists)
    engine.close()
    assert not (tmp_path / waits.key).exists()


def test_a_pilot_that_is_cancelled_ends_its_task_at_the_next_checkpoint(tmp_path: Path) -> None:
    engine = SlurmEngine(Workload(jobs=1, workspace=tmp_path))
    engine.submit(task("until_told", tmp_path / "file"))
    wait_for((tmp_path / "file").exists)
    subprocess.run(["scancel", *queue("--states=RUNNING")], check=True)
    found = until_ended(engine)
    kinds = [event.kind for event in found if event.kind != "queued"]
    assert (kinds[0], sorted(kinds[1:3]), kinds[3]) == ("started", ["lost", "result"], "ended")
    assert any("Slurm" in str(event.payload) for event in found)
    engine.submit(task("succeed", key="two"))
    assert until_ended(engine)[-1] == Event("two", "ended", 0)
    engine.close()


def test_those_that_need_no_card_do_not_wait_for_those_that_do(tmp_path: Path) -> None:
    path = mixed_job(tmp_path, "{gpus: 1, memory: 500MB}", "jobs: 2\nengine: {name: slurm, mem: 300M}", plugin=SLOW)
    told = Told()
    results = ianvs.run(path, listener=told)
    assert [found.status for found in results] == ["finished"] * 4
    assert {said.split(":")[0] for said in told.waited} == {"second_majority"}, "there is one card for two of them"
    assert any(len(beside) > 2 for beside in told.beside), "two on cores beside one on the card"


@pytest.mark.parametrize("setup", ["exit 3", "echo no such module >&2; exit 1"])
def test_pilots_that_do_not_start_are_told_with_what_they_printed(tmp_path: Path, setup: str) -> None:
    engine = SlurmEngine(Workload(jobs=3, workspace=tmp_path), setup=[setup])
    for key in "abc":
        engine.submit(task("succeed", key=key))
    with pytest.raises(IanvsError, match="no such module" if "echo" in setup else "") as caught:
        until_ended(engine, 3)
    assert located(raised(caught.value)) == [("invalid-engine", "")]
    engine.close()


def test_a_supervisor_that_nodes_do_not_reach_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_engine, "_CONNECT_TIMEOUT", 1.0)
    engine = SlurmEngine(Workload(jobs=3, workspace=tmp_path), host="192.0.2.1")
    for key in "abc":
        engine.submit(task("succeed", key=key))
    with pytest.raises(IanvsError, match=r"192\.0\.2\.1 ") as caught:
        until_ended(engine, 3)
    assert located(raised(caught.value)) == [("invalid-engine", "")]
    engine.close()


def test_an_orphan_ends_its_task_and_is_waited_for(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from ianvs.processes.engines.slurm.slurm_engine import SlurmEngine\n"
        "from ianvs.processes.engines import Task, Workload\n"
        f"engine = SlurmEngine(Workload(jobs=1, workspace=Path({str(tmp_path)!r})))\n"
        f"engine.submit(Task('one', 'tests.contract.tasks:begin_and_end', Path({str(tmp_path / 'file')!r})))\n"
        "time.sleep(600)"
    )
    killed = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(Path.cwd())})
    wait_for((tmp_path / "file").exists)
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    engine = SlurmEngine(Workload(jobs=1, workspace=tmp_path))
    engine.submit(Task("one", "tests.contract.tasks:succeed", None))
    found = until_ended(engine)
    assert found[0].kind == "queued"
    assert "killed" in found[0].payload
    assert (tmp_path / "file").read_text() == "begun ended", "it was not begun beside the orphan"
    engine.close()
    assert not (tmp_path / ".slurm").exists()


def test_many_empty_tasks(tmp_path: Path) -> None:
    engine = SlurmEngine(Workload(jobs=4, workspace=tmp_path))
    left, ended, began = list(range(300)), 0, 0.0
    for _ in range(4):
        engine.submit(task("leave", 0, key=str(left.pop())))
    while ended < 300:
        for event in engine.events(1):
            began = began or time.monotonic()
            if event.kind == "ended":
                ended += 1
                if left:
                    engine.submit(task("leave", 0, key=str(left.pop())))
    rate = 300 / (time.monotonic() - began)
    engine.close()
    assert rate > 10, "40 on an idle machine: a pilot costs its tasks next to nothing"
