"""Rounds and test sets made of arrays, handed over as the benchmark hands them, for tests of algorithms."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch


@dataclass
class Data:
    """Training data if it has labels, else samples to predict."""

    x: np.ndarray  # (N, features) or pictures (N, height, width, channels)
    y: np.ndarray | None = None

    def __len__(self):
        return len(self.x)

    def tensors(self, device="cpu"):
        x = torch.from_numpy(self.x).to(device)
        x = x.permute(0, 3, 1, 2) if x.dim() == 4 else x  # so pictures are channels_last
        return x if self.y is None else (x, torch.from_numpy(self.y).to(device))


@dataclass
class Exam:
    """Class-incremental: round k brings the classes of `groups[k]`, test set k examines them."""

    rounds: list  # of (x, y)
    tests: list  # of (x, y)
    groups: list  # of tuples of class indices
    num_classes: int

    def seen(self, k):
        """Classes taught in rounds 1..k."""
        return tuple(c for group in self.groups[:k] for c in group)


def class_incremental(train, test, groups):
    """train, test: (x, y) arrays."""

    def of(part, group):
        chosen = np.isin(part[1], group)
        return part[0][chosen], part[1][chosen]

    groups = [tuple(group) for group in groups]
    return Exam(
        [of(train, group) for group in groups],
        [of(test, group) for group in groups],
        groups,
        sum(map(len, groups)),
    )


def digits():
    """scikit-learn's digits, 80/20, 5 rounds of 2 classes; x float32 (N, 8, 8, 1) in [0, 1]."""
    images, target = read_digits()
    order = np.random.default_rng(0).permutation(len(target))
    x = (images[order, :, :, None] / 16).astype(np.float32)
    y = target[order].astype(np.int64)
    cut = len(y) // 5
    return class_incremental((x[cut:], y[cut:]), (x[:cut], y[:cut]), [(2 * k, 2 * k + 1) for k in range(5)])


@cache
def read_digits():
    from sklearn.datasets import load_digits

    source = load_digits()
    return source.images, source.target


def pictures(samples=60, size=12):
    """Random uint8 pictures (N, size, size, 3) of 4 classes in 2 rounds."""
    draw = np.random.default_rng(1)
    x = draw.integers(0, 256, (samples, size, size, 3), dtype=np.uint8)
    y = draw.integers(0, 4, samples).astype(np.int64)
    return class_incremental((x, y), (x[: samples // 2], y[: samples // 2]), [(0, 1), (2, 3)])


def examine(learner, exam, seed, device="cpu", rounds=None):
    """(R (T + 1, T), predictions [k][j], weights [k]): row 0 is the untrained model."""

    def look(k):
        context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.num_classes, "seed": seed}
        answers = [learner.predict(Data(x), device=device, **context) for x, _ in exam.tests]
        scores = [np.mean(answer == y) for answer, (_, y) in zip(answers, exam.tests, strict=True)]
        return scores, answers, [w.detach().cpu().clone() for w in learner.network.state_dict().values()]

    rows = [look(0)]
    for k in range(1, (rounds or len(exam.rounds)) + 1):
        teach(learner, exam, k, seed, device)
        rows.append(look(k))
    scores, answers, weights = zip(*rows, strict=True)
    return np.array(scores), answers, weights


def teach(learner, exam, k, seed, device="cpu", **more):
    """One call of train()."""
    context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.num_classes, "seed": seed}
    if getattr(learner, "sees_past_rounds", False):
        context["train_rounds"] = tuple(Data(x, y) for x, y in exam.rounds[:k])
    learner.train(Data(*exam.rounds[k - 1]), None, device=device, progress=lambda share: None, **context, **more)
