"""Pooled outputs and pseudo-labels."""

import math

import torch
from torch.nn.functional import cross_entropy, softmax

from ianvs.testalgorithms.class_segmentation import DenseLearner
from ianvs.testalgorithms.class_segmentation.dense_learner import IGNORE

BINS = 1000  # of the histogram from which medians are read
SCALES = (1, 2, 4)


class PLOP(DenseLearner):
    """Learning without forgetting by pooled outputs and pseudo-labels (PLOP; Douillard et al. 2021, arXiv 2011.11390).

    A background pixel gets the old network's answer c if the entropy of that answer, as a share of the largest, is
    below the median tau_c over the round's background pixels that are answered c, and `threshold` at least; else it is
    left out. Each image's cross-entropy is multiplied by the share of its background that got an answer (eq. 7 to 9).
    Local POD: means over rows and over columns of squared activations, in the whole image, its quarters and their
    quarters; the distance between both networks' is |.|_2, averaged over images, for each stage of the encoder
    (`features`) and for the logits (`outputs`), whose background is taken with the new classes; the mean over them is
    multiplied by sqrt(classes / new classes) (eq. 3 to 5). New outputs begin as in MiB.
    """

    def __init__(self, *, features=0.01, outputs=0.0005, threshold=0.001, **training):
        super().__init__(**training)
        self.feature_weight, self.output_weight, self.threshold = features, outputs, threshold

    def before_round(self, data):
        super().before_round(data)
        self.teacher = self.copied() if self.later else None
        if not self.later:
            return
        if self.new:
            self.network.start_from_background(self.new, self.background)
        counts = torch.zeros(len(self.old), BINS, device=data.device)
        for x, y in data.batches(self.batch_size):
            with torch.no_grad():
                p = softmax(self.logits(x, network=self.teacher)[:, self.old_index], 1)
            background = y == self.background
            bins = (normalised_entropy(p)[background] * BINS).long().clamp(0, BINS - 1)
            cells = p.argmax(1)[background] * BINS + bins
            counts += torch.bincount(cells, minlength=counts.numel()).view_as(counts)
        self.medians = medians(counts).clamp_min(self.threshold)

    def loss(self, batch):
        if not self.later:
            return super().loss(batch)
        with torch.no_grad():
            z_old = self.logits(batch.x, network=self.teacher)
            earlier = self.teacher.stages
            y, share = self.pseudo_labelled(batch.y, softmax(z_old[:, self.old_index], 1))
        each = cross_entropy(batch.logits, y, ignore_index=IGNORE, reduction="none")
        return (share[:, None, None] * each).mean() + self.pooled_distances(batch.outputs, z_old, earlier)

    def pseudo_labelled(self, y, p):
        """(labels, share of each image's background that got one), of labels (B, H, W) and old answers (B, K, H, W)."""
        background, c = y == self.background, p.argmax(1)
        sure = normalised_entropy(p) < self.medians[c]
        labels = torch.where(background, torch.where(sure, self.old_index[c], IGNORE), y)
        counts = background.sum((1, 2))
        return labels, (background & sure).sum((1, 2)) / counts.clamp_min(1)

    def pooled_distances(self, z, z_old, earlier):
        now = z[:, self.old_index].clone()
        now[:, 0] = now[:, 0] + z[:, self.new_index].sum(1)  # the background's
        pairs = [(a, b, self.feature_weight) for a, b in zip(self.network.stages, earlier, strict=True)]
        pairs.append((now, z_old[:, self.old_index], self.output_weight))
        distances = [weight * (local_pod(a) - local_pod(b)).norm(dim=1).mean() for a, b, weight in pairs]
        growth = (len(self.old) + len(self.new)) / max(1, len(self.new))
        return growth**0.5 * sum(distances) / len(distances)

    def after_round(self, data):
        super().after_round(data)
        self.teacher = None


def normalised_entropy(p):
    """(B, H, W) of p (B, K, H, W): 0 to 1."""
    return -(p * (p + 1e-8).log()).sum(1) / math.log(max(2, p.shape[1]))


def medians(counts):
    """(K,) the median of each row of a histogram (K, BINS) over 0 to 1, as the upper end of its bin; 0 for none."""
    total = counts.sum(1, keepdim=True)
    bins = (counts.cumsum(1) < total / 2).sum(1) + 1
    return torch.where(total[:, 0] > 0, bins / counts.shape[1], 0.0)


def local_pod(h):
    """(B, ...) means of squares of h (B, D, H, W) over the rows and over the columns of each region of each scale."""
    squares, pooled = h.square(), []
    for scale in SCALES:
        height, width = h.shape[2] // scale, h.shape[3] // scale
        if not (height and width):
            continue
        for i in range(scale):
            for j in range(scale):
                part = squares[:, :, i * height : (i + 1) * height, j * width : (j + 1) * width]
                pooled += [part.mean(3).flatten(1), part.mean(2).flatten(1)]
    return torch.cat(pooled, 1)
