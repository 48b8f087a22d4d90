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
        "c2ed3f17a76bd3555667 800abfb193ddcd788ce5 0",
        "396fc7c58e80565b5ba9 800abfb193ddcd788ce5 1",
        "49b788f4646943826b41 35f3c4d4df24aa2b82df 0",
        "f26a35445b5a542af4e9 35f3c4d4df24aa2b82df 1",
    ],
    "of exams drawn for a seed": [
        "fce7df65de6e31be3e62 460657e8cee390fd4dcf 0",
        "a55fa1686be3e375d47c 460657e8cee390fd4dcf 1",
    ],
    "with references": [
        "c2ed3f17a76bd3555667 800abfb193ddcd788ce5 0 d79b0872da345dac813d",
        "396fc7c58e80565b5ba9 800abfb193ddcd788ce5 1 ca88feadbe8612fc4f66",
        "49b788f4646943826b41 35f3c4d4df24aa2b82df 0 5ef33309cf4b7e7d40f2",
        "f26a35445b5a542af4e9 35f3c4d4df24aa2b82df 1 4f62f8a177d0bab89bbc",
        "d79b0872da345dac813d 76465ea3c3f60ab29452 0 joint",
        "ca88feadbe8612fc4f66 76465ea3c3f60ab29452 1 joint",
        "5ef33309cf4b7e7d40f2 b58bcdfc6538b110a4f8 0 joint",
        "4f62f8a177d0bab89bbc b58bcdfc6538b110a4f8 1 joint",
    ],
    "with references of drawn exams": [
        "fce7df65de6e31be3e62 460657e8cee390fd4dcf 0 5a24f60b0e0b855318c0",
        "a55fa1686be3e375d47c 460657e8cee390fd4dcf 1 2a0ebc02be0fdcb19b41",
        "5a24f60b0e0b855318c0 bffd0299db09e7754890 0 joint",
        "2a0ebc02be0fdcb19b41 bffd0299db09e7754890 1 joint",
    ],
    "repeated": [
        "17058ce867938a138592 319ae7f7597564a20d4b 3",
        "677a6a3e0a11e6aefa9f 319ae7f7597564a20d4b 1",
        "c9537d3dc1b10a237d90 a02dde0b86f87584becf 3 repeat",
    ],
    "repeated, of drawn exams": [
        "bc48d9d39145e4b89436 460657e8cee390fd4dcf 3",
        "a55fa1686be3e375d47c 460657e8cee390fd4dcf 1",
        "d4b82cf18daef76a2c03 fc4968481c8e34ce753a 3 repeat",
    ],
    "a search that has ended": [
        "d6359b61567df82e65b9 d7e89eb1b1fdaddae999 0 trial finished",
        "372a3db6a3ee0e414e9c 293f38f8f456481535b8 0 trial stopped after round 2",
        "effd957c412ee65b6ed5 e8e50c4890428f782e84 0 trial failed",
        "debc211e7da7fae91ac6 004faa8e75f0f0ec1672 0 ea6b485ab15ab3f50a46",
        "e2f553a03ac82acfceb2 004faa8e75f0f0ec1672 1 b45a2500457de9b62edd",
        "aef0a039c8e026218933 cbd99d5ea73672ce55be 0 repeat",
        "ea6b485ab15ab3f50a46 c45876e6c626db433bf2 0 joint",
        "b45a2500457de9b62edd c45876e6c626db433bf2 1 joint",
    ],
    "a search that goes on": [
        "d6359b61567df82e65b9 d7e89eb1b1fdaddae999 0 trial finished",
        "372a3db6a3ee0e414e9c 293f38f8f456481535b8 0 trial stopped after round 2",
        "effd957c412ee65b6ed5 e8e50c4890428f782e84 0",
        "debc211e7da7fae91ac6 004faa8e75f0f0ec1672 0 ea6b485ab15ab3f50a46",
        "aef0a039c8e026218933 cbd99d5ea73672ce55be 0 repeat",
        "ea6b485ab15ab3f50a46 c45876e6c626db433bf2 0 joint",
        "b45a2500457de9b62edd c45876e6c626db433bf2 1 joint",
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
