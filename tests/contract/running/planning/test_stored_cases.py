"""The cases of a plan that are stored, found from the disk as the plan finds them one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ianvs
from ianvs import api
from ianvs.base.errors import IanvsError
from ianvs.cli import main
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.running.planning.plan import Plan
from ianvs.store import JobStore
from ianvs.store.identity_differences import identity_differences
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, write_job

WIDE = f"- bias: {{values: {list(range(40))}}}\n- fail_in_round: {{values: [null, 9]}}"


def names(plan: Plan) -> tuple[list[str], list[str]]:
    """Of the plan and of the disk: (what is stored, in order, with state)."""
    every = [f"{each.case.id} {each.state} {each.reason}" for each in plan if each.state != "new"]
    return every, [f"{each.case.id} {each.state} {each.reason}" for each in plan.stored() if each.state != "new"]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A grid of 160 cases, nine of which are stored, of all kinds."""
    path = write_job(tmp_path, hyperparameters=WIDE, job="seeds: [1, 0]\nengine: inline")
    ianvs.run(path, only="bias=3")
    ianvs.run(path, only="bias=0,seed=1")
    ianvs.run(path, settings=["bias=77"], limit=1)  # of the same algorithm, and not of this job
    failing = edited(
        MAJORITY, "        for label in", "        if self.bias == 5: raise ValueError\n        for label in"
    )
    (tmp_path / "plugin.py").write_text(failing)
    ianvs.run(path, only="bias=5,seed=0")
    ianvs.run(path, only="bias=3,seed=0")
    return path


@pytest.mark.slow
def test_what_is_stored_is_found_without_making_all_cases(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every, stored = names(api.plan(job))
    assert len(every) == 4
    assert stored == every
    made = 0
    before = PlannedAlgorithm.case

    def counted(self: PlannedAlgorithm, *given: object) -> object:
        nonlocal made
        made += 1
        return before(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(PlannedAlgorithm, "case", counted)
    capsys.readouterr()
    assert main(["status", "-f", str(job)]) == 0
    said = capsys.readouterr().out
    assert {"160", "156"} <= set(said.split())
    assert made < 20


@pytest.mark.slow
def test_a_case_that_does_not_say_what_it_is_is_looked_for_one_by_one(job: Path) -> None:
    plan = api.plan(job)
    first = next(each.case.id for each in plan.stored())
    (plan.store.folder(first) / "result.json").write_text("{}")
    every, stored = names(plan)
    assert stored == every
    assert any("unfinished" in one for one in stored)


def test_secret_hyperparameters_hide_no_case(tmp_path: Path) -> None:
    plugin = edited(MAJORITY, "bias=0, ", "bias=0, api_key='', ")
    grid = f"- api_key: {{values: [sk-aaaaaaaaaaaaaaaaaaaaaaaa1, sk-aaaaaaaaaaaaaaaaaaaaaaaa2]}}\n{WIDE}"
    path = write_job(tmp_path, plugin=plugin, hyperparameters=grid, job="seeds: [0]\nengine: inline")
    ianvs.run(path, limit=2)
    every, stored = names(api.plan(path))
    assert stored == every
    assert len(stored) == 2


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_prune_shows_first_and_removes_then(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = job.parent / "ws" / "cases"
    listed = json.loads((job.parent / "ws" / "test" / "job.json").read_text())["cases"]
    before = {path.name for path in cases.glob("[!.]*")}
    wanted = {planned.case.id for planned in api.plan(job).stored()} | {case["id"] for case in listed}
    lost = before - wanted
    assert len(lost) >= 4
    capsys.readouterr()
    assert main(["prune", "-f", str(job), "--lost"]) == 0
    shown = capsys.readouterr().out
    size = sum(size_of(cases / name) for name in lost)
    assert f"{len(lost)} cases" in shown
    assert f"{size / 1e6:,.1f} MB" in shown
    assert "--yes" in shown
    assert {path.name for path in cases.glob("[!.]*")} == before
    assert main(["prune", "-f", str(job), "--lost", "--yes"]) == 0
    assert {path.name for path in cases.glob("[!.]*")} == before & wanted
    named = {path.read_text() for path in (cases / ".names").iterdir()}
    assert not lost & (named | {path.stem for path in (cases / ".locks").iterdir()})
    assert not api.prune(job, lost=True)
    capsys.readouterr()
    assert main(["prune", "-f", str(job), "--lost"]) == 0
    printed(capsys.readouterr().out)


def test_no_case_counts_as_lost_while_another_job_runs_that_has_no_record_yet(job: Path) -> None:
    store = api.plan(job).store
    case_id = api.prune(job, lost=True)[0].case_id
    store.note_running(case_id, {"round": 1})
    with store.lock(case_id), pytest.raises(IanvsError) as caught:
        api.prune(job, lost=True, yes=True)
    assert caught.value.code == "job-in-progress"
    assert store.folder(case_id).exists()
    assert api.prune(job, yes=True) == []


def test_what_a_run_made_that_was_killed_before_it_had_results_is_not_lost(job: Path) -> None:
    [case_id, *_] = [one.case_id for one in api.prune(job, lost=True)]
    store = JobStore(job.parent / "ws", "killed")
    store.begin([case_id])
    assert case_id not in {one.case_id for one in api.prune(job, lost=True)}
    store.write({"cases": []})  # it has run again, and what it was then had other cases
    assert case_id in {one.case_id for one in api.prune(job, lost=True)}


def test_models_are_pruned_and_results_stay(tmp_path: Path) -> None:
    job = write_job(tmp_path, job="seeds: [0]\nengine: inline", hyperparameters="")
    [case] = ianvs.run(job)
    kept = case.directory / "rounds" / "5" / "model"
    left = case.directory / "rounds" / "3" / "model"  # as a process leaves it that is killed between the two
    left.mkdir(parents=True)
    (left / "model.txt").write_text("old")
    assert [one.kind for one in api.prune(job, yes=True)] == ["old"]
    assert not left.exists()
    assert kept.exists()
    with api.plan(job).store.lock(case.case.id):
        assert api.prune(job, finished=True, yes=True) == []
    [found] = api.prune(job, finished=True, yes=True)
    assert (found.kind, found.files, kept.exists()) == ("finished", 1, False)
    assert ianvs.run(job).ran == 0


def test_a_digest_of_bytes_that_is_one_of_a_tree_now_tells_of_no_edit() -> None:
    exam = {"exam": {}, "algorithm": {"source": {"a.py": "0f", "b.py": "tree:01", "c.py": "02"}}}
    now = {"exam": {}, "algorithm": {"source": {"a.py": "tree:0f", "b.py": "tree:03", "d.py": "tree:04"}}}
    edited_files, counted = identity_differences(exam, now)
    assert edited_files == "source b.py, c.py, d.py"
    printed(counted)


def test_after_an_upgrade_a_plan_does_not_list_every_file_of_ianvs() -> None:
    def identity(version: str) -> dict[str, object]:
        files = ["mine.py", *(f"basemodel/ianvs/testalgorithms/m{n}.py" for n in range(23))]
        return {"exam": {}, "algorithm": {"source": {name: f"{version}{name}" for name in files}}}

    old, new = identity("0f"), identity("1e")
    authors, ours = identity_differences(old, new)
    assert authors == "source mine.py"
    printed(ours)
    [counted] = identity_differences(old, identity("tree:"))
    printed(counted)
