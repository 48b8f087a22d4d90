"""Scenes of shapes as the benchmark hands them: two rounds of two classes each, boxes or several labels."""

from dataclasses import dataclass

import numpy as np
import torch

from ianvs.testenv.datasets.shapes import make_shapes, multi_hot

NUM_CLASSES = 8
ROUNDS = ((0, 2), (4, 1))
SHORT = {"epochs": 1, "batch_size": 8, "optimizer": "adam", "learning_rate": 5e-3, "widths": (8, 8)}


@dataclass
class Scenes:
    """Training data if it has labels, else samples to predict."""

    x: np.ndarray  # uint8 (N, H, W, 3)
    y: np.ndarray | None = None  # (N,) objects, or uint8 (N, NUM_CLASSES)
    ids: np.ndarray | None = None

    def __len__(self):
        return len(self.x)

    def tensors(self, device="cpu"):
        x = torch.from_numpy(self.x).to(device).permute(0, 3, 1, 2)
        if self.y is None:
            return x
        return x, (list(self.y) if self.y.dtype == object else torch.from_numpy(self.y).to(device))


def targets_of(*targets):
    """(N,) objects."""
    array = np.empty(len(targets), dtype=object)
    array[:] = targets
    return array


def scenes(k, count=40, several=False, texture="plain"):
    """Round k = 1, 2: what holds one of its classes, labelled with these alone."""
    x, y = make_shapes(texture, count, 32)
    own = [np.isin(target["labels"], ROUNDS[k - 1]) for target in y]
    kept = np.array([mask.any() for mask in own])
    labels = targets_of(
        *(
            {"boxes": t["boxes"][mask], "labels": t["labels"][mask]}
            for t, mask in zip(y, own, strict=True)
            if mask.any()
        )
    )
    ids = np.array([f"{texture}/{i}" for i in range(count)])
    return Scenes(x[kept], multi_hot(labels) if several else labels, ids[kept])


def context(k, seed=5, **more):
    return {"round": k, "num_classes": NUM_CLASSES, "classes_seen": sum(ROUNDS[:k], ()), "seed": seed, **more}


def teach(learner, k, several=False, **how):
    """One call of train(), for round k = 1, 2. how: seed, device."""
    given = context(k, **how)
    if getattr(learner, "sees_past_rounds", False):
        given["train_rounds"] = tuple(scenes(j, several=several) for j in range(1, k + 1))
    learner.train(scenes(k, several=several), None, **given)
    return learner


def answers(learner, k, count=12, **how):
    """Of new pictures, after round k; of an untrained learner for k = 0."""
    x, _ = make_shapes("plain", count, 32, part="test")
    return learner.predict(Scenes(x), **context(k, **how))
