"""CPU seconds and memory of COCO's evaluation: ours beside pycocotools, on one generated set of truths and answers.

    python -m benchmarks.detection
    python -m benchmarks.detection --answers 400 --only ours

Pictures have about seven truths, with COCO's long tail of classes. Three answers in ten lie near a truth, as duplicates
and near misses do after suppression; the others are anywhere, of a class that is in the picture in half of the cases.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ianvs.exam.metrics.definition import mean
from ianvs.testenv.data_types.detection.box_overlaps import Boxes, box_areas
from ianvs.testenv.data_types.detection.coco_evaluation import coco_matches, coco_precision


def generated(pictures: int, most: int, classes: int, seed: int = 0) -> tuple[Boxes, Boxes]:
    """Truths, and up to `most` answers a picture."""
    draw = np.random.default_rng(seed)
    shares = 1 / np.arange(1, classes + 1)
    truths = _boxes(draw, draw.poisson(7.2, pictures), lambda n: draw.choice(classes, n, p=shares / shares.sum()))
    truths["iscrowd"] = (draw.random(len(truths["labels"])) < 0.01).astype(np.uint8)
    counts = draw.integers(most // 3, most + 1, pictures)
    answers = _boxes(draw, counts, lambda n: draw.choice(classes, n, p=shares / shares.sum()))
    of_picture = np.bincount(truths["pictures"], minlength=pictures)
    near = np.repeat(of_picture, counts)
    model = np.repeat(np.cumsum(of_picture) - of_picture, counts) + (draw.random(len(near)) * near).astype(np.int64)
    kin, close = (near > 0) & (draw.random(len(near)) < 0.65), draw.random(len(near)) < 0.46
    answers["labels"][kin] = truths["labels"][model[kin]]
    hit = kin & close
    sizes = truths["boxes"][model[hit], 2:] - truths["boxes"][model[hit], :2]
    moved = truths["boxes"][model[hit]] + draw.normal(0, 0.12, (int(hit.sum()), 4)) * np.tile(sizes, 2)
    answers["boxes"][hit] = np.hstack([np.minimum(moved[:, :2], moved[:, 2:]), np.maximum(moved[:, :2], moved[:, 2:])])
    answers["scores"] = np.round(draw.beta(1, 4, len(near)) + 0.4 * hit, 3)
    return truths, answers


def _boxes(draw: np.random.Generator, counts: np.ndarray, labels: Callable[[int], np.ndarray]) -> Boxes:
    total = int(counts.sum())
    corners, sizes = draw.uniform(0, 500, (total, 2)), np.exp(draw.normal(4, 0.9, (total, 2)))
    boxes = np.hstack([corners, corners + sizes])
    found = {"pictures": np.repeat(np.arange(len(counts)), counts), "boxes": boxes, "labels": labels(total)}
    return found | {"area": box_areas(boxes)}


def by_pycocotools(truths: Boxes, answers: Boxes, classes: int, count: int) -> tuple[float, float]:
    """(AP, CPU seconds of evaluation and accumulation alone)."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        pictures = [{"id": i} for i in range(count)]
        coco.dataset = {"images": pictures, "categories": [{"id": c} for c in range(classes)]}
        coco.dataset["annotations"] = _rows(truths)
        coco.createIndex()
        found = COCO()
        found.dataset = {**coco.dataset, "annotations": _rows(answers)}
        found.createIndex()
        evaluation = COCOeval(coco, found, "bbox")
        start = time.process_time()
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0]), time.process_time() - start


def _rows(packed: Boxes) -> list[dict[str, Any]]:
    pictures = packed["pictures"].tolist()
    corners = packed["boxes"]
    boxes = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]]).tolist()
    crowds = packed.get("iscrowd", np.zeros(len(pictures), dtype=np.uint8)).tolist()
    scores = packed.get("scores", np.zeros(len(pictures))).tolist()
    rows = zip(pictures, packed["labels"].tolist(), boxes, crowds, scores, strict=True)
    return [
        {"id": i, "image_id": picture, "category_id": label, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
        | {"score": score}
        for i, (picture, label, box, crowd, score) in enumerate(rows, 1)
    ]


def main() -> None:
    """Prints a line for each of the two."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=int, default=5000)
    parser.add_argument("--answers", type=int, default=100, help="at most, of a picture")
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--only", choices=["ours", "pycocotools"])
    arguments = parser.parse_args()
    truths, answers = generated(arguments.pictures, arguments.answers, arguments.classes)
    print(f"{arguments.pictures} pictures, {len(truths['labels'])} truths, {len(answers['labels'])} answers")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if arguments.only != "pycocotools":
        start = time.process_time()
        precision = coco_precision(coco_matches(truths, answers, range(arguments.classes), arguments.pictures))
        score = mean(precision[~np.isnan(precision)])
        seconds = time.process_time() - start
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"ours         {seconds:7.2f} CPU s   AP {score:.12f}   {more:.0f} MB more at the peak")
    if arguments.only != "ours":
        score, seconds = by_pycocotools(truths, answers, arguments.classes, arguments.pictures)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"pycocotools  {seconds:7.2f} CPU s   AP {score:.12f}   {more:.0f} MB more at the peak")


if __name__ == "__main__":
    main()
