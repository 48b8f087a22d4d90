"""What a plan says of a job, given what its workspace holds: written by the store's own writers, nothing runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.base.types import Failure, PredictionKey, Predictions, RoundResult
from ianvs.config import load_job
from ianvs.config.spec import JobSpec
from ianvs.running.inspector import Inspector
from ianvs.running.planning.cases import TrialCases
from ianvs.running.planning.plan import Plan, PlannedCase, make_plan, matches, scored_metrics, start_over
from ianvs.store import ExamRecord, ExamStore
from ianvs.store.stored_score import score_record
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, TESTENV, write_job

PLAIN = (
    MAJORITY
    + "\n\nclass Plain(Majority):\n    def __init__(self, bias=0, **context):\n        super().__init__(bias)\n"
)
GATE = "model_eval: {model_metric: {name: accuracy}, threshold: 0, operator: '>='}\n"


def plan_for(job: JobSpec) -> Plan:
    with closing(Inspector(job, inline=True)) as inspector:
        return make_plan(job, inspector)


def plan_of(folder: Path, *, only: str | None = None, limit: int | None = None, **files: Any) -> Plan:
    """The plan of `write_job`'s job: bias 0 and 1000, seeds 0 and 1, where `files` say nothing else."""
    return plan_for(replace(load_job(write_job(folder, **files)), only=only, limit=limit))


def one_case(folder: Path, **files: Any) -> Plan:
    return plan_of(folder, **{"hyperparameters": "", "job": "seeds: [0]", **files})


def prepare(plan: Plan) -> None:
    """The exams of the plan, as empty as can be."""
    record = ExamRecord("digits", "classification", (), (), (), {}, (), (), (), (), (), (), ())
    for exam_id in {algorithm.exam_id for algorithm in plan.algorithms}:
        ExamStore(plan.store.workspace).write(exam_id, record, [], {"tests": []})


def keep(plan: Plan, planned: PlannedCase, rounds: int = 5, *, ends: bool = True, scores: bool = True) -> None:
    """Store the case as a run of so many rounds leaves it."""
    case_id, store = planned.case.id, plan.store
    store.begin(planned.case, planned.algorithm.identity_of(planned.case))
    for index in range(rounds + 1):
        with store.new_round(case_id, index) as folder:
            predictions = {PredictionKey(0): Predictions(np.array([index]))}
            folder.write(RoundResult(index, f"round {index}"), predictions=predictions)
    for _, key in planned.algorithm.scores if scores else ():
        store.write_score(case_id, key, score_record([[0.5]] * (rounds + 1)))
    if ends:
        store.finish(case_id, {"bound": False, "finished_at": "2026-01-01", "provenance": {}})


def fail(plan: Plan, planned: PlannedCase) -> None:
    plan.store.begin(planned.case, planned.algorithm.identity_of(planned.case))
    plan.store.fail(planned.case.id, Failure("exception", "RuntimeError", "no luck\nin round 3"))


def told(plan: Plan) -> tuple[str, str, str]:
    """(state, action, reason) of the only case."""
    [planned] = plan
    return planned.state, planned.action, planned.reason


