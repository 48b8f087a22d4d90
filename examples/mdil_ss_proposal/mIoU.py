"""The proposal's own metric, in place of the built-in one of the same name."""

import numpy as np

IGNORED = 255


def mIoU(y_true, y_pred):  # noqa: N802 - the name in the testenv
    """Mean intersection over union over classes in truth or prediction, counted over the whole test set.

    y_true, y_pred: masks (height, width), one after the other. A pixel whose truth is 255 counts for nothing;
    where 255 is predicted, the true class is missed.
    """
    counts = np.zeros((256, 256), dtype=np.int64)  # [i, j]: pixels of class i that were predicted as class j
    for truth, answer in zip(y_true, y_pred):
        pairs = truth.astype(np.int64) * 256 + answer
        counts += np.bincount(pairs.ravel(), minlength=256 * 256).reshape(256, 256)
    counts = counts[:IGNORED]
    hits = counts.diagonal()
    union = counts.sum(axis=0)[:IGNORED] + counts.sum(axis=1) - hits
    return np.mean(hits[union > 0] / union[union > 0])
