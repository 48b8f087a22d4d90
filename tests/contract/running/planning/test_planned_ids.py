"""Ids and rows of cases of every sort, as they are stored in workspaces that exist: they must not change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ianvs
from ianvs.store import Axis, Study, StudyStore, Trial
from tests.contract.running.search.searched_job import searched_job
from tests.edits import edited
from tests.jobs import TESTENV, write_job

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
        "77af67df7c2a818ae0c2 da44e920559058c85a4f 0",
        "2a8f9da4e22a1a4302aa da44e920559058c85a4f 1",
        "6fa0909ab0ed3b447da2 1eaded56e1810c232152 0",
        "8d82f9fa3cc107854304 1eaded56e1810c232152 1",
    ],
    "of exams drawn for a seed": [
        "b08a17dedb0bab0c5917 60470650615df5b385de 0",
        "bd4a6f9feeff8949a45f 60470650615df5b385de 1",
    ],
    "with references": [
        "77af67df7c2a818ae0c2 da44e920559058c85a4f 0 74c90909c975f804ff16",
        "2a8f9da4e22a1a4302aa da44e920559058c85a4f 1 59592ffd983126b998ed",
        "6fa0909ab0ed3b447da2 1eaded56e1810c232152 0 c2012cf16bcee4365c3a",
        "8d82f9fa3cc107854304 1eaded56e1810c232152 1 47b998032dc6076c27a3",
        "74c90909c975f804ff16 999394e7bf8464ce6f23 0 joint",
        "59592ffd983126b998ed 999394e7bf8464ce6f23 1 joint",
        "c2012cf16bcee4365c3a 37c0f829195610db23c3 0 joint",
        "47b998032dc6076c27a3 37c0f829195610db23c3 1 joint",
    ],
    "with references of drawn exams": [
        "b08a17dedb0bab0c5917 60470650615df5b385de 0 992679797bbe9b60e04e",
        "bd4a6f9feeff8949a45f 60470650615df5b385de 1 bdb155216eb0271dc98e",
        "992679797bbe9b60e04e 62cc7767f25bee392600 0 joint",
        "bdb155216eb0271dc98e 62cc7767f25bee392600 1 joint",
    ],
    "repeated": [
        "4884192f6511cc7a9be6 944cba1f6cd7847eae4a 3",
        "1fd8f6fedea2f05abdd8 944cba1f6cd7847eae4a 1",
        "a46cda31ccc9bfa108d3 ab85a48a7387fecd2290 3 repeat",
    ],
    "repeated, of drawn exams": [
        "cf9646eee2c165c76178 60470650615df5b385de 3",
        "bd4a6f9feeff8949a45f 60470650615df5b385de 1",
        "7519989d29e9d6881a7b 29787fb9c0568fa1d9a1 3 repeat",
    ],
    "a search that has ended": [
        "b39a523b0c1cc63d5e04 6ccfc3701c064a7aca02 0 trial finished",
        "ae4d3b1c77cd4647003e e5acffd7cdc96f218caa 0 trial stopped after round 2",
        "cf674993cf96471cb2e2 38f79b982a453fba5b18 0 trial failed",
        "9b72f41abec3f3619773 3c27b984b2a3b6db777b 0 a3f91c7c59ee3ba4d860",
        "d6c942a59dd599a98ab0 3c27b984b2a3b6db777b 1 b82914caf308b9bd9519",
        "225dc8481988fe306891 cbe91e94245cea1b3970 0 repeat",
        "a3f91c7c59ee3ba4d860 426a0f12ac5a1383e518 0 joint",
        "b82914caf308b9bd9519 426a0f12ac5a1383e518 1 joint",
    ],
    "a search that goes on": [
        "b39a523b0c1cc63d5e04 6ccfc3701c064a7aca02 0 trial finished",
        "ae4d3b1c77cd4647003e e5acffd7cdc96f218caa 0 trial stopped after round 2",
        "cf674993cf96471cb2e2 38f79b982a453fba5b18 0",
        "9b72f41abec3f3619773 3c27b984b2a3b6db777b 0 a3f91c7c59ee3ba4d860",
        "225dc8481988fe306891 cbe91e94245cea1b3970 0 repeat",
        "a3f91c7c59ee3ba4d860 426a0f12ac5a1383e518 0 joint",
        "b82914caf308b9bd9519 426a0f12ac5a1383e518 1 joint",
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
