"""Ids and rows of cases of every sort, as they are stored in workspaces that exist: they must not change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ianvs
from ianvs.store import Axis, Study, StudyStore, Trial
from tests.edits import edited
from tests.jobs import TESTENV, write_job
from tests.running.search.searched_job import searched_job

DRAWN = edited(TESTENV, "rounds: 5", "rounds: 5, order_seed: case")
COMPARED = edited(TESTENV, "{name: BWT}", "{name: IM}")

PLANS: dict[str, Mapping[str, str]] = {
    "ordinary": {},
    "of exams drawn for a seed": {"testenv": DRAWN, "hyperparameters": ""},
    "with references": {"testenv": COMPARED},
    "with references of drawn exams": {"testenv": edited(DRAWN, "{name: BWT}", "{name: IM}"), "hyperparameters": ""},
    "repeated": {"job": "seeds: [3, 1]\nrepeat: 2", "hyperparameters": ""},
    "repeated, of drawn exams": {"job": "seeds: [3, 1]\nrepeat: 2", "hyperparameters": "", "testenv": DRAWN},
}
PINNED = {
    "ordinary": [
        "8e4a36835cd4bf49ff44 b4c840655ef925589441 0",
        "7e340569f31b473a3435 b4c840655ef925589441 1",
        "a8355efe7a913df57a1a f09bb1f0228f8a6aafc0 0",
        "6516ee321e1afbc7532d f09bb1f0228f8a6aafc0 1",
    ],
    "of exams drawn for a seed": [
        "895740b37df4afb79173 81dadbc9d3fededef0df 0",
        "2cad2683a37953b979e2 81dadbc9d3fededef0df 1",
    ],
    "with references": [
        "8e4a36835cd4bf49ff44 b4c840655ef925589441 0 62c749e7b4743e0fca4c",
        "7e340569f31b473a3435 b4c840655ef925589441 1 e6a8f323691717309d30",
        "a8355efe7a913df57a1a f09bb1f0228f8a6aafc0 0 fc7b927247fe8e3acc08",
        "6516ee321e1afbc7532d f09bb1f0228f8a6aafc0 1 b79f3f438814e51c588b",
        "62c749e7b4743e0fca4c d6517994d624df675abc 0 joint",
        "e6a8f323691717309d30 d6517994d624df675abc 1 joint",
        "fc7b927247fe8e3acc08 f422e855aa27dfdd49f9 0 joint",
        "b79f3f438814e51c588b f422e855aa27dfdd49f9 1 joint",
    ],
    "with references of drawn exams": [
        "895740b37df4afb79173 81dadbc9d3fededef0df 0 55d44108b791e72c628a",
        "2cad2683a37953b979e2 81dadbc9d3fededef0df 1 ef1ac2fe75ea6f219d7a",
        "55d44108b791e72c628a be221f8fd0accb0a9d7e 0 joint",
        "ef1ac2fe75ea6f219d7a be221f8fd0accb0a9d7e 1 joint",
    ],
    "repeated": [
        "b91e5a021b1b95bf20c8 0bcb60d119ae7ac0b598 3",
        "9be88e3096b989a1f7e9 0bcb60d119ae7ac0b598 1",
        "9e89d120f91cd958ce97 778a91053ad8073720ae 3 repeat",
    ],
    "repeated, of drawn exams": [
        "a12ef275343ccbc506f6 81dadbc9d3fededef0df 3",
        "2cad2683a37953b979e2 81dadbc9d3fededef0df 1",
        "f6a6078eb99de1adad90 25a6c342ae0a98088743 3 repeat",
    ],
    "a search that has ended": [
        "95bffead67f39b36e6e9 f93bab500a47bc6a8a8b 0 trial finished",
        "c4f0fe0087e722bce1df c380abde26d0403631fd 0 trial stopped after round 2",
        "3a00d0ec654202176454 9215563e2ab0d799024d 0 trial failed",
        "ae2b974bf8dd02289238 43e24b857f9638988c37 0 5ceb5c3d8125f28dcab9",
        "d840f97a6b984fb9b184 43e24b857f9638988c37 1 c903c6e1d4d5e745c6ae",
        "c2af5fef05f68f478854 353ebfff5aa32b32d8ae 0 repeat",
        "5ceb5c3d8125f28dcab9 6505d426462e5ed22841 0 joint",
        "c903c6e1d4d5e745c6ae 6505d426462e5ed22841 1 joint",
    ],
    "a search that goes on": [
        "95bffead67f39b36e6e9 f93bab500a47bc6a8a8b 0 trial finished",
        "c4f0fe0087e722bce1df c380abde26d0403631fd 0 trial stopped after round 2",
        "3a00d0ec654202176454 9215563e2ab0d799024d 0",
        "ae2b974bf8dd02289238 43e24b857f9638988c37 0 5ceb5c3d8125f28dcab9",
        "c2af5fef05f68f478854 353ebfff5aa32b32d8ae 0 repeat",
        "5ceb5c3d8125f28dcab9 6505d426462e5ed22841 0 joint",
        "c903c6e1d4d5e745c6ae 6505d426462e5ed22841 1 joint",
    ],
}


def shown(path: Path) -> list[str]:
    """A line for each case: id, row, seed, role; of a searched one what there is to do; and its references."""
    plan = ianvs.plan(path)
    lines = []
    for each in plan:
        case = each.case
        said = [case.id, case.row, str(case.seed), case.role, *plan.references.of(case, each.algorithm).values()]
        lines.append(" ".join(filter(None, said)) + ("" if each.reason.endswith("never run") else f" {each.reason}"))
    return lines


@pytest.mark.parametrize("what", PLANS)
def test_ids_are_those_of_workspaces_that_exist(tmp_path: Path, what: str) -> None:
    assert shown(write_job(tmp_path, **PLANS[what])) == PINNED[what]  # type: ignore[arg-type]


def write_study(path: Path, ended: bool) -> None:
    """What a search of four trials has stored: one ended, two stopped, and the fourth is at its last stage, or won."""
    (planned,) = ianvs.plan(path).studies
    trials = (
        Trial(1, {"noise": 0.25}, 5, {2: 0.5, 5: 0.25}),
        Trial(2, {"noise": 0.5}, 2, {2: 0.25}),
        Trial(3, {"noise": 0.75}, 2, {2: None}),
        Trial(4, {"noise": 0.125}, 5, {2: 0.75, 5: 0.5} if ended else {2: 0.75}),
    )
    study = Study(
        key=planned.key,
        algorithm="majority",
        testenv="",
        how={"name": "asha"},
        metric="accuracy",
        higher_is_better=True,
        seen="",
        seeds=planned.seeds,
        rungs=(2, 5),
        rounds=5,
        axes=(Axis("noise", "uniform", 0.0, 0.9),),
        trials=trials if ended else (*trials[:2], Trial(3, {"noise": 0.75}, 2, {}), trials[3]),
        ended=ended,
        winner=4 if ended else None,
    )
    StudyStore(path.parent / "ws", "test").write(study)


@pytest.mark.parametrize("ended", [True, False])
def test_ids_of_trials_and_of_a_winner(tmp_path: Path, ended: bool) -> None:
    path = searched_job(
        tmp_path, "{name: asha, trials: 4}", job="seeds: [0, 1]\nrepeat: 2", testenv=edited(TESTENV, "BWT", "IM")
    )
    write_study(path, ended)
    assert shown(path) == PINNED["a search that has ended" if ended else "a search that goes on"]


def test_a_trial_at_its_last_stage_finds_the_reference_that_the_job_names(tmp_path: Path) -> None:
    """It has one of the seeds, and the reference all of them."""
    settings = "seeds: [0, 1]\nreferences: {joint: alone}"
    testenv = edited(TESTENV, "BWT", "IM")
    path = searched_job(tmp_path, "{name: asha, trials: 4}", job=settings, testenv=testenv)
    algorithm = (tmp_path / "algorithm.yaml").read_text()
    (tmp_path / "alone.yaml").write_text(edited(algorithm, "{uniform: [0.0, 0.9]}", "{values: [0.5]}"))
    listed = "      - {name: majority, url: ./algorithm.yaml}\n"
    path.write_text(edited(path.read_text(), listed, listed + "      - {name: alone, url: ./alone.yaml}\n"))
    write_study(path, ended=False)
    plan = ianvs.plan(path)
    alone = next(each.case.id for each in plan if (each.case.algorithm, each.case.seed) == ("alone", 0))
    last = [each for each in plan if each.algorithm.trial and each.algorithm.trial.number == 4]
    assert [plan.references.of(each.case, each.algorithm) for each in last] == [{"joint": alone}]
