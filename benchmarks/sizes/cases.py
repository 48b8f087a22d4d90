"""Many cases: 25 000 of a trivial plugin, 5 000 rows, a million cells; and what a limit of memory means.

The cases are written as a run leaves them, from one that ran: to run them all would take hours. A few do run, and are
counted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ianvs as api
from benchmarks.sizes.measuring import Row, disk, ianvs
from ianvs.base.digests import checksummed_text, file_state
from ianvs.base.types import TestCase
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.store import CaseStore
from ianvs.store.checksummed_json import read_checksummed

PLUGIN = """
class Nothing:
    def __init__(self, a=0, b=0): ...
    def train(self, data): ...
    def predict(self, data): return [0] * len(data)
    def save(self, path): open(path, "w").close()
    def load(self, path): ...
"""
MAPS = """
import mmap

class Maps:
    def __init__(self, allocates=False): self.allocates = allocates
    def train(self, data):
        import time
        if self.allocates:
            kept = bytearray({size})
        else:
            with open({path!r}, "rb") as file:
                kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        sum(kept[at] for at in range(0, len(kept), 4096))
        time.sleep(1)
    def predict(self, data): return [0] * len(data)
    def save(self, path): ...
    def load(self, path): ...
"""
JOB = """
benchmarkingjob:
  name: many
  workspace: {folder}/workspace
  testenv: ./testenv.yaml
  seeds: {seeds}
  test_object: {{type: algorithms, algorithms: [{{name: nothing, url: ./algorithm.yaml}}]}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
  {more}
"""
TESTENV = """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 5}
  metrics: [accuracy]
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: {name}
      url: ./plugin.py
      hyperparameters: {values}
"""
SEEDS = [0, 1, 2, 3, 4]
FILES = 10  # of a finished case, at most


def rows(folder: Path, share: float) -> Iterator[Row]:
    folder.mkdir(exist_ok=True)
    ran = round(20 * share) or 1
    job = write_grid(folder / "ran", ran, SEEDS)
    spent = ianvs("run", job, folder=folder / "ran")
    files = count(folder / "ran" / "workspace" / "cases")
    figures = {"files a case": files / (5 * ran), "CPU s a case": spent.seconds / (5 * ran)}
    yield Row(f"{5 * ran} cases that run", figures, {"files a case": FILES})

    places = round(5000 * share)
    job = write_grid(folder / "many", places, SEEDS)
    cases = fill(job)
    store = folder / "many" / "workspace" / "cases"
    figures = {"files a case": count(store) / cases, "MB a case": disk(store) / cases / 1e6}
    yield Row(f"{cases} finished cases", figures, {"files a case": FILES, "MB a case": 0.1})
    one_seed = write_grid(folder / "many", places, SEEDS[:1])
    spent = ianvs("report", one_seed, folder=folder / "many")
    memory, seconds = {"MB": 500.0}, {"CPU s": max(20 * share, 5)}
    yield Row(
        f"report of {places} rows",
        {"CPU s": spent.seconds, "MB": spent.process / 1e6},
        memory | seconds,
    )
    job = write_grid(folder / "many", places, SEEDS)
    spent = ianvs("report", job, folder=folder / "many")
    figures = {"CPU s": spent.seconds, "MB": spent.process / 1e6}
    yield Row(f"the same with five seeds, {cases} cases", figures, memory | seconds)
    job = write_grid(folder / "many", places, SEEDS, 40)
    for stored in (cases, 0):
        spent = ianvs("status", job, folder=folder / "many")
        right = f"{40 * cases} cases: {f'{stored} finished, ' if stored else ''}{40 * cases - stored} new" in spent.said
        figures = {"CPU s": spent.seconds, "MB": spent.process / 1e6, "told wrongly": not right}
        most = {"CPU s": 10.0 if stored else 3.0, "MB": 300.0, "told wrongly": 0}
        yield Row(f"status of {40 * cases} cells, {stored} of them stored", figures, most)
        shutil.rmtree(store)
        store.mkdir()
    yield from limits(folder / "limits", max(900_000_000, round(3e9 * share)))


def limits(folder: Path, size: int) -> Iterator[Row]:
    """memory_mb: a third of what is mapped, or allocated."""
    folder.mkdir()
    cache = folder / "cache"
    with cache.open("wb") as file:
        file.truncate(size)
    more = f"limits: {{memory_mb: {max(600, size // 3_000_000)}}}"
    for allocates, wanted in ((False, "finished"), (True, "failed")):
        values = f"[{{allocates: {{values: [{str(allocates).lower()}]}}}}]"
        job = write(folder, MAPS.format(size=size, path=str(cache)), "Maps", values, [0], more)
        [found] = api.run(job)
        said = "" if found.failure is None else found.failure.message
        kept = found.status == wanted and (not allocates or "more than limits.memory_mb" in said)
        what = "allocates" if allocates else "maps"
        yield Row(
            f"a learner that {what} {size / 1e6:.0f} MB, {more}", {"treated wrongly": not kept}, {"treated wrongly": 0}
        )


def write_grid(folder: Path, places: int, seeds: list[int], more: int = 1) -> Path:
    """A job of `places` x `more` rows."""
    values = f"[{{a: {{values: {list(range(places))}}}}}, {{b: {{values: {list(range(more))}}}}}]"
    return write(folder, PLUGIN, "Nothing", values, seeds)


def write(folder: Path, plugin: str, name: str, values: str, seeds: list[int], more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "plugin.py").write_text(plugin)
    (folder / "testenv.yaml").write_text(TESTENV)
    (folder / "algorithm.yaml").write_text(ALGORITHM.format(name=name, values=values))
    (folder / "job.yaml").write_text(JOB.format(folder=folder, seeds=seeds, more=more))
    return folder / "job.yaml"


def fill(job: Path) -> int:
    """Store every case of the job as finished, with scores drawn for each; how many there are."""
    first = next(iter(api.run(job, limit=1, jobs=1)))
    plan = api.plan(job)
    dice = np.random.default_rng(0)
    count_ = 0
    for case, algorithm in plan.cases():
        count_ += 1
        if case.id != first.case.id:
            write_like(plan.store, first.case.id, case, algorithm, dice)
    return count_


def write_like(
    store: CaseStore, origin: str, case: TestCase, algorithm: PlannedAlgorithm, dice: np.random.Generator
) -> None:
    """A finished case with the rounds of another one, and scores drawn at random."""
    folder = store.folder(case.id)
    shutil.copytree(store.folder(origin), folder)
    with store.lock(case.id):
        pass
    (store.root / ".names" / case.id).write_text(case.id)
    scores = dict(store.scores(origin))
    for key, score in scores.items():
        values = np.array(score["values"])
        scores[key] = {**score, "values": np.clip(values + dice.normal(0, 0.05, values.shape), 0, 1).tolist()}
    rounds = read_checksummed(folder / "rounds.json", f"{origin}/rounds.json")
    assert rounds is not None
    contents = {
        "case.json": {"case": vars(case), "identity": algorithm.identity_of(case)},
        "rounds.json": {**rounds, "files": {"predictions.zip": file_state(folder / "predictions.zip")}},
        "scores.json": {"scores": scores, "rungs": {}},
    }
    for name, content in contents.items():
        (folder / name).write_text(checksummed_text(content, f"{case.id}/{name}"))
    result = store.finished_record(case.id, store.facts(origin))
    (folder / "result.json").write_text(checksummed_text(result, f"{case.id}/result.json"))


def count(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))
