"""A case that was written by the store's own writers, scored, against values worked by hand.

Two rounds of two classes, a test set of four samples for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import DamagedError, PluginError
from ianvs.base.types import PredictionKey, Predictions, RoundResult, ScoreMatrix, TestCase
from ianvs.config.spec import DatasetSpec, MetricSpec, TestEnvSpec
from ianvs.exam.metrics.registry import resolve
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.running.scoring import score_case
from ianvs.store import CaseStore, ExamRecord, ExamStore
from ianvs.store.stored_score import StoredScore
from tests.errors import errors_of, located, raised

TRUTH = ([0, 0, 1, 1], [2, 2, 3, 3])
SAID: tuple[dict[int, list[int]], ...] = (  # after each round, of each test set
    {0: [0, 3, 3, 3], 1: [2, 0, 0, 0]},
    {0: [0, 0, 1, 3], 1: [2, 2, 0, 0]},
    {0: [0, 2, 2, 3], 1: [2, 2, 3, 2]},
)
ACCURACY = [[0.25, 0.25], [0.75, 0.5], [0.25, 0.75]]
CASE = TestCase("c1", "r1", "mine", "incrementallearning", (("basemodel", "Mine"),), {}, 0)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    exam(tmp_path)
    case(tmp_path)
    return tmp_path


def exam(workspace: Path, truth: tuple[list[int], ...] = TRUTH, **rules: object) -> None:
    classes = tuple(tuple(sorted(set(labels))) for labels in truth)
    record = ExamRecord(
        dataset="four classes",
        kind="classification",
        classes=("a", "b", "c", "d"),
        rounds=("one", "two"),
        tests=("one", "two"),
        rules={"scenario": "class-incremental", **rules},
        round_classes=classes,
        test_classes=classes,
        test_earlier=((), classes[0]),
        notes=(),
        shape=(1,),
    )
    ExamStore(workspace).write("e1", record, [np.array(labels) for labels in truth], {"tests": []})


def case(
    workspace: Path,
    said: tuple[Mapping[int, list[int]], ...] = SAID,
    between: Mapping[int, Mapping[PredictionKey, list[int]]] | None = None,
    **extras: list[int],
) -> None:
    """between: by round, what was answered within it, of a stream. extras: what else is said of each sample."""
    store, more = CaseStore(workspace), {name: np.array(values) for name, values in extras.items()}
    store.begin(CASE, {"exam_id": "e1"})
    for index, answers in enumerate(said):
        within = (between or {}).get(index, {})
        asked = {**{PredictionKey(j): labels for j, labels in answers.items()}, **within}
        when = (*sorted({(one.samples or 0, index, index - 1) for one in within}), (index * 100, index, index))
        with store.new_round(CASE.id, index) as folder:
            folder.write(
                RoundResult(index, f"round {index}", examined=when if within else ()),
                predictions={one: Predictions(np.array(labels), more) for one, labels in asked.items()},
            )


def score(workspace: Path, *metrics: str | MetricSpec, until: int | None = None) -> list[StoredScore]:
    """What is stored of each metric, after scoring."""
    specs = [MetricSpec(metric) if isinstance(metric, str) else metric for metric in metrics]
    unread = (
        "algorithm splitting_method as_one identity train_ratio threads apart generation memory_mb saved_mb code "
        "provenance job started_in"
    )
    scores = tuple((spec, metric_key(spec)) for spec in specs)
    request = {"case": CASE, "exam_id": "e1", "workspace": workspace, "scores": scores, "device": "cpu", "until": until}
    request["testenv"] = TestEnvSpec(dataset=DatasetSpec(), metrics=())
    score_case(CaseRequest(**dict.fromkeys([*unread.split(), "secrets", "working_directory"]), **request))  # type: ignore[arg-type]
    found = [CaseStore(workspace).score(CASE.id, key, until) for _, key in scores]
    return [one for one in found if one is not None]


def own(folder: Path, code: str) -> MetricSpec:
    """A metric `mine` of an author's file."""
    file = folder / "mine.py"
    file.write_text(f"def mine(y_true, y_pred):\n    {code}\n")
    return MetricSpec("mine", url=file)


def over(found: StoredScore, metric: str) -> float:
    """A metric over the matrix of a score that is stored."""
    function = resolve(MetricSpec(metric)).function
    assert function is not None
    return float(function(ScoreMatrix(found.values)))  # type: ignore[arg-type]


def test_each_test_set_has_a_score_after_each_round_and_of_the_untrained_model(workspace: Path) -> None:
    [found] = score(workspace, "accuracy")
    assert found.values.tolist() == ACCURACY
    assert found.between == {}