def test_a_case_of_which_nothing_is_stored_is_new(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert len(plan) == 4
    assert {(one.state, one.action, one.reason) for one in plan} == {("new", "run", "never run")}
    assert all(one.runs for one in plan)


def test_a_finished_case_has_nothing_to_do(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    prepare(plan)
    keep(plan, *plan)
    assert told(plan) == ("finished", "nothing", "finished")
    [planned] = plan
    assert not planned.runs
    assert len(plan.store.complete_rounds(planned.case.id)) == 6


def one_of_each_state(folder: Path) -> Plan:
    """Of its four cases one is finished, one has failed, one was cut off, and one never ran."""
    plan = plan_of(folder)
    prepare(plan)
    first, second, third, _ = plan
    keep(plan, first)
    fail(plan, second)
    keep(plan, third, 2, ends=False)
    return plan


def test_of_several_cases_each_stands_by_itself(tmp_path: Path) -> None:
    plan = one_of_each_state(tmp_path)
    assert [one.state for one in plan] == ["finished", "failed", "unfinished", "new"]


def test_a_metric_that_is_added_to_a_finished_case_is_to_be_scored(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    prepare(plan)
    keep(plan, *plan)
    more = edited(TESTENV, "{name: BWT}", "{name: BWT}, {name: FM}, {name: f1}, {name: balanced_accuracy}")
    state, action, reason = told(one_case(tmp_path, testenv=more))
    assert (state, action) == ("finished", "score")
    assert "f1, balanced_accuracy" in reason
    assert "FM" not in reason  # it is one over the rounds


def test_a_finished_case_whose_exam_is_gone_needs_nothing_but_the_exam(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    keep(plan, *plan)
    [planned] = plan
    file = f"exams/{planned.algorithm.exam_id}/exam.json"
    state, action, reason = told(plan)
    assert (state, action) == ("unfinished", "prepare")
    assert reason.startswith(f"{file} ")
    assert planned.damaged == (file,)
    assert not planned.runs
    prepare(plan)
    (tmp_path / "ws" / "exams" / planned.algorithm.exam_id / "truth.npz").unlink()
    [planned] = plan
    assert planned.reason.startswith(f"{Path(file).with_name('truth.npz')} ")


def test_a_failed_case_is_tried_again_with_the_first_line_of_why(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    fail(plan, *plan)
    assert told(plan)[:2] == ("failed", "run")
    printed(told(plan)[2])


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (0, ("new", "run")),  # of the untrained model alone there is nothing to go on from
        (1, ("unfinished", "resume")),
        (5, ("unfinished", "resume")),
    ],
)
def test_a_case_that_was_cut_off_goes_on_after_its_last_round(
    tmp_path: Path, rounds: int, expected: tuple[str, str]
) -> None:
    plan = one_case(tmp_path)
    keep(plan, *plan, rounds, ends=False, scores=False)
    assert told(plan)[:2] == expected
    printed(told(plan)[2])


@pytest.mark.parametrize(
    ("files", "action"),
    [
        (["scores.json"], "score"),  # all predictions are there
        (["case.json"], "score"),
        (["predictions.zip"], "resume"),
        (["rounds.json"], "resume"),
        (["scores.json", "predictions.zip"], "resume"),
        (["result.json"], "resume"),
    ],
)
def test_a_finished_case_with_damaged_files_makes_good_what_they_held(
    tmp_path: Path, files: Sequence[str], action: str
) -> None:
    plan = one_case(tmp_path)
    prepare(plan)
    keep(plan, *plan)
    [planned] = plan
    damaged = [plan.store.folder(planned.case.id) / file for file in files]
    for file in damaged:
        file.write_text("{")
    names = [str(file.relative_to(tmp_path / "ws")) for file in damaged]
    [planned] = plan
    assert (planned.state, planned.action, planned.damaged) == ("unfinished", action, tuple(names))
    assert planned.reason.startswith(f"{', '.join(names)} ")


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"plugin": edited(MAJORITY, "/ 1000", "/ 999")}, "source plugin.py"),
        ({"testenv": edited(TESTENV, "rounds: 5", "rounds: 2")}, "scenario"),
        ({"testenv": edited(TESTENV, "name: digits", "name: digits, split_seed: 1")}, "data"),
        ({"testenv": TESTENV + GATE}, "train_ratio; model_eval"),
        ({"job": "seeds: [0]\nthreads: 2", "testenv": edited(TESTENV, "rounds: 5", "rounds: 2")}, "threads; scenario"),
    ],
)
def test_a_case_that_ran_as_another_one_says_what_changed(tmp_path: Path, change: dict[str, Any], differs: str) -> None:
    before = one_case(tmp_path)
    keep(before, *before)
    [old] = before
    state, action, reason = told(one_case(tmp_path, **change))
    assert (state, action) == ("new", "run")
    assert reason.endswith(f" {old.case.id[:8]}: {differs}")


def test_what_a_changed_case_was_before_may_be_damaged(tmp_path: Path) -> None:
    before = one_case(tmp_path)
    keep(before, *before)
    [old] = before
    (before.store.folder(old.case.id) / "case.json").write_text("{")
    changed = one_case(tmp_path, plugin=edited(MAJORITY, "/ 1000", "/ 999"))
    assert told(changed)[:2] == ("new", "run")
    assert old.case.id[:8] not in told(changed)[2]


