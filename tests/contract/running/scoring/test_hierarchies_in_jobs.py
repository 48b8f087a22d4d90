"""A tree over the classes beside an exam: what it changes, and what a job with a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.running.planning.identity import metric_key
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.jobs import TESTENV, write_job

TREE = "digit: {even: [0, 2, 4, 6, 8], odd: [1, 3, 5, 7, 9]}"
HALVES = "digit: {low: [0, 1, 2, 3, 4], high: [5, 6, 7, 8, 9]}"
SCORES = "[accuracy, superclass_accuracy, {name: BWT, of: lca_height}]"
MINE = '''
from ianvs.exam.metrics import score_metric


@score_metric("same_parent", formula="share of answers with the parent of the truth", source="mine")
def same_parent(record):
    """Share of answers that have the parent of the truth."""
    parents = dict(record.hierarchy)
    said = [[parents[record.classes[c]] for c in labels] for labels in (record.y_true, record.y_pred)]
    return sum(map(str.__eq__, *said)) / len(said[0])
'''


def exam(tree: str = TREE, metrics: str = SCORES) -> str:
    hierarchy = f", hierarchy: {{{tree}}}" if tree else ""
    text = edited(TESTENV, "{name: digits}", f"{{name: digits{hierarchy}}}")
    return edited(text, "[{name: accuracy}, {name: BWT}]", metrics)


def job(folder: Path, testenv: str) -> Path:
    return write_job(folder, testenv=testenv, hyperparameters="", job="seeds: [0]\nengine: inline")


def refused(path: Path) -> list[Found]:
    """Code and location in the testenv of what validate refuses, which a run has to say as well."""
    said = []
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            command(path)
        said.append(caught.value.problems)
    assert said[0] == said[1]
    return [(code, location.rpartition("/")[2]) for code, location in recorded(said[0])]


@pytest.mark.slow
def test_a_tree_and_a_change_of_it_are_computed_from_what_is_stored(tmp_path: Path) -> None:
    [before] = ianvs.run(job(tmp_path, exam("", "[accuracy]")))
    found = {}
    for tree in (TREE, HALVES):
        path = job(tmp_path, exam(tree))
        [planned] = ianvs.plan(path)
        assert (planned.case, planned.action) == (before.case, "score")
        [after] = ianvs.run(path)
        assert after.metrics["accuracy"] == before.metrics["accuracy"]
        found[tree] = after.matrices["superclass_accuracy"].values[-1]
    # Each answer is the same digit, and a test set holds two that follow each other: one is even, and the other odd.
    assert found[TREE] == pytest.approx([0.5] * 5, abs=0.02)
    assert sorted(found[HALVES]) == pytest.approx([0, 0, 0.5, 1, 1], abs=0.02)
    assert after.metrics["BWT of lca_height"] == 0


@pytest.mark.slow
def test_only_what_reads_the_tree_is_stored_by_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    metrics = "[accuracy, hF1, {name: same_parent, url: ./mine.py}]"
    one, two = (ianvs.validate(job(tmp_path, exam(tree, metrics))).testenvs[0].metrics for tree in (TREE, HALVES))
    assert [metric_key(a) == metric_key(b) for a, b in zip(one, two, strict=True)] == [True, False, False]
    [plain] = ianvs.validate(job(tmp_path, exam("", "[accuracy]"))).testenvs[0].metrics
    assert metric_key(plain) == metric_key(one[0])


def test_an_authors_metric_is_handed_the_tree(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    metrics = "[accuracy, superclass_accuracy, {name: same_parent, url: ./mine.py}]"
    [found] = ianvs.run(job(tmp_path, exam(TREE, metrics)))
    assert found.metrics["same_parent"] == found.metrics["superclass_accuracy"]


def test_a_gate_may_decide_by_the_tree_which_then_tells_cases_apart(tmp_path: Path) -> None:
    gate = "model_eval: {model_metric: {name: superclass_accuracy}, operator: '>=', threshold: 0, mode: absolute}\n"
    [even] = ianvs.run(job(tmp_path, exam(TREE, "[accuracy]") + gate))
    [halves] = ianvs.run(job(tmp_path, exam(HALVES, "[accuracy]") + gate))
    assert even.metrics["accuracy"] == halves.metrics["accuracy"]
    assert even.case.id != halves.case.id


def test_a_class_that_is_no_node_is_refused_by_its_name(tmp_path: Path) -> None:
    path = job(tmp_path, exam(edited(TREE, ", 9]", ", nine]")))
    assert refused(path) == [("invalid-hierarchy", "testenv.yaml:2:38")]


def test_the_same_tree_is_checked_where_the_exam_is_there_already(tmp_path: Path) -> None:
    ianvs.run(job(tmp_path, exam("", "[accuracy]")))
    path = job(tmp_path, exam(edited(TREE, ", 9]", "]"), "[accuracy]"))
    assert errors_of(ianvs.validate, path) == [("invalid-hierarchy", f"{tmp_path}/testenv.yaml:2:38")]


@pytest.mark.parametrize(("metrics", "name"), [("[accuracy, hF1]", "hF1"), (SCORES, "superclass_accuracy")])
def test_a_score_that_needs_a_tree_is_refused_without_one(tmp_path: Path, metrics: str, name: str) -> None:
    path = job(tmp_path, exam("", metrics))
    (code, location), *_ = refused(path)
    _, line, column = location.split(":")
    text = (tmp_path / "testenv.yaml").read_text().splitlines()[int(line) - 1]
    assert code == "unfit-metric" and text[int(column) - 1 :].lstrip("{").removeprefix("name: ").startswith(name)


def test_a_score_that_only_another_one_names_is_refused_too(tmp_path: Path) -> None:
    assert refused(job(tmp_path, exam("", "[accuracy, {name: BWT, of: lca_height}]"))) == [
        ("unfit-metric", "testenv.yaml:4:30")
    ]


def test_texts_have_no_classes(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"question": "one?", "answer": "1"}\n{"question": "two?", "answer": "2"}\n')
    data = "dataset: {train_data: ./talk.jsonl, test_data: ./talk.jsonl, hierarchy: {a: b}}\n"
    path = job(tmp_path, f"{data}incremental_rounds: 1\nmetrics: [exact_match]\n")
    path.write_text(edited(path.read_text(), "accuracy: descend", "exact_match: descend"))
    assert refused(path) == [("invalid-hierarchy", "testenv.yaml:2:75")]
