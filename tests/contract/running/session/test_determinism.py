"""The same case gives the same bits, however it is run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.jobs import split_rounds

ROOT = Path(__file__).parents[4]

JOB = """
benchmarkingjob:
  name: bits
  workspace: {folder}/ws
  testenv: {root}/testenv/digits_class_incremental/testenv.yaml
  seeds: [{seeds}]
  threads: {threads}
  test_object:
    type: algorithms
    algorithms:
      - {{name: replay, url: ./replay.yaml}}
      - {{name: ewc, url: ./ewc.yaml}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: {name}
      url: {root}/testalgorithms/{folder}/basemodel.py
      hyperparameters:
        - epochs: {{values: [1]}}
"""


def job(folder: Path, threads: int = 1, seeds: str = "0") -> Path:
    folder.mkdir()
    (folder / "job.yaml").write_text(JOB.format(folder=folder, root=ROOT, threads=threads, seeds=seeds))
    for name, file in (("Replay", "replay"), ("EWC", "ewc")):
        (folder / f"{file}.yaml").write_text(ALGORITHM.format(name=name, folder=file, root=ROOT))
    return folder / "job.yaml"


def models(workspace: Path) -> dict[str, bytes]:
    """Weights and everything else that the methods saved after the last round, by case."""
    return {path.parents[3].name: path.read_bytes() for path in workspace.glob("cases/*/rounds/5/model/model.pt")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job that was run."""
    folder = tmp_path_factory.mktemp("undisturbed") / "job"
    ianvs.run(job(folder), engine="inline")
    return folder


@pytest.mark.slow
def test_weights_are_equal_bit_for_bit_whatever_the_jobs_and_the_engine(undisturbed: Path, tmp_path: Path) -> None:
    first = models(undisturbed / "ws")
    assert len(first) == 2
    for jobs in (1, 2):
        ianvs.run(job(tmp_path / str(jobs)), engine="local", jobs=jobs)
        assert models(tmp_path / str(jobs) / "ws") == first


def test_a_resumed_case_has_the_weights_of_an_undisturbed_one(undisturbed: Path, tmp_path: Path) -> None:
    cut = job(tmp_path / "cut")
    shutil.copytree(undisturbed / "ws", tmp_path / "cut" / "ws")
    split_rounds(tmp_path / "cut" / "ws")
    for planned in ianvs.plan(cut):
        folder = tmp_path / "cut" / "ws" / "cases" / planned.case.id
        (folder / "rounds" / "5" / "round.json").write_text("")
        # The model of round 4 went when round 5 was complete: the case can only start over, and does.
    assert ianvs.run(cut, engine="inline").ran == 2
    assert models(tmp_path / "cut" / "ws") == models(undisturbed / "ws")


def test_the_number_of_threads_is_part_of_a_cases_identity(tmp_path: Path) -> None:
    one, two = ianvs.plan(job(tmp_path / "1")), ianvs.plan(job(tmp_path / "2", threads=2))
    assert not {case.id for case, _ in one.cases()} & {case.id for case, _ in two.cases()}


@pytest.mark.gpu
def test_one_card_repeats_itself(tmp_path: Path) -> None:
    runs = [ianvs.run(job(tmp_path / str(number), seeds="0, 1"), device="cuda") for number in range(2)]
    values = [[json.dumps(found.matrices["accuracy"].values.tolist()) for found in run] for run in runs]
    assert values[0] == values[1]


@pytest.mark.gpu
@pytest.mark.parametrize("sharing", ["4", "auto"])
def test_cases_that_share_a_card_get_what_they_get_alone(tmp_path: Path, sharing: str) -> None:
    alone, shared = (job(tmp_path / name, seeds="0, 1") for name in ("alone", "shared"))
    shared.write_text(edited(shared.read_text(), "  seeds:", f"  cases_per_gpu: {sharing}\n  jobs: 4\n  seeds:"))
    for file in (alone, shared):
        ianvs.run(file, device="cuda")
    found = models(tmp_path / "alone" / "ws")
    assert len(found) == 4 and models(tmp_path / "shared" / "ws") == found