def test_bwt_and_fwt_are_those_of_the_stored_scores(workspace: Path) -> None:
    [found] = score(workspace, "accuracy")
    assert over(found, "BWT") == 0.25 - 0.75  # the first test set, after round 2 and after its own
    assert over(found, "FWT") == 0.5 - 0.25  # the second, before its own round and untrained


def test_each_score_reads_the_hierarchy_of_its_own_exam(workspace: Path) -> None:
    """Exams with other trees may share a reference run."""
    above = {"x": "all", "y": "all"}
    pairs, others = ({"a": "x", "b": b, "c": c, "d": "y"} | above for b, c in (("x", "y"), ("y", "x")))
    trees = [tuple(sorted(tree.items())) for tree in (pairs, others)]
    one, plain, two = score(
        workspace,
        MetricSpec("superclass_accuracy", dataset_columns={"hierarchy": trees[0]}),
        "accuracy",
        MetricSpec("superclass_accuracy", dataset_columns={"hierarchy": trees[1]}),
    )
    assert plain.values.tolist() == ACCURACY
    assert one.values[-1].tolist() == [0.25, 1.0]
    assert two.values[-1].tolist() == [0.75, 0.75]


def test_parts_are_stored_beside_the_number(workspace: Path) -> None:
    [found] = score(workspace, "per_class_accuracy")
    assert found.details[1] == [
        {"a": 1.0, "b": 0.5},
        {"c": 1.0, "d": 0.0},
    ]
    assert np.isnan(found.values).all()  # a mapping without a part of its own name has no number


def test_a_test_set_that_was_not_asked_has_no_score(tmp_path: Path) -> None:
    exam(tmp_path)
    case(tmp_path, ({}, {0: SAID[1][0]}, SAID[2]))
    [found] = score(tmp_path, "accuracy")
    np.testing.assert_array_equal(found.values, [[math.nan, math.nan], [0.75, math.nan], [0.25, 0.75]])
    assert over(found, "BWT") == -0.5
    assert math.isnan(over(found, "FWT"))


def test_what_a_metric_can_not_compute_is_null(workspace: Path) -> None:
    [found] = score(workspace, own(workspace, "return float('nan') if 1 in y_true else 1"))
    np.testing.assert_array_equal(found.values, [[math.nan, 1]] * 3)


