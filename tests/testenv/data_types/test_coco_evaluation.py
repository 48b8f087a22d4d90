"""COCO's scores: the worked values, pycocotools, and matching in plain loops."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from ianvs.base.types import ScoreMatrix
from ianvs.exam.metrics import find
from ianvs.testenv.data_types.detection import box_overlaps
from ianvs.testenv.data_types.detection.box_checks import pack_answers, pack_labels
from ianvs.testenv.data_types.detection.coco_evaluation import CocoEvaluation, coco_evaluation, mean_over
from ianvs.testenv.data_types.detection.detection_rounds import forgetting_points, old_and_new
from ianvs.testenv.data_types.detection.packed_boxes import box_areas, containing, take, unpack
from tests.testenv.data_types.boxes import CASES, GOLDEN, Target, scenes

OURS = {"AP_small": "AP_S", "AP_medium": "AP_M", "AP_large": "AP_L"}
ARRIVAL = GOLDEN["class_incremental"]


def evaluated(truths: list[Target], answers: list[Target], classes: int) -> CocoEvaluation:
    packed = pack_answers(answers, len(truths), classes, max_detections=10**9)
    return coco_evaluation(pack_labels(truths, classes), packed, classes)


def numbers(values: Any) -> list[float]:
    """null as nan."""
    return [np.nan if value is None else value for value in values]


@pytest.mark.parametrize("name", CASES)
def test_the_worked_values_are_met(name: str) -> None:
    case = CASES[name]
    found = evaluated(case["truth"], case["answers"], case["classes"])
    expected = dict(case["coco"])
    by_class, at_half = expected.pop("AP_per_class"), expected.pop("AP50_per_class")
    scores = found.scores()
    assert [scores[OURS.get(key, key)] for key in expected] == pytest.approx(
        numbers(expected.values()), rel=0, abs=1e-9, nan_ok=True
    )
    assert found.by_class == pytest.approx(numbers(by_class), rel=0, abs=1e-9, nan_ok=True)
    assert found.precision[:, 0, 0] == pytest.approx(numbers(at_half), rel=0, abs=1e-9, nan_ok=True)


def test_the_worked_score_matrix_of_classes_that_arrive() -> None:
    classes, groups = ARRIVAL["classes"], ARRIVAL["groups"]
    truths = pack_labels(ARRIVAL["truth"], classes)
    rounds = [pack_answers(answers, len(ARRIVAL["truth"]), classes) for answers in ARRIVAL["answers_after_round"]]
    whole = [coco_evaluation(truths, answers, classes).by_class for answers in rounds]
    R = np.array([[mean_over(row, group) for group in groups] for row in whole])
    np.testing.assert_allclose(R, ARRIVAL["R_classes"], rtol=0, atol=1e-9)
    seen = [mean_over(row, range(groups[k][-1] + 1)) for k, row in enumerate(whole)]
    assert seen == pytest.approx(ARRIVAL["AP_of_all_seen"], rel=0, abs=1e-9)
    assert old_and_new(whole[-1], groups) == pytest.approx((ARRIVAL["AP_old"], ARRIVAL["AP_new"]), rel=0, abs=1e-9)
    points = forgetting_points(whole[0], whole[-1], groups[0])
    assert points == pytest.approx(ARRIVAL["FPP_of_first_group"], rel=0, abs=1e-9)
    matrix = ScoreMatrix.of(R)
    for name in ("BWT", "FM"):
        metric = find(name)
        assert metric is not None
        assert metric.function is not None
        assert metric.function(matrix) == pytest.approx(ARRIVAL[name], rel=0, abs=1e-9)


def test_pictures_without_an_object_of_the_classes_hide_false_alarms() -> None:
    classes, groups = ARRIVAL["classes"], ARRIVAL["groups"]
    truths = pack_labels(ARRIVAL["truth"], classes)
    for row, answers in zip(ARRIVAL["R_pictures"], ARRIVAL["answers_after_round"], strict=True):
        packed = pack_answers(answers, len(ARRIVAL["truth"]), classes)
        for expected, group in zip(row, groups, strict=True):
            where = containing(truths, group)
            part = coco_evaluation(take(truths, where), take(packed, where), classes)
            assert mean_over(part.by_class, group) == pytest.approx(expected, rel=0, abs=1e-9)


# --- pycocotools ------------------------------------------------------------------------------------------------------


def pycocotools_scores(truths: list[Target], answers: list[Target], classes: int) -> tuple[Any, Any]:
    """(the twelve of `stats` with nan for -1, AP by class)"""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def rows(targets: list[Target]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for picture, target in enumerate(targets):
            for i, (x, y, right, bottom) in enumerate(target["boxes"]):
                row = {"id": len(found) + 1, "image_id": picture, "category_id": target["labels"][i]}
                row |= {"bbox": [x, y, right - x, bottom - y], "area": (right - x) * (bottom - y), "iscrowd": 0}
                row |= {"score": 0}
                row |= {key[: -1 if key == "scores" else None]: target[key][i] for key in target if key[-1] != "s"}
                row["score"] = target["scores"][i] if "scores" in target else 0
                found.append(row)
        return found

    with contextlib.redirect_stdout(io.StringIO()):
        truth, found = COCO(), COCO()
        shared = {"images": [{"id": i} for i in range(len(truths))], "categories": [{"id": c} for c in range(classes)]}
        truth.dataset, found.dataset = shared | {"annotations": rows(truths)}, shared | {"annotations": rows(answers)}
        truth.createIndex()
        found.createIndex()
        evaluation = COCOeval(truth, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]
    by_class = np.where((precision > -1).all(axis=(0, 1)), precision.mean(axis=(0, 1)), np.nan)
    return np.where(evaluation.stats == -1, np.nan, evaluation.stats), by_class


def assert_as_pycocotools(truths: list[Target], answers: list[Target], classes: int) -> None:
    stats, by_class = pycocotools_scores(truths, answers, classes)
    found = evaluated(truths, answers, classes)
    names = ("AP", "AP50", "AP75", "AP_S", "AP_M", "AP_L", "AR_1", "AR_10", "AR_100")
    scores = found.scores()
    assert [scores[name] for name in names] == pytest.approx(stats[:9].tolist(), rel=0, abs=1e-12, nan_ok=True)
    assert found.by_class == pytest.approx(by_class, rel=0, abs=1e-12, nan_ok=True)


@settings(max_examples=150, deadline=None)
@given(scene=scenes())
def test_scores_are_those_of_pycocotools(scene: tuple[list[Target], list[Target]]) -> None:
    assert_as_pycocotools(*scene, classes=3)


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_crowded_pictures_are_those_of_pycocotools(seed: int) -> None:
    """Hundreds of answers a picture, with ties of scores and overlaps, crowds, and more than 100 of a class."""
    draw = np.random.default_rng(seed)

    def drawn(count: int) -> Target:
        corners, sizes = draw.integers(0, 400, (count, 2)) / 2, draw.integers(0, 260, (count, 2)) / 2
        return {"boxes": np.hstack([corners, corners + sizes]).tolist(), "labels": draw.integers(0, 2, count).tolist()}

    counts = [0, 40, 7, 0, 25]
    truths = [drawn(count) | {"iscrowd": (draw.random(count) < 0.1).astype(int).tolist()} for count in counts]
    answers = [drawn(count) for count in (300, 400, 0, 0, 350)]
    for answer in answers:
        answer["scores"] = (draw.integers(0, 30, len(answer["labels"])) / 30).tolist()
    assert_as_pycocotools(truths, answers, classes=2)


# --- plain loops ------------------------------------------------------------------------------------------------------


def naive_hits(truth: list[Any], answers: list[Any], threshold: float) -> list[bool | None]:
    """Of one picture and class, for each answer from the highest score down: right, wrong, or None for ignored.

    truth: (box, crowd). Written from the rules, sharing nothing with what is tested.
    """
    free, hits = set(range(len(truth))), []
    for box, _ in sorted(answers, key=lambda answer: -answer[1])[:100]:
        best: tuple[bool, float, int] | None = None
        for i, (other, crowd) in enumerate(truth):
            width = min(box[2], other[2]) - max(box[0], other[0])
            height = min(box[3], other[3]) - max(box[1], other[1])
            inside = max(0.0, width) * max(0.0, height)
            areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
            whole = areas[0] if crowd else sum(areas) - inside
            iou = inside / whole if inside else 0.0
            if iou >= threshold and (crowd or i in free) and (best is None or (not crowd, iou, i) > best):
                best = (not crowd, iou, i)
        hits.append(None if best and not best[0] else best is not None)
        if best:
            free.discard(best[2])
    return hits


def naive_ap(truths: list[Target], answers: list[Target], label: int, threshold: float) -> float:
    judged, count = [], 0
    for target, answer in zip(truths, answers, strict=True):
        own = [i for i, other in enumerate(target["labels"]) if other == label]
        truth = [(target["boxes"][i], target["iscrowd"][i]) for i in own]
        count += sum(not crowd for _, crowd in truth)
        mine = [i for i, other in enumerate(answer["labels"]) if other == label]
        found = [(answer["boxes"][i], answer["scores"][i]) for i in mine]
        scores = sorted((score for _, score in found), reverse=True)[:100]
        judged += zip(scores, naive_hits(truth, found, threshold), strict=True)
    if not count:
        return float("nan")
    kept = [hit for _, hit in sorted(judged, key=lambda each: -each[0]) if hit is not None]
    points = [(sum(kept[:n]) / count, sum(kept[:n]) / n) for n in range(1, len(kept) + 1)]
    sampled = [max((p for r, p in points if r >= k / 100 - 1e-12), default=0.0) for k in range(101)]
    return sum(sampled) / 101


@settings(max_examples=100, deadline=None)
@given(scene=scenes(classes=2))
def test_precision_is_that_of_plain_loops(scene: tuple[list[Target], list[Target]]) -> None:
    found = evaluated(*scene, classes=2).precision
    for label in range(2):
        for t in (0, 5, 9):
            expected = naive_ap(*scene, label, 0.5 + 0.05 * t - 1e-12)
            assert found[label, 0, t] == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True)


@settings(max_examples=40, deadline=None)
@given(scene=scenes())
def test_blocks_of_pairs_change_no_score(scene: tuple[list[Target], list[Target]]) -> None:
    whole = evaluated(*scene, classes=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_overlaps, "_BLOCK", 3)
        in_blocks = evaluated(*scene, classes=3)
    np.testing.assert_array_equal(whole.precision, in_blocks.precision)
    np.testing.assert_array_equal(whole.recall, in_blocks.recall)


def test_a_perfect_answer_has_the_epsilon_of_the_source() -> None:
    truth = [{"boxes": [[0, 0, 10, 10]], "labels": [0]}]
    found = evaluated(truth, [truth[0] | {"scores": [1.0]}], 1)
    assert 1 - 3e-16 <= found.scores()["AP"] < 1


def test_the_area_of_the_annotation_counts_before_that_of_the_box() -> None:
    box: Target = {"boxes": [[0, 0, 100, 100]], "labels": [0]}
    answers = [box | {"scores": [1.0]}]
    of_box, of_mask = evaluated([box], answers, 1).scores(), evaluated([box | {"area": [500]}], answers, 1).scores()
    assert (of_box["AP_L"] > 0.9, np.isnan(of_box["AP_S"])) == (True, True)
    assert (of_mask["AP_S"] > 0.9, np.isnan(of_mask["AP_L"])) == (True, True)


def test_average_precision_of_a_class_does_not_depend_on_other_classes() -> None:
    case = CASES["random_with_crowd_and_ties"]
    truths = pack_labels(case["truth"], 3)
    answers = pack_answers(case["answers"], len(case["truth"]), 3)
    whole = coco_evaluation(truths, answers, 3).by_class
    for label in range(3):
        rows = [[{k: v[t["labels"] == label] for k, v in t.items()} for t in unpack(p)] for p in (truths, answers)]
        alone = coco_evaluation(pack_labels(rows[0], 3), pack_answers(rows[1], len(rows[1]), 3), 3)
        assert alone.by_class[label] == whole[label]
    assert (box_areas(truths["boxes"]) >= 0).all()


def test_of_two_truths_that_overlap_alike_the_later_is_taken() -> None:
    truth: Target = {"boxes": [[0, 0, 10, 10], [4, 0, 14, 10]], "labels": [0, 0]}
    answer: Target = {"boxes": [[2, 0, 12, 10], [4, 0, 14, 10]], "labels": [0, 0], "scores": [0.9, 0.8]}
    assert_as_pycocotools([truth], [answer], classes=1)
    # The first answer takes the second truth, so the second answer, which fits that one, has none left.
    assert evaluated([truth], [answer], 1).recall[0, 2, 0] == 0.5
