"""What Slurm's engine costs, on the cluster of `tests/nightly/clusters/slurm/cluster up`:

tests/nightly/clusters/slurm/cluster run .venv/bin/python benchmarks/slurm.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from ianvs.processes.engines import Task, Workload
from ianvs.processes.engines.slurm.slurm_engine import SlurmEngine

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.jobs import write_job

TASKS, PILOTS, CASES = 300, 4, 10_000


def empty_tasks(folder: Path) -> float:
    """Empty tasks in a second, from the first that starts."""
    engine = SlurmEngine(Workload(jobs=PILOTS, workspace=folder))
    submitted = ended = 0
    began = 0.0
    while ended < TASKS:
        while submitted < min(TASKS, ended + PILOTS):
            engine.submit(Task(str(submitted), "tests.contract.tasks:leave", 0))
            submitted += 1
        for event in engine.events(1):
            began = began or time.monotonic()
            ended += event.kind == "ended"
    rate = TASKS / (time.monotonic() - began)
    engine.close()
    return rate


def queued_cases(folder: Path) -> tuple[int, float, str]:
    """Bytes of the supervisor with all that it started, seconds of `ianvs status`, and what that says."""
    each = list(range(round(CASES**0.5)))
    said = f"seeds: {each}\nengine: {{name: slurm, pilots: {PILOTS}, extra: [--hold]}}"
    path = write_job(folder, hyperparameters=f"- bias: {{values: {each}}}", job=said)
    run = subprocess.Popen([sys.executable, "-m", "ianvs", "-f", path], cwd=folder)
    while not (folder / "ws" / "test" / "queue.json").exists():
        time.sleep(0.5)
    supervisor = psutil.Process(run.pid)
    size = sum(one.memory_full_info().pss for one in (supervisor, *supervisor.children(recursive=True)))
    began = time.monotonic()
    status = subprocess.run(
        [sys.executable, "-m", "ianvs", "status", "-f", path], capture_output=True, text=True, check=True
    )
    seconds = time.monotonic() - began
    run.terminate()
    time.sleep(1)
    run.terminate()
    run.wait()
    return size, seconds, status.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        print(f"{TASKS} empty tasks in {PILOTS} pilots: {empty_tasks(Path(place)):.0f} in a second")
        size, seconds, status = queued_cases(Path(place, "queued"))
        print(f"{CASES} queued cases: supervisor {size / 1e6:.0f} MB, `ianvs status` {seconds:.1f} s")
        print(status)


if __name__ == "__main__":
    main()