def test_the_groups_that_are_left_out_are_of_the_last_round_and_the_same_for_every_metric(workspace: Path) -> None:
    accuracy, mine = score(workspace, "accuracy", own(workspace, "return (y_true == y_pred).mean()"))
    assert accuracy.left_out is not None
    assert accuracy.left_out.shape == (4, 2)  # as many groups as there are samples, fewer than twenty
    # Without the one right answer of four none of three is right; without one of the wrong ones a third is.
    np.testing.assert_allclose(np.sort(accuracy.left_out[:, 0]), [0, 1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(np.sort(accuracy.left_out[:, 1]), [2 / 3, 2 / 3, 2 / 3, 1])
    assert mine.left_out is not None
    np.testing.assert_allclose(mine.left_out, accuracy.left_out)


def test_every_round_is_scored_without_each_of_a_few_groups(workspace: Path) -> None:
    """For what is computed over rounds; here there are as many groups as samples."""
    [found] = score(workspace, "accuracy")
    assert found.left_out_in_rounds is not None
    assert found.left_out_in_rounds.shape == (4, 3, 2)
    np.testing.assert_allclose(found.left_out_in_rounds[:, -1], found.left_out)
    np.testing.assert_allclose(np.sort(found.left_out_in_rounds[:, 0, 0]), [0, 1 / 3, 1 / 3, 1 / 3])


def test_what_was_not_asked_before_training_is_nan_without_a_group_too(tmp_path: Path) -> None:
    exam(tmp_path)
    case(tmp_path, ({}, *SAID[1:]))
    [found] = score(tmp_path, "accuracy")
    assert found.left_out_in_rounds is not None
    assert np.isnan(found.left_out_in_rounds[:, 0]).all()
    assert not np.isnan(found.left_out_in_rounds[:, 1:]).any()


def test_nothing_is_left_out_of_a_single_sample_nor_where_a_metric_needs_all(tmp_path: Path) -> None:
    exam(tmp_path, ([0], [2, 3]))
    case(tmp_path, ({0: [0], 1: [2, 2]},) * 3)
    assert score(tmp_path, "accuracy")[0].left_out is None
    exam(tmp_path)
    case(tmp_path)
    [found] = score(tmp_path, own(tmp_path, "return None if len(y_true) < 4 else 1"))  # None is refused
    assert found.values.tolist() == [[1, 1]] * 3
    assert found.left_out is None


def test_a_metric_that_is_added_later_leaves_the_others_as_they_are(workspace: Path) -> None:
    score(workspace, "accuracy")
    before = CaseStore(workspace).scores("c1")
    accuracy, f1 = score(workspace, "accuracy", "f1")
    assert before.items() < CaseStore(workspace).scores("c1").items()
    assert accuracy.values.tolist() == ACCURACY
    # After round 1 both of a are found, one of the two of b, and one is taken for d: F1 1, 2/3 and 0.
    assert f1.values[1, 0] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_where_all_scores_are_there_nothing_is_read(workspace: Path) -> None:
    score(workspace, "accuracy")
    (workspace / "exams" / "e1" / "exam.json").unlink()
    [found] = score(workspace, "accuracy")
    assert found.values.tolist() == ACCURACY


def test_an_exam_that_is_gone_is_told(workspace: Path) -> None:
    (workspace / "exams" / "e1" / "exam.json").unlink()
    with pytest.raises(FileNotFoundError, match="e1 "):
        score(workspace, "accuracy")


@pytest.mark.parametrize("file", ["exams/e1/truth.npz", "cases/c1/rounds/1/predictions.npz"])
def test_labels_that_were_changed_are_not_scored(workspace: Path, file: str) -> None:
    other = {"0": np.array(TRUTH[0]), "1": np.array(TRUTH[1])}
    np.savez_compressed(workspace / file, **other)  # type: ignore[arg-type]
    if file.startswith("exams"):
        with pytest.raises(DamagedError):
            score(workspace, "accuracy")
    else:
        assert score(workspace, "accuracy")[0].values.tolist() == ACCURACY[:1]  # rounds end before it


def test_an_authors_metric_that_fails_is_named_with_its_line_and_no_score_is_kept(workspace: Path) -> None:
    with pytest.raises(PluginError, match=r"mine\.py") as caught:
        score(workspace, "accuracy", own(workspace, "return 1 / int((y_true == y_pred).all())"))
    assert located(raised(caught.value)) == [("failed-plugin", "")]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert not (workspace / "cases" / "c1" / "scores.json").exists()


def test_an_authors_metric_of_which_there_is_none_is_told(workspace: Path) -> None:
    named = own(workspace, "return 1")
    named.url.write_text("def other(y_true, y_pred):\n    return 1\n")  # type: ignore[union-attr]
    assert errors_of(score, workspace, named) == [("unloadable-plugin", "")]


def test_examinations_within_a_round_stand_beside_the_rounds(tmp_path: Path) -> None:
    exam(tmp_path)
    case(
        tmp_path,
        between={
            2: {
                PredictionKey(0, 120): [0, 0, 1, 1],
                PredictionKey(1, 120): [2, 0, 0, 0],
                PredictionKey(1, 160): [2, 2, 3, 0],
            }
        },
    )
    [found] = score(tmp_path, "accuracy")
    assert found.values.tolist() == ACCURACY
    assert found.between.keys() == {120, 160}
    assert found.between[120].tolist() == [1.0, 0.25]
    np.testing.assert_array_equal(found.between[160], [math.nan, 0.75])


def test_of_a_case_that_pauses_the_first_rounds_are_scored_apart(workspace: Path) -> None:
    [found] = score(workspace, "accuracy", until=1)
    assert found.values.tolist() == ACCURACY[:2]
    assert not CaseStore(workspace).scores("c1")
    assert score(workspace, "accuracy")[0].values.tolist() == ACCURACY


@pytest.mark.parametrize(
    ("unseen", "expected"),
    [
        ("none", [math.nan, math.nan, math.nan]),
        ("rounds", [1, 1, 0.5]),  # the second test set is of what is taught in round 2
        ("classes", [1, 0.5, 0.5]),  # and has no other classes than round 1
    ],
)
def test_what_was_not_taught_yet_is_told_to_a_metric(tmp_path: Path, unseen: str, expected: list[float]) -> None:
    exam(tmp_path, (TRUTH[0], TRUTH[0]), unseen=unseen)
    never = [-1] * 4
    case(tmp_path, ({0: never, 1: never}, {0: TRUTH[0], 1: never}, {0: TRUTH[0], 1: never}))
    [found] = score(tmp_path, "open_set_accuracy")
    np.testing.assert_array_equal(found.values[:, 0], expected)


def test_a_pooled_metric_is_of_the_samples_of_all_test_sets_that_were_asked(tmp_path: Path) -> None:
    exam(tmp_path)
    case(tmp_path, ({}, {0: SAID[1][0]}, SAID[2]), route=[0, 0, 0, 1])
    [found] = score(tmp_path, "edge_accuracy")
    assert found.values.shape == (3, 1)
    np.testing.assert_allclose(found.values[:, 0], [math.nan, 1, (1 + 3) / (3 + 3)])
