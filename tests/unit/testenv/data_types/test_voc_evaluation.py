"""VOC's average precision and F1 at an IoU: the worked values, and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from ianvs.testenv.data_types.detection.voc_evaluation import (
    f1_matches,
    f1_scores,
    pcb_matches,
    voc_matches,
    voc_precision,
)
from tests.unit.testenv.data_types.boxes import CASES, Target, columns, scenes


@pytest.mark.parametrize("name", CASES)
def test_the_worked_values_are_met(name: str) -> None:
    case = CASES[name]
    drawn = columns(case["truth"], case["answers"], case["classes"])
    found = {
        "voc_all_points": voc_precision(voc_matches(*drawn)),
        "voc_all_points_plus_1": voc_precision(voc_matches(*drawn, pixels="inclusive")),
        "voc_11_points": voc_precision(voc_matches(*drawn), "11_points"),
        "ianvs_pcb_f1": f1_scores(pcb_matches(*drawn)),
        "f1_at_iou_03_all_pictures": f1_scores(f1_matches(*drawn, iou=0.3, score=-np.inf)),
    }
    for key, values in found.items():
        expected = [np.nan if value is None else value for value in case[key]["per_class"]]
        assert values == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True), key
    for key in ("ianvs_pcb_f1", "f1_at_iou_03_all_pictures"):
        assert found[key].mean() == pytest.approx(case[key]["macro"], rel=0, abs=1e-9), key


def test_answers_below_the_score_are_left_out() -> None:
    truth: Target = {"boxes": [[0, 0, 10, 10]], "labels": [0]}
    answer: Target = {"boxes": [[0, 0, 10, 10], [50, 50, 60, 60]], "labels": [0, 0], "scores": [0.5, 0.49]}
    drawn = columns([truth], [answer], 1)
    assert f1_scores(f1_matches(*drawn)).tolist() == [1.0]
    assert f1_scores(f1_matches(*drawn, score=0.4)).tolist() == [2 / 3]


def naive_voc(truths: list[Target], answers: list[Target], label: int, iou: float, extra: float) -> float:
    """Area under the envelope, answer by answer."""

    def area(box: list[float]) -> float:
        return (box[2] - box[0] + extra) * (box[3] - box[1] + extra)

    rows = [
        (score, picture, box)
        for picture, answer in enumerate(answers)
        for box, own, score in zip(answer["boxes"], answer["labels"], answer["scores"], strict=True)
        if own == label
    ]
    taken, judged = set(), []
    for _, picture, box in sorted(rows, key=lambda row: -row[0]):
        target, best, most = truths[picture], None, 0.0
        for i, other in enumerate(target["boxes"]):
            width = min(box[2], other[2]) - max(box[0], other[0]) + extra
            height = min(box[3], other[3]) - max(box[1], other[1]) + extra
            inside = max(width, 0) * max(height, 0)
            overlap = inside / (area(box) + area(other) - inside) if inside else 0.0
            if target["labels"][i] == label and overlap > most:
                best, most = i, overlap
        if best is None or most < iou:
            judged.append(False)
        elif not target["difficult"][best]:
            judged.append((picture, best) not in taken)
            taken.add((picture, best))
    count = sum(
        own == label and not hard for t in truths for own, hard in zip(t["labels"], t["difficult"], strict=True)
    )
    if not count:
        return float("nan")
    precision = [sum(judged[:n]) / n for n in range(1, len(judged) + 1)]
    return sum(max(precision[n:]) for n, hit in enumerate(judged) if hit) / count


@given(scene=scenes(classes=2))
def test_precision_is_that_of_plain_loops(scene: tuple[list[Target], list[Target]]) -> None:
    drawn = columns(*scene, 2)
    for iou, pixels, extra in ((0.5, "real", 0.0), (0.5, "inclusive", 1.0), (0.25, "real", 0.0)):
        expected = [naive_voc(*scene, label, iou, extra) for label in range(2)]
        found = voc_precision(voc_matches(*drawn, iou=iou, pixels=pixels))  # type: ignore[arg-type]
        assert found == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True)
