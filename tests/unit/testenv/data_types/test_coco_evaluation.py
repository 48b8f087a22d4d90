"""COCO's scores: the worked values, pycocotools, and matching in plain loops."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import find
from ianvs.exam.metrics.definition import mean
from ianvs.exam.metrics.metric import EvaluationRecord, PartialRecord
from ianvs.running.sample_groups import _drawn
from ianvs.running.scoring import _part_scores, pool_records
from ianvs.testenv.data_types.detection import box_overlaps, coco_evaluation
from ianvs.testenv.data_types.detection.box_matches import BoxMatches
from ianvs.testenv.data_types.detection.coco_evaluation import coco_matches, coco_precision, coco_recall
from tests.unit.testenv.data_types.boxes import CASES, GOLDEN, Target, columns, record, scenes

ARRIVAL = GOLDEN["class_incremental"]
NAMES = {"AP_small": "AP_S", "AP_medium": "AP_M", "AP_large": "AP_L"}


def evaluated(truths: list[Target], answers: list[Target], classes: int) -> BoxMatches:
    return coco_matches(*columns(truths, answers, classes))


def scores(matches: BoxMatches) -> dict[str, float]:
    parts = {"AP": coco_precision(matches), "AP50": coco_precision(matches, 0, slice(0, 1))}
    parts |= {"AP75": coco_precision(matches, 0, slice(5, 6))}
    parts |= {f"AP_{size}": coco_precision(matches, area) for area, size in enumerate("SML", 1)}
    parts |= {f"AR_{limit}": coco_recall(matches, limit) for limit in (1, 10, 100)}
    return {name: mean(values[~np.isnan(values)]) for name, values in parts.items()}


def numbers(values: Any) -> list[float]:
    """null as nan."""
    return [np.nan if value is None else value for value in values]


def score(name: str, seen: EvaluationRecord) -> Any:
    metric = find(name)
    assert metric is not None
    assert metric.function is not None
    return metric.function(seen)


@pytest.mark.parametrize("name", CASES)
def test_the_worked_values_are_met(name: str) -> None:
    case = CASES[name]
    seen = record(case["truth"], case["answers"], case["classes"], most=10**9)
    expected = dict(case["coco"])
    by_class, at_half = expected.pop("AP_per_class"), expected.pop("AP50_per_class")
    matches = evaluated(case["truth"], case["answers"], case["classes"])
    found = scores(matches)
    assert [found[NAMES.get(key, key)] for key in expected] == pytest.approx(
        numbers(expected.values()), rel=0, abs=1e-9, nan_ok=True
    )
    for key in expected:
        key = NAMES.get(key, key)
        assert score(key, seen) == pytest.approx(found[key], rel=0, abs=0, nan_ok=True), key
    assert list(score("per_class_AP", seen).values()) == pytest.approx(numbers(by_class), rel=0, abs=1e-9, nan_ok=True)
    assert coco_precision(matches, 0, slice(0, 1)) == pytest.approx(numbers(at_half), rel=0, abs=1e-9, nan_ok=True)


def test_the_worked_score_matrix_of_classes_that_arrive() -> None:
    truths, groups = ARRIVAL["truth"], ARRIVAL["groups"]
    R = np.array(
        [
            [score("AP", record(truths, answers, ARRIVAL["classes"], labels=tuple(group))) for group in groups]
            for answers in ARRIVAL["answers_after_round"]
        ]
    )
    np.testing.assert_allclose(R, ARRIVAL["R_classes"], rtol=0, atol=1e-9)
    for name, key in (("BWT", "BWT"), ("FM", "FM"), ("FPP", "FPP_of_first_group")):
        metric = find(name)
        assert metric is not None
        assert metric.function is not None
        assert metric.function(ScoreMatrix.from_rounds(R)) == pytest.approx(ARRIVAL[key], rel=0, abs=1e-9)


def arrivals(k: int, kept: list[list[int]] | None = None) -> list[EvaluationRecord | None]:
    """What is known of each test set after round k = 1, 2, ...; kept: the pictures of each; None: all."""
    truths, groups, answers = ARRIVAL["truth"], ARRIVAL["groups"], ARRIVAL["answers_after_round"][k - 1]
    of = [list(range(len(truths)))] * len(groups) if kept is None else kept
    taught = [tuple(c for group in groups[:n] for c in group) for n in (k, k - 1)]
    return [
        replace(
            record([truths[i] for i in rows], [answers[i] for i in rows], 6, labels=tuple(group)),
            seen=taught[0], seen_before=taught[1], positions=np.array(rows),
        )
        for rows, group in zip(of, groups, strict=True)
    ]  # fmt: skip


def test_the_worked_scores_of_all_classes_seen_of_old_ones_and_of_new_ones() -> None:
    whole = [pool_records(arrivals(k)) for k in (1, 2, 3)]
    seen = [score("AP_seen", one) for one in whole if one is not None]
    np.testing.assert_allclose(seen, ARRIVAL["AP_of_all_seen"], rtol=0, atol=1e-9)
    assert score("AP_old", whole[-1]) == pytest.approx(ARRIVAL["AP_old"], rel=0, abs=1e-9)  # type: ignore[arg-type]
    assert score("AP_new", whole[-1]) == pytest.approx(ARRIVAL["AP_new"], rel=0, abs=1e-9)  # type: ignore[arg-type]
    assert np.isnan(score("AP_old", whole[0]))  # type: ignore[arg-type]
    assert score("AP_new", whole[0]) == seen[0]  # type: ignore[arg-type]
    at_half = find("AP_new").configure(MetricSpec("AP_new", options={"iou": 50}))  # type: ignore[union-attr, misc]
    by_class = coco_precision(evaluated(ARRIVAL["truth"], ARRIVAL["answers_after_round"][2], 6), 0, slice(0, 1))
    assert at_half.function(whole[-1]) == pytest.approx(by_class[ARRIVAL["groups"][2]].mean())  # type: ignore[misc]


def test_pictures_of_several_test_sets_are_pooled_once_and_matched_once_for_all_parts(monkeypatch: Any) -> None:
    """Test sets of pictures that contain a class overlap; their union is scored, with and without some of it."""
    truths, answers = ARRIVAL["truth"], ARRIVAL["answers_after_round"][2]
    holding = [[i for i, t in enumerate(truths) if set(t["labels"]) & set(group)] for group in ARRIVAL["groups"]]
    union = sorted({i for rows in holding for i in rows})
    assert sum(map(len, holding)) > len(union)
    calls = []

    def counted(*given: Any) -> BoxMatches:
        calls.append(given)
        return coco_matches(*given)

    counted.__name__ = "coco_matches"
    monkeypatch.setattr(coco_evaluation, "coco_matches", counted)
    row, metric = arrivals(3, holding), find("AP_seen")
    assert metric is not None

    def alone(rows: list[int]) -> Any:
        return score("AP", record([truths[i] for i in rows], [answers[i] for i in rows], 6))

    assert score("AP_seen", pool_records(row)) == pytest.approx(alone(union), rel=0, abs=1e-12)  # type: ignore[arg-type]
    calls.clear()
    parts = _part_scores((MetricSpec("AP_seen"), "key", metric), row, 5)
    assert len(calls) == 1
    group = _drawn(len(union), 5)
    expected = [alone([i for i, g in zip(union, group, strict=True) if g != left_out]) for left_out in range(5)]
    np.testing.assert_allclose(parts[:, 0], expected, rtol=0, atol=1e-12)


def test_test_sets_of_other_pictures_are_pooled_one_after_the_other() -> None:
    truths, answers = ARRIVAL["truth"], ARRIVAL["answers_after_round"][2]
    parts = [record(truths[cut], answers[cut], 6) for cut in (slice(0, 7), slice(7, None))]
    whole = pool_records(parts)
    assert whole is not None
    assert score("AP_seen", whole) == score("AP", record(truths, answers, 6))  # no classes arrive: all are seen
    assert np.isnan(score("AP_old", whole)) and np.isnan(score("AP_new", whole))


def test_pictures_without_an_object_of_the_classes_hide_false_alarms() -> None:
    groups = ARRIVAL["groups"]
    for row, answers in zip(ARRIVAL["R_pictures"], ARRIVAL["answers_after_round"], strict=True):
        for expected, group in zip(row, groups, strict=True):
            where = [i for i, label in enumerate(ARRIVAL["truth"]) if set(label["labels"]) & set(group)]
            part = record([ARRIVAL["truth"][i] for i in where], [answers[i] for i in where], 6, labels=tuple(group))
            assert score("AP", part) == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.slow
@given(scene=scenes(), data=st.data())
def test_a_score_without_some_pictures_is_that_of_the_others(scene: Any, data: st.DataObject) -> None:
    """Nothing is matched anew for it: the matches of the whole are cut."""
    truths, answers = scene
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(truths), max_size=len(truths))), dtype=bool)
    for name in ("AP", "AP_S", "AR_100", "VOC_AP", "f1_at_iou", "ianvs_pcb_f1"):
        whole = record(truths, answers, 3)
        score(name, whole)
        part = PartialRecord.select(whole, kept)
        alone = record([t for t, k in zip(truths, kept, strict=True) if k],
                       [a for a, k in zip(answers, kept, strict=True) if k], 3)  # fmt: skip
        assert score(name, part) == pytest.approx(score(name, alone), rel=0, abs=1e-12, nan_ok=True), name
        assert part.rows.keys() <= whole.rows.keys()


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
    ours = scores(found)
    assert [ours[name] for name in names] == pytest.approx(stats[:9].tolist(), rel=0, abs=1e-12, nan_ok=True)
    assert coco_precision(found) == pytest.approx(by_class, rel=0, abs=1e-12, nan_ok=True)


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


@given(scene=scenes(classes=2))
def test_precision_is_that_of_plain_loops(scene: tuple[list[Target], list[Target]]) -> None:
    matches = evaluated(*scene, classes=2)
    for t in (0, 5, 9):
        found = coco_precision(matches, 0, slice(t, t + 1))
        for label in range(2):
            expected = naive_ap(*scene, label, 0.5 + 0.05 * t - 1e-12)
            assert found[label] == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True)


@given(scene=scenes())
def test_blocks_of_pairs_change_no_score(scene: tuple[list[Target], list[Target]]) -> None:
    whole = evaluated(*scene, classes=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_overlaps, "_BLOCK", 3)
        in_blocks = evaluated(*scene, classes=3)
    for area in range(4):
        np.testing.assert_array_equal(coco_precision(whole, area), coco_precision(in_blocks, area))
    np.testing.assert_array_equal(coco_recall(whole), coco_recall(in_blocks))


def test_a_perfect_answer_has_the_epsilon_of_the_source() -> None:
    truth = [{"boxes": [[0, 0, 10, 10]], "labels": [0]}]
    found = evaluated(truth, [truth[0] | {"scores": [1.0]}], 1)
    assert 1 - 3e-16 <= scores(found)["AP"] < 1


def test_the_area_of_the_annotation_counts_before_that_of_the_box() -> None:
    box: Target = {"boxes": [[0, 0, 100, 100]], "labels": [0]}
    answers = [box | {"scores": [1.0]}]
    of_box, of_mask = (scores(evaluated([truth], answers, 1)) for truth in (box, box | {"area": [500]}))
    assert (of_box["AP_L"] > 0.9, np.isnan(of_box["AP_S"])) == (True, True)
    assert (of_mask["AP_S"] > 0.9, np.isnan(of_mask["AP_L"])) == (True, True)


def test_average_precision_of_a_class_does_not_depend_on_other_classes() -> None:
    case = CASES["random_with_crowd_and_ties"]
    truths, answers, _, count = columns(case["truth"], case["answers"], 3)
    whole = coco_precision(coco_matches(truths, answers, range(3), count))
    for label in range(3):
        assert coco_precision(coco_matches(truths, answers, [label], count)).tolist() == [whole[label]]


def test_of_two_truths_that_overlap_alike_the_later_is_taken() -> None:
    truth: Target = {"boxes": [[0, 0, 10, 10], [4, 0, 14, 10]], "labels": [0, 0]}
    answer: Target = {"boxes": [[2, 0, 12, 10], [4, 0, 14, 10]], "labels": [0, 0], "scores": [0.9, 0.8]}
    assert_as_pycocotools([truth], [answer], classes=1)
    # The first answer takes the second truth, so the second answer, which fits that one, has none left.
    assert coco_precision(evaluated([truth], [answer], 1), 0, slice(0, 1)) == pytest.approx(51 / 101)
