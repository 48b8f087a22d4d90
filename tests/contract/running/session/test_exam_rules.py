"""What a learner meets in each kind of exam, and what happens to one that breaks its rules."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import ianvs
from ianvs.results.stored import Results
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job

RECORDER = edited(
    MAJORITY,
    "    def train(self, train_data, valid_data=None, *, round, seed):",
    """    def train(self, train_data, valid_data=None, **context):
        import json
        round, seed = context["round"], context["seed"]
        ids = list(train_data.ids)
        seen = {name: context.get(name) for name in ("task", "task_classes", "passes", "pretraining", "classes_seen")}
        with (context["folder"] / "calls.jsonl").open("a") as file:
            file.write(json.dumps({"round": round, "ids": ids, **seen}) + "\\n")""",
)


def yaml_of(scenario: str, metrics: str = "accuracy, BWT", more: str = "") -> str:
    return f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [{metrics}]\n{more}"


def sat(folder: Path, exam: str, plugin: str = RECORDER, job: str = "seeds: [0]", **settings) -> Results:
    path = write_job(folder, plugin=plugin, hyperparameters="", testenv=exam, job=f"engine: inline\n{job}", **settings)
    return ianvs.run(path)


def calls(results: Results) -> list[dict]:
    [found] = results
    assert found.status == "finished", found.failure
    return [json.loads(line) for line in (found.directory / "files" / "calls.jsonl").read_text().splitlines()]


def failure(results: Results) -> str:
    [found] = results
    assert found.failure is not None
    assert found.failure.error in ("ExamRuleError", "HiddenError")
    return found.failure.message


def training(code: str) -> str:
    """A plugin whose train() begins with `code`."""
    head = "    def train(self, train_data, valid_data=None, *, round, seed):\n"
    lines = "".join(f"        {line}\n" for line in code.splitlines())
    return edited(MAJORITY, head, head + lines)


STREAM = "{name: online, rounds: 5, batch: 100}"
CIL = "{name: class-incremental, rounds: 5}"


@pytest.fixture(scope="module")
def stream(tmp_path_factory) -> list[dict]:
    """The calls of an online stream."""
    return calls(sat(tmp_path_factory.mktemp("stream"), yaml_of(STREAM)))


def test_a_stream_comes_in_equal_chunks_that_do_not_tell_where_a_round_ends(stream):
    found = stream
    assert [len(call["ids"]) for call in found] == [100] * 14 + [38]
    assert [call["round"] for call in found] == list(range(1, 16))
    assert all(call["task"] is None and call["passes"] == 1 for call in found)


def test_every_sample_of_a_stream_comes_once_and_rounds_follow_each_other(stream, tmp_path):
    ids = [name for call in stream for name in call["ids"]]
    write_job(tmp_path, testenv=yaml_of(STREAM))
    exam = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml")["online"]
    rounds = [set(exam.dataset.train.ids[r.train]) for r in exam.rounds]
    start = 0
    for names in rounds:
        assert set(ids[start : start + len(names)]) == names
        start += len(names)
    assert len(set(ids)) == len(ids) == start


def test_the_order_within_a_round_of_a_stream_is_drawn_by_the_seed(tmp_path):
    results = sat(tmp_path, yaml_of(STREAM), job="seeds: [0, 1]")
    first, second = ((found.directory / "files" / "calls.jsonl").read_text().splitlines()[0] for found in results)
    assert first != second


def test_classes_of_a_stream_are_those_that_it_has_shown(stream):
    seen = [set(call["classes_seen"]) for call in stream]
    assert seen[0] == {0, 1}
    assert seen[2] == {0, 1, 2, 3}  # the third chunk runs over the end of the first round
    assert seen[-1] == set(range(10))
    assert all(before <= after for before, after in pairwise(seen))


def test_a_task_free_stream_may_be_gone_over_as_often_as_one_likes(tmp_path):
    code = "for _ in range(3):\n    for batch in train_data.loader(10): pass"
    [found] = sat(tmp_path, yaml_of("{name: task-free, rounds: 5, batch: 100}"), plugin=training(code))
    assert found.status == "finished"


def test_a_task_incremental_exam_tells_the_task_and_its_classes_in_training_and_testing(tmp_path):
    plugin = edited(
        RECORDER,
        "    def predict(self, data):\n",
        "    def predict(self, data, *, task, task_classes):\n"
        "        return [max(task_classes, key=lambda c: self.counts.get(c, 0))] * len(data)\n",
    )
    results = sat(tmp_path, yaml_of("{name: task-incremental, rounds: 5}"), plugin=plugin)
    found = calls(results)
    assert [(call["task"], call["task_classes"]) for call in found] == [(k, [2 * k, 2 * k + 1]) for k in range(5)]
    [result] = results
    assert np.all(result.matrices["accuracy"].values > 0.4)  # even untrained: one of two classes


def test_copies_are_adapted_to_each_downstream_task_and_the_learner_is_not(tmp_path):
    plugin = edited(
        MAJORITY,
        "*, round, seed)",
        "*, round, seed, pretraining)",
        "        if round == self.fail_in_round:",
        "        if pretraining:\n            assert not self.counts\n            return\n"
        "        if round == self.fail_in_round:",
    )
    [found] = sat(tmp_path, yaml_of("{name: continual-pre-training, rounds: 5}"), plugin=plugin)
    assert found.status == "finished", found.failure
    values = found.matrices["accuracy"].values
    assert np.all(values > 0.4)  # each copy knows the two classes of its task, before the first stage too
    assert np.all(values == values[0])


def test_an_adapted_copy_answers_outside_of_pretraining(tmp_path):
    plugin = edited(
        MAJORITY,
        "*, round, seed)",
        "*, round, seed, pretraining)",
        "        if round == self.fail_in_round:",
        "        if pretraining:\n            return\n        if round == self.fail_in_round:",
        "    def predict(self, data):\n",
        "    def predict(self, data, *, pretraining):\n        assert pretraining is not bool(self.counts)\n",
    )
    [result] = sat(tmp_path, yaml_of("{name: continual-pre-training, rounds: 5}"), plugin=plugin)
    assert result.status == "finished", result.failure


def test_noisy_labels_are_what_a_learner_is_told_and_the_test_sets_keep_their_own(tmp_path):
    plugin = edited(RECORDER, "ids = list(train_data.ids)", "ids = [int(label) for label in train_data.y]")
    noisy = calls(sat(tmp_path / "a", yaml_of("{name: CIL, rounds: 5, modifiers: {label_noise: 0.25}}"), plugin=plugin))
    clean = calls(sat(tmp_path / "b", yaml_of("{name: CIL, rounds: 5}"), plugin=plugin))
    for told, true in zip(noisy, clean, strict=True):
        assert np.mean(np.array(told["ids"]) != np.array(true["ids"])) == pytest.approx(0.25, abs=0.01)


def test_examinations_within_a_stream_make_a_curve(tmp_path):
    [found] = sat(tmp_path, yaml_of("{name: online, rounds: 5, batch: 10, eval_every: 100}", "accuracy, AAA"))
    curve = found.matrices["accuracy"].curve
    assert [n for n in curve.samples if n % 100 == 0] == list(range(100, 1401, 100))
    ends = [n for n, ended in zip(curve.samples, curve.ended, strict=True) if n % 100]
    assert ends == [290, 580, 870, 1160, 1438]  # the chunk that brings the last sample of each round
    right = [curve.scores[e, : curve.begun[e]].mean() for e in range(len(curve.samples))]
    widths = np.diff([0, *curve.samples])
    assert found.metrics["AAA"] == pytest.approx(np.sum(np.array(right) * widths) / 1438)


@pytest.mark.slow
def test_a_stream_that_was_cut_off_ends_as_if_it_had_not_been(tmp_path):
    fault = tmp_path / "fault"
    fault.touch()
    broken = training(f"if round == 9 and __import__('os').path.exists({str(fault)!r}):\n    raise OSError(1, 'cut')")
    exam = yaml_of("{name: online, rounds: 5, batch: 100, eval_every: 200}", "accuracy, AAA")
    [first] = sat(tmp_path / "a", exam, plugin=broken)
    assert first.status == "failed"
    assert len(first.rounds) == 3  # the untrained model and two rounds
    fault.unlink()
    again = ianvs.run(tmp_path / "a" / "benchmarkingjob.yaml")
    [resumed] = again
    assert resumed.status == "finished", resumed.failure
    [whole] = sat(tmp_path / "b", exam, plugin=MAJORITY)
    np.testing.assert_array_equal(resumed.matrices["accuracy"].values, whole.matrices["accuracy"].values)
    np.testing.assert_array_equal(resumed.matrices["accuracy"].curve.scores, whole.matrices["accuracy"].curve.scores)


def test_a_bound_in_a_stream_is_trained_once_per_round_on_all_so_far(tmp_path):
    plugin = edited(RECORDER, "class Majority:", "class Majority:\n    sees_past_rounds = True")
    found = calls(sat(tmp_path, yaml_of(STREAM), plugin=plugin))
    assert [(call["round"], len(call["ids"]), call["passes"]) for call in found] == [
        (k, n, None) for k, n in enumerate([288, 288, 291, 288, 283], 1)
    ]


# --- rules that are broken --------------------------------------------------------------------------------------------

HOARDER = edited(
    MAJORITY,
    "        for label in train_data",
    "        self.memory = list(range(40 * round))\n        for label in train_data",
)


def asking(method: str) -> str:
    """A plugin whose `method` asks for the task."""
    plugin = edited(
        MAJORITY,
        "def predict(self, data)",
        "def predict(self, data, **context)",
        "*, round, seed)",
        "*, round, seed, **context)",
    )
    at = "        for label in" if method == "train" else "        counts = {**"
    return edited(plugin, at, '        context["task"]\n' + at)


ONE_PASS = "the rules of this exam allow one pass over the data of chunk 1 of the stream"
EARLIER = training("if round == 2: list(self.kept.loader(10))\nself.kept = train_data")
HIDDEN = "labels of a test set are hidden; predict() gives them."
BROKEN = [  # (scenario, plugin, what is told, more of the testenv)
    (STREAM, training("for _ in range(2):\n    for batch in train_data.loader(10): pass"), ""),
    (STREAM, training("for _ in range(2):\n    train_data.x.sum()"), ""),
    (STREAM, training("train_data.tensors()\nlist(train_data.loader(10))"), ""),
    (STREAM, EARLIER, ""),
    (CIL, EARLIER, ""),
    (
        CIL,
        training("self.old = getattr(self, 'old', train_data); self.old.y"),
        "",
    ),
    (CIL, asking("predict"), ""),
    ("{name: online, rounds: 5}", asking("train"), ""),
    ("{name: task-free, rounds: 5}", asking("train"), ""),
    (
        "{name: blurred-boundary, rounds: 5, kind: blurry, M: 10}",
        asking("predict"),
        "",
    ),
    (
        CIL,
        edited(MAJORITY, "def predict(self, data)", "def predict(self, data, task)"),
        "",
    ),
    (CIL, edited(MAJORITY, "counts = {**self", "data.y\n        counts = {**self"), ""),
    (CIL, edited(MAJORITY, "return [max", "return data.y if self.counts else [max"), ""),
    (
        "{name: continual-pre-training, rounds: 5}",
        training("train_data.y"),
        "",
    ),
    (CIL, HOARDER, "budget: {memory_samples: 100}"),
]


@pytest.mark.parametrize(("scenario", "plugin", "more"), BROKEN, ids=range(len(BROKEN)))
def test_a_rule_that_is_broken_ends_the_case_and_is_named(tmp_path, scenario, plugin, more):
    printed(failure(sat(tmp_path, yaml_of(scenario, more=more), plugin=plugin)))


# --- budget -----------------------------------------------------------------------------------------------------------


def test_a_row_over_the_budget_can_be_marked_instead(tmp_path):
    budget = "budget: {memory_samples: 100, over: mark}"
    results = sat(tmp_path, yaml_of(CIL, more=budget), plugin=HOARDER)
    [found] = results
    assert len(found.over_budget) == 3
    printed(found.over_budget[0])
    [row] = results.leaderboard.rows
    assert row.rank is None
    assert row.status == "; ".join(found.over_budget) or row.status
    printed(row.status)
    assert "over" in (tmp_path / "ws" / "test" / "rank" / "selected_rank.csv").read_text().splitlines()[1]


def test_what_is_over_is_told_by_the_budget_of_now(tmp_path):
    loose, none = "budget: {memory_samples: 180, over: mark}", ""
    tight = sat(tmp_path, yaml_of(CIL, more="budget: {memory_samples: 100, over: mark}"), plugin=HOARDER)
    assert [len(found.over_budget) for found in tight] == [3]
    again = sat(tmp_path, yaml_of(CIL, more=loose), plugin=HOARDER)
    assert again.ran == 0
    [found] = again
    [over] = found.over_budget
    assert {"200", "180"} <= set(over.split())
    [loaded] = ianvs.load_results(tmp_path / "ws")
    assert loaded.over_budget == (over,)
    freed = sat(tmp_path, yaml_of(CIL, more=none), plugin=HOARDER)
    assert (freed.ran, [found.over_budget for found in freed]) == (0, [()])


def test_a_bound_is_not_held_to_the_budget(tmp_path):
    bound = edited(HOARDER, "class Majority:", "class Majority:\n    sees_past_rounds = True")
    twice = "list(train_data.loader(50)); list(train_data.loader(50))\n        "
    bound = edited(bound, "for label in train_data.y", f"{twice}for label in train_data.y")
    [found] = sat(tmp_path, yaml_of(CIL, more="budget: {passes: 1, memory_samples: 1}"), plugin=bound)
    assert (found.status, found.bound, found.over_budget) == ("finished", True, ())


def test_a_budget_of_passes_is_told_and_measured(tmp_path):
    budget = "budget: {passes: 2}"
    assert [call["passes"] for call in calls(sat(tmp_path / "a", yaml_of(CIL, more=budget)))] == [2] * 5
    greedy = training("for _ in range(3):\n    list(train_data.loader(50))")
    printed(failure(sat(tmp_path / "b", yaml_of(CIL, more=budget), greedy)))


def test_a_learner_within_the_budget_is_ranked(tmp_path):
    budget = "budget: {memory_samples: 200, round_seconds: 60}"
    [row] = sat(tmp_path, yaml_of(CIL, more=budget), plugin=HOARDER).leaderboard.rows
    assert row.rank == 1


# --- features ---------------------------------------------------------------------------------------------------------

SEER = edited(
    MAJORITY,
    "    def save",
    "    def features(self, data):\n        return data.x.reshape(len(data), -1)\n\n    def save",
)


@pytest.mark.slow
def test_a_linear_probe_tells_what_the_features_still_hold(tmp_path):
    exam = yaml_of(CIL, "accuracy, linear_probe_accuracy", "linear_probe: true")
    [found] = sat(tmp_path, exam, plugin=SEER)
    probed = found.matrices["linear_probe_accuracy"].values
    data = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml")["class-incremental"]
    for j, (round_, test) in enumerate(zip(data.rounds, data.tests, strict=True)):
        train, asked = data.dataset.train, data.dataset.test
        x, y = train.x[round_.train].reshape(len(round_.train), -1).astype(np.float32), train.y[round_.train]
        scaler = StandardScaler().fit(x)
        model = LogisticRegression(max_iter=1000).fit(scaler.transform(x), y)
        asked_x = asked.x[test.test].reshape(len(test.test), -1).astype(np.float32)
        expected = model.score(scaler.transform(asked_x), asked.y[test.test])
        assert probed[:, j] == pytest.approx([expected] * 6)
    assert np.all(probed > 0.9)


def test_a_learner_without_features_is_told_what_is_missing(tmp_path):
    assert errors_of(
        sat, tmp_path, yaml_of(CIL, "accuracy, linear_probe_accuracy", "linear_probe: true"), plugin=MAJORITY
    ) == [("broken-contract", f"{tmp_path}/algorithm.yaml:5:13")]


def test_a_probe_that_is_not_taken_is_refused_before_anything_runs(tmp_path):
    assert errors_of(sat, tmp_path, yaml_of(CIL, "accuracy, linear_probe_accuracy")) == [
        ("unrequested-scores", f"{tmp_path}/testenv.yaml:4:23")
    ]


# --- several exams ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_exam_of_a_job_has_its_own_ranking(tmp_path):
    path = write_job(tmp_path, testenv=yaml_of("{name: CIL, rounds: 5}"), job="engine: inline")
    text = (tmp_path / "testenv.yaml").read_text()
    (tmp_path / "other.yaml").write_text(edited(text, "CIL, rounds: 5", "IIL, rounds: 3"))
    path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    results = ianvs.run(path)
    assert len(results) == 4
    rows = results.leaderboard.rows
    assert [row.testenv for row in rows] == ["CIL", "CIL", "IIL", "IIL"]
    assert [rows[0].rank, rows[2].rank] == [1, 1]
    header, *rows = (tmp_path / "ws" / "test" / "rank" / "all_rank.csv").read_text().splitlines()
    assert header.startswith("Rank,Algorithm,Testenv,accuracy")
    assert [row.split(",")[2] for row in rows] == ["CIL", "CIL", "IIL", "IIL"]
    assert ianvs.run(path).ran == 0
    again = ianvs.load_results(tmp_path / "ws")
    assert [row.metrics["accuracy"].mean for row in again.leaderboard.rows] == [
        row.metrics["accuracy"].mean for row in results.leaderboard.rows
    ]


def test_a_shared_manifest_is_the_same_exam(tmp_path):
    plain = sat(tmp_path / "a", yaml_of("{name: CIL, rounds: 5, order_seed: 3}"))
    from ianvs.exam.scenarios.manifest import save_manifest

    (tmp_path / "b").mkdir()
    exam = ianvs.api.exams(tmp_path / "a" / "benchmarkingjob.yaml")["CIL"]
    save_manifest(exam, tmp_path / "b" / "exam.json")
    loaded = sat(tmp_path / "b", yaml_of("{name: manifest, file: ./exam.json}"))
    assert [call["ids"] for call in calls(loaded)] == [call["ids"] for call in calls(plain)]
    [one], [other] = plain, loaded
    np.testing.assert_array_equal(one.matrices["accuracy"].values, other.matrices["accuracy"].values)


def test_copies_of_a_learner_that_is_new_begin_with_its_initial_model(tmp_path):
    line = "        if round == self.fail_in_round:"
    plugin = edited(
        MAJORITY,
        "*, round, seed)",
        "*, round, seed, pretraining)",
        line,
        f"        if pretraining:\n            return\n{line}",
    )
    (tmp_path / "initial.txt").write_text("{0: 10000}")
    path = write_job(
        tmp_path,
        plugin=plugin,
        hyperparameters="",
        testenv=yaml_of("{name: continual-pre-training, rounds: 5}"),
        job="engine: inline",
    )
    algorithm = tmp_path / "algorithm.yaml"
    algorithm.write_text(
        edited(algorithm.read_text(), "algorithm:\n", "algorithm:\n  initial_model_url: ./initial.txt\n")
    )
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    values = found.matrices["accuracy"].values
    assert np.all(values[:, 1:] == 0)  # whatever a copy was adapted on, its initial model answers class 0
    assert np.all(values[:, 0] == values[0, 0])
    assert values[0, 0] > 0.4
