"""Boxes as tensors with the same number of rows for each image, so batches and memories can treat them like other
labels.
"""

import numpy as np
import torch

from ianvs.base.errors import PluginError

NOTHING = -1.0  # the label of an unused row


def rows_of(targets, most):
    """Return (N, most, 5) float32, x1 y1 x2 y2 label in each row, for N mappings with `boxes` (n, 4) and `labels` (n,).

    Unused rows have the label -1. Crowds (`iscrowd` 1) are left out.
    """
    rows = np.zeros((len(targets), most, 5), dtype=np.float32)
    rows[..., 4] = NOTHING
    for index, target in enumerate(targets):
        boxes, labels = np.asarray(target["boxes"]), np.asarray(target["labels"])
        if "iscrowd" in target:
            single = np.asarray(target["iscrowd"]) == 0
            boxes, labels = boxes[single], labels[single]
        if len(labels) > most:
            raise PluginError(
                f"a training image has {len(labels)} boxes; there is room for {most}. Raise `max_objects`.",
                code="refused-arguments",
            )
        rows[index, : len(labels), :4], rows[index, : len(labels), 4] = boxes, labels
    return torch.from_numpy(rows)


def objects(rows):
    """Return rows (B, K, 5) without unused columns, but at least one, and which rows are used (B, K)."""
    held = rows[..., 4] >= 0
    used = held.any(0) | (torch.arange(held.shape[1], device=held.device) == 0)
    return rows[:, used], held[:, used]


def box_iou(a, b):
    """Return intersection over union (..., n, m) of boxes a (..., n, 4) and b (..., m, 4).

    0 for two without an area.
    """
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:4], b[..., None, :, 2:4])
    common = (high - low).clamp_min(0).prod(-1)
    areas = [(boxes[..., 2:4] - boxes[..., :2]).prod(-1) for boxes in (a, b)]
    union = areas[0][..., :, None] + areas[1][..., None, :] - common
    return common / union.clamp_min(torch.finfo(common.dtype).tiny)


def mappings(answers):
    """Return N mappings boxes, labels, scores, for answers (N, M, 6): x1 y1 x2 y2 score label, -inf for unused rows."""
    answers = answers.cpu().double()
    filled = (rows[rows[:, 4] > -torch.inf].numpy() for rows in answers)
    return [{"boxes": rows[:, :4], "scores": rows[:, 4], "labels": rows[:, 5].astype(np.int64)} for rows in filled]