def test_a_case_that_pauses_is_scored_after_its_round_and_left_alone(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    stage = {"trial": TrialCases("study", 0), "choices": ({},), "seed": 0, "until": 2}
    plan = replace(plan, algorithms=tuple(replace(of, **stage) for of in plan.algorithms))
    keep(plan, *plan, 1, ends=False, scores=False)
    assert told(plan)[:2] == ("unfinished", "resume")
    keep(plan, *plan, 2, ends=False, scores=False)
    assert told(plan)[:2] == ("stopped", "score")
    printed(told(plan)[2])
    [planned] = plan
    for _, key in planned.algorithm.scores:
        plan.store.write_score(planned.case.id, key, score_record([[0.5]] * 3), after=2)
    assert told(plan)[:2] == ("stopped", "nothing")


def test_of_a_case_that_a_search_has_done_with_nothing_is_done(tmp_path: Path) -> None:
    plan = one_case(tmp_path)
    ended = {"trial": TrialCases("study", 0, "given up"), "choices": ({},), "seed": 0}
    plan = replace(plan, algorithms=tuple(replace(of, **ended) for of in plan.algorithms))
    assert told(plan) == ("stopped", "nothing", "given up")
    fail(plan, *plan)
    assert told(plan) == ("failed", "nothing", "given up")


# References


def with_references(
    folder: Path, references: str = "", metrics: str = "accuracy, IM, FWT_survey", **files: Any
) -> Plan:
    exam = edited(TESTENV, "{name: accuracy}, {name: BWT}", metrics)
    return plan_of(folder, testenv=exam, job=f"seeds: [0, 1]\n{references}", **files)


def by_role(plan: Plan) -> dict[str, list[tuple[dict[str, object], int]]]:
    found: dict[str, list[tuple[dict[str, object], int]]] = {}
    for case, _ in plan.cases():
        found.setdefault(case.role, []).append((dict(case.hyperparameters), case.seed))
    return found


def test_the_references_that_metrics_need_are_cases_of_the_plan(tmp_path: Path) -> None:
    own = [({"bias": bias}, seed) for bias in (0, 1000) for seed in (0, 1)]
    plan = with_references(tmp_path)
    assert by_role(plan) == {"": own, "joint": own, "single_task": own}
    for case, algorithm in plan.cases():
        roles = plan.references.ids(case, algorithm)
        assert set(roles) == (set() if case.role else {"joint", "single_task"})
    assert by_role(with_references(tmp_path, metrics="accuracy, IM")).keys() == {"", "joint"}
    assert by_role(with_references(tmp_path, metrics="accuracy, BWT")).keys() == {""}
    assert by_role(with_references(tmp_path, "references: none")).keys() == {""}


def test_cases_that_differ_in_what_the_reference_does_not_take_share_it(tmp_path: Path) -> None:
    student = f"""

class Student(Plain):
    reference = "{tmp_path / "plugin.py"}:Plain"

    def __init__(self, strength=1, bias=0):
        super().__init__(bias)
"""
    plugin = edited(PLAIN, ", **context", "") + student
    grid = "- strength: {values: [1, 2, 3]}\n- bias: {values: [0, 7]}"
    plan = with_references(tmp_path, metrics="accuracy, IM", plugin=plugin, name="Student", hyperparameters=grid)
    assert by_role(plan)["joint"] == [({"bias": bias}, seed) for bias in (0, 7) for seed in (0, 1)]
    references = {case.id: case for case, _ in plan.cases() if case.role}
    own = [(case, references[plan.references.ids(case, of)["joint"]]) for case, of in plan.cases() if not case.role]
    assert len(own) == 12
    assert all((case.seed, case.hyperparameters["bias"]) == (of.seed, of.hyperparameters["bias"]) for case, of in own)
    assert {case.modules for case in references.values()} == {(("basemodel", "Plain"),)}


def test_a_named_reference_is_the_case_of_that_name_and_seed(tmp_path: Path) -> None:
    named = "references: {joint: twin, single_task: twin}"
    plan = with_references(tmp_path, named, hyperparameters="", algorithms=("majority", "twin"))
    cases = {(case.algorithm, case.seed): (case, of) for case, of in plan.cases()}
    assert len(cases) == len(plan) == 4
    for (_, seed), (case, of) in cases.items():
        twin = cases["twin", seed][0].id
        assert plan.references.ids(case, of) == {"joint": twin, "single_task": twin}


def test_two_exams_share_a_reference_unless_it_would_be_another_one(tmp_path: Path) -> None:
    def planned(more: str) -> Plan:
        path = write_job(
            tmp_path, testenv="name: one\n" + edited(TESTENV, "BWT", "IM"), job="seeds: [0]", hyperparameters=""
        )
        exam = (tmp_path / "testenv.yaml").read_text()
        (tmp_path / "other.yaml").write_text(
            edited(exam, "name: one", "name: two", "{name: accuracy}", "{name: f1}") + more
        )
        path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
        return plan_for(load_job(path))

    shared = planned("  budget: {passes: 3}\n")  # a learner is told of it, a reference is not
    assert [(case.testenv, case.role) for case, _ in shared.cases()] == [("one", ""), ("two", ""), ("one", "joint")]
    ids = {shared.references.ids(case, of)["joint"] for case, of in shared.cases() if not case.role}
    [reference] = [of for case, of in shared.cases() if case.id in ids]
    assert [metric.name for metric, _ in reference.scores] == ["accuracy", "f1"]
    assert [[metric.name for metric, _ in of.scores] for _, of in shared.cases()][:2] == [
        ["accuracy"],
        ["f1"],
    ]
    apart = planned("  " + GATE)  # a part of each round is held out
    assert [case.testenv for case, _ in apart.cases()] == ["one", "two", "one", "two"]


# Repetitions, exams of each seed, conditions


def test_repetitions_are_cases_of_the_first_seed_that_no_other_case_is(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, job="seeds: [4, 5]\nrepeat: 3")
    again = [planned for planned in plan if planned.case.role == "repeat"]
    assert [(one.case.hyperparameters["bias"], one.case.seed) for one in again] == [(0, 4), (1000, 4)] * 2
    assert {one.state for one in again} == {"new"}
    [reason] = {one.reason for one in again}
    printed(reason)
    assert len({planned.case.id for planned in plan}) == len(plan) == 4 + 4
    assert not any(plan.references.ids(one.case, one.algorithm) for one in again)


def test_each_seed_may_have_an_exam_of_its_own(tmp_path: Path) -> None:
    drawn = edited(TESTENV, "rounds: 5", "rounds: 5, order_seed: case")
    plan = plan_of(tmp_path, testenv=drawn)
    assert len(plan) == len(list(plan)) == 4
    exams = {(case.seed, of.exam_id) for case, of in plan.cases()}
    assert sorted(seed for seed, _ in exams) == [0, 1]  # the cases of a seed take the same exam
    assert len({case.row for case, _ in plan.cases()}) == 2  # the seeds of a choice are a row
    for case, of in plan.cases():
        assert of.exam["scenario"]["order_seed"] == case.seed
    named = {case.id for case, _ in plan_of(tmp_path, testenv=edited(drawn, "case", "1"), job="seeds: [1]").cases()}
    assert named == {case.id for case, _ in plan.cases() if case.seed == 1}


def test_references_take_the_exam_of_their_seed(tmp_path: Path) -> None:
    drawn = edited(TESTENV, "rounds: 5", "rounds: 5, order_seed: case", "BWT", "IM")
    plan = plan_of(tmp_path, testenv=drawn)
    exams = {case.id: of.exam_id for case, of in plan.cases()}
    for case, of in plan.cases():
        if not case.role:
            assert exams[plan.references.ids(case, of)["joint"]] == of.exam_id


CONDITIONS = [
    ("all", 4),
    ("failed", 1),
    ("majority", 4),
    ("nobody", 0),
    ("seed=1", 2),
    ("bias=1e3", 2),  # numbers are compared as numbers
    ("bias=1000,seed=0", 1),
    ("majority, bias=0 ,", 2),
    ("bias=often", 0),
    ("status=finished", 1),
    ("status=new,seed=1", 1),
    ("strength=1", 0),
    ("seed 1", 2),
    ("majority (bias=1000)", 2),  # as reports name a row
    ("majority (bias=1000), seed 0", 1),
    ("majority (bias=7)", 0),
]


@pytest.mark.parametrize(("wanted", "expected"), CONDITIONS)
def test_conditions_of_rerun(tmp_path: Path, wanted: str, expected: int) -> None:
    plan = plan_of(tmp_path)
    prepare(plan)
    first, second, *_ = plan
    keep(plan, first)
    fail(plan, second)
    assert sum(matches(planned, wanted) for planned in plan) == expected


def test_the_beginning_of_an_id_is_a_condition_from_four_letters_on(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    first, *_ = plan
    assert [matches(planned, first.case.id[:10]) for planned in plan] == [True, False, False, False]
    assert not any(matches(planned, first.case.id[:3]) for planned in plan)


def test_starting_over_drops_what_is_stored_of_the_cases_that_match(tmp_path: Path) -> None:
    plan = one_of_each_state(tmp_path)
    assert start_over(plan, "bias=1000") == 1  # of two, one of which is new
    assert [one.state for one in plan][1:] == ["failed", "new", "new"]
    assert start_over(plan, "all") == 2
    assert {one.state for one in plan} == {"new"}


def test_only_and_limit_leave_cases_with_the_references_that_they_need(tmp_path: Path) -> None:
    exam = edited(TESTENV, "BWT", "IM")
    every = plan_of(tmp_path, testenv=exam)
    assert len(every) == 8
    chosen = plan_of(tmp_path, testenv=exam, only="seed=1", limit=1)
    (case, of), (reference, _) = chosen.cases()
    assert (len(chosen), case.seed, case.hyperparameters) == (2, 1, {"bias": 0})
    assert chosen.references.ids(case, of) == {"joint": reference.id}
    assert [case.id for case, _ in plan_of(tmp_path, testenv=exam, limit=99).cases()] == [
        c.id for c, _ in every.cases()
    ]


def test_a_name_with_a_comma_is_one_condition(tmp_path: Path) -> None:
    path = write_job(tmp_path, algorithms=("majority", "other"))
    path.write_text(edited(path.read_text(), "{name: other,", "{name: 'grouping, released code',"))
    job = load_job(path)

    def chosen(only: str) -> list[tuple[str, int, Any]]:
        plan = plan_for(replace(job, only=only))
        return [(case.algorithm, case.seed, case.hyperparameters["bias"]) for case, _ in plan.cases()]

    name = "grouping, released code"
    assert {one[0] for one in chosen(name)} == {name}
    assert chosen(f"{name}, seed=1, bias=0") == chosen(f"{name} (bias=0), seed 1") == [(name, 1, 0)]
    assert len(chosen("majority,seed=1")) == 2


def test_a_case_of_another_exam_is_no_predecessor(tmp_path: Path) -> None:
    """Neither of the job's other testenv, nor of another job's."""
    path = write_job(tmp_path, testenv=edited(TESTENV, "rounds: 5", "rounds: 2"))
    other = tmp_path / "other.yaml"
    other.write_text(edited((tmp_path / "testenv.yaml").read_text(), "rounds: 2", "rounds: 5"))
    both = edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]")
    path.write_text(edited(both, "[0, 1]", "[0]"))
    ianvs.run(path, limit=2)
    before = list(plan_for(load_job(path)))
    assert [one.state for one in before] == ["finished", "finished", "new", "new"]
    [never] = {one.reason for one in before[2:]}  # it names no case that it was before

    path.write_text(edited(both, "[./testenv.yaml, ./other.yaml]", "./testenv.yaml", "name: test\n", "name: next\n"))
    ianvs.run(path, engine="inline")
    path.write_text(edited(both, "[./testenv.yaml, ./other.yaml]", "./other.yaml"))
    assert {one.reason for one in plan_for(load_job(path))} == {never}


def test_conditions_that_fit_no_case_are_refused(tmp_path: Path) -> None:
    assert errors_of(plan_of, tmp_path, only="nobody") == [("no-matching-case", "")]


def test_one_exam_under_two_names_is_refused(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    shutil.copy(tmp_path / "testenv.yaml", tmp_path / "other.yaml")
    path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    assert errors_of(plan_for, load_job(path)) == [("duplicate-exam", f"{tmp_path / 'other.yaml'}:1:1")]


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("accuracy, BWT", ["accuracy", "BWT"]),
        ("BWT", ["accuracy", "BWT"]),  # that of accuracy
        ("f1, BWT", ["f1", "BWT"]),
        ("accuracy, {name: AA, of: f1}", ["accuracy", "AA", "f1"]),
        ("f1, {name: AA, of: f1}", ["f1", "AA"]),
    ],
)
def test_scores_that_metrics_build_on_are_computed_too(tmp_path: Path, metrics: str, expected: list[str]) -> None:
    exam = edited(TESTENV, "{name: accuracy}, {name: BWT}", metrics)
    plan = one_case(tmp_path, testenv=exam)
    assert [metric.name for metric, _ in scored_metrics(plan.job.testenvs[0])] == expected
    assert [metric.name for metric, _ in plan.algorithms[0].scores] == [
        name for name in expected if name not in ("BWT", "AA")
    ]
