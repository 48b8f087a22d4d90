"""Small pictures with a label for each pixel, of domains with class lists of their own, as the benchmark hands them."""

from dataclasses import dataclass

import numpy as np
import torch

NUM_CLASSES = 7
LISTS = ((3, 0, 1), (1, 3, 4, 6), (5, 0, 2, 4))  # ids of the exam, in the order of each domain's list
TINY = {"channels": (4, 6, 8), "blocks": 1, "dilations": (2,), "decoder_blocks": 1, "dropout": (0.1, 0.3)}
SHORT = {**TINY, "epochs": 1, "batch_size": 4, "learning_rate": 5e-3}


@dataclass
class Scenes:
    """Training data if it has labels, else samples to predict."""

    x: np.ndarray  # uint8 (N, H, W, 3)
    y: np.ndarray | None = None  # uint8 (N, H, W), 255 ignored

    def __len__(self):
        return len(self.x)

    def tensors(self, device="cpu"):
        x = torch.from_numpy(self.x).to(device).permute(0, 3, 1, 2)
        return x if self.y is None else (x, torch.from_numpy(self.y).to(device))


def scenes(domain, count=8, size=(16, 24), seed=0):
    """Two areas of different classes, whose colour tells the class up to a tint of the domain; an ignored corner."""
    draw = np.random.default_rng([seed, domain])
    colours = np.random.default_rng(7).integers(0, 200, (NUM_CLASSES, 3)) + 18 * domain
    y = np.empty((count, *size), dtype=np.uint8)
    for picture in y:
        left, right = draw.choice(LISTS[domain], 2, replace=False)
        cut = draw.integers(6, size[1] - 6)
        picture[:, :cut], picture[:, cut:] = left, right
    x = (colours[y] + draw.integers(0, 20, (*y.shape, 3))).clip(0, 255).astype(np.uint8)
    y[:, :3, :3] = 255
    return Scenes(x, y)


def teach(learner, k, seed=5, device="cpu", data=None, valid=None):
    """One call of train(), for round k = 1, 2, 3."""
    context = {"round": k, "task": k - 1, "new_classes": LISTS[k - 1], "num_classes": NUM_CLASSES, "seed": seed}
    context["classes_seen"] = tuple(sorted({c for group in LISTS[:k] for c in group}))
    if getattr(learner, "sees_past_rounds", False):
        context["train_rounds"] = tuple(scenes(j) for j in range(k))
    learner.train(data or scenes(k - 1), valid, device=device, progress=lambda share: None, **context)


def answers(learner, domain, k=3, seed=5, device="cpu"):
    """(N, H, W) of what `learner` says of new pictures of `domain` (0, 1, 2) after round k."""
    pictures = Scenes(scenes(domain, seed=1).x)
    given = {"round": k, "task": domain, "num_classes": NUM_CLASSES, "seed": seed}
    return torch.as_tensor(learner.predict(pictures, device=device, **given)).cpu().numpy()


def weights(learner):
    """name -> copy, of every tensor of the network."""
    return {name: value.detach().clone() for name, value in learner.network.state_dict().items()}


def domain_weights(learner, domain):
    """As `weights`, of what only `domain` uses."""
    modules = learner.network.domain_modules(domain)
    return {f"{i}.{n}": v.clone() for i, module in enumerate(modules) for n, v in module.state_dict().items()}


def changed(before, after):
    """Names of tensors that are not bit for bit the same."""
    assert before.keys() <= after.keys()
    return [name for name, value in before.items() if not torch.equal(value, after[name])]
