"""The exam that segmentation methods take: three domains with class lists of their own, two epochs, Adam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.mdil_ss.scene_augmentation import draw_moves
from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from tests.nightly.conformance.harness import After, Check, Mutant, compared
from tests.unit.testalgorithms.exam_of_scenes import LISTS, NUM_CLASSES, TINY, Scenes, scenes

COUNTS = (7, 10, 4)  # pictures of each domain

Shot = tuple[Tensor, Tensor]  # (B, 3, H, W) in 0..1 and (B, H, W) outputs of the head, the last of which is "ignore"


@dataclass(frozen=True)
class Exam:
    """A naive statement takes from here what both have to share: first weights, order, moves, dropout.

    All is in double precision, or last bits would decide on which side of a ReLU some pixels are, and what Adam makes
    of gradients that are nearly 0.
    The network is ours, whose forward pass tests/unit/testalgorithms/test_erfnet_forward.py holds against the authors'.
    """

    seed: int = 5
    epochs: int = 2
    batch_size: int = 4
    learning_rate: float = 2e-3
    weight_decay: float = 1e-3

    rounds = (1, 2, 3)

    def outputs(self, k: int) -> int:
        """Of the head of round k, "ignore" included."""
        return len(LISTS[k - 1]) + 1

    def pictures(self, k: int) -> Shot:
        """x (N, 3, 16, 24) uint8, y (N, 16, 24) as the head numbers them."""
        data = scenes(k - 1, COUNTS[k - 1])
        y = np.full(data.y.shape, len(LISTS[k - 1]))
        for output, c in enumerate(LISTS[k - 1]):
            y[data.y == c] = output
        return torch.from_numpy(data.x).permute(0, 3, 1, 2), torch.from_numpy(y)

    def weights(self, k: int) -> Tensor:
        """(outputs,) 1 / ln(1.1 + share of the class's pixels, each counted once more), 0 for "ignore"."""
        _, y = self.pictures(k)
        counts = torch.tensor([float((y == c).sum()) + 1 for c in range(self.outputs(k))], dtype=torch.float64)
        w = 1 / (1.1 + counts / counts.sum()).log()
        w[-1] = 0.0
        return w.float().double()

    def surprise(self, logits: Tensor, y: Tensor, k: int) -> Tensor:
        """sum of w[y] (-ln p[y]) over pixels / sum of w[y]."""
        return cross_entropy(logits, y, weight=self.weights(k))

    # What both share.

    def network(self, adapters: bool = False) -> ErfNet:
        """With the first weights of what is shared, and no domain."""
        torch.manual_seed(stream_seed(self.seed, 0, "init"))
        return ErfNet([], ErfNetShape(**TINY), adapters=adapters).double()

    def add_domain(self, network: ErfNet, k: int) -> None:
        torch.manual_seed(stream_seed(self.seed, k, "init"))
        network.add_domain(self.outputs(k))

    def network_of(self, k: int) -> ErfNet:
        """One for domain k alone."""
        torch.manual_seed(stream_seed(self.seed, k, "init"))
        return ErfNet([self.outputs(k)], ErfNetShape(**TINY)).double()

    def draws(self, k: int, purpose: str) -> torch.Generator:
        """The random numbers of round k for "order", "augmentation", "memory"."""
        return torch.Generator().manual_seed(stream_seed(self.seed, k, purpose))

    def dropout(self, k: int) -> None:
        """From here on what is dropped is what our learner drops: call it before the first step of a round."""
        torch.manual_seed(stream_seed(self.seed, k, "noise"))

    def one_pass(self, k: int, order: torch.Generator, moves: torch.Generator) -> Iterator[Shot]:
        """The batches of one pass over domain k, in random order, each picture moved."""
        x, y = self.pictures(k)
        plan, drawn = torch.randperm(len(x), generator=order), draw_moves(len(x), moves)
        for some, how in zip(plan.split(self.batch_size), drawn.split(self.batch_size), strict=True):
            yield moved(x[some], y[some], how, self.outputs(k) - 1)

    def epochs_of(self, k: int, optimizer: torch.optim.Optimizer) -> Iterator[float]:
        """Sets the rates of each epoch: (1 - (e - 1) / epochs)^0.9 of what they were."""
        first = [group["lr"] for group in optimizer.param_groups]
        for epoch in range(self.epochs):
            for group, rate in zip(optimizer.param_groups, first, strict=True):
                group["lr"] = rate * (1 - epoch / self.epochs) ** 0.9
            yield epoch

    def adam(self, *groups: tuple[Iterable[Tensor], float]) -> torch.optim.Adam:
        """groups: (parameters, learning rate). What is in none does not learn."""
        given = [{"params": list(parameters), "lr": rate} for parameters, rate in groups]
        return torch.optim.Adam([g for g in given if g["params"]], weight_decay=self.weight_decay, fused=True)

    @torch.no_grad()
    def answers(self, network: Callable[[Tensor, int], Tensor], known: int) -> np.ndarray:
        """(3, N, H, W) classes of new pictures of all domains; one that was not taught is asked of the last that was.

        The network is in evaluation mode; "ignore" is no answer.
        """
        said = []
        for domain in range(3):
            j = min(domain, known - 1)
            x = torch.from_numpy(scenes(domain, seed=1).x).permute(0, 3, 1, 2).float().div(255).double()
            said.append(np.array(LISTS[j])[network(x, j)[:, :-1].argmax(1).numpy()])
        return np.stack(said)

    def after(
        self,
        network: nn.Module,
        k: int,
        memory: Sequence[Tensor] = (),
        ask: Callable[[Tensor, int], Tensor] | None = None,
    ) -> After:
        """ask: (x, domain) -> logits, if that is not the network itself."""
        network.eval()
        weights = [t.detach().clone() for t in network.state_dict().values()]
        return After(weights, [t.clone() for t in memory], self.answers(ask or network, k))


EXAM = Exam()


def moved(x: Tensor, y: Tensor, moves: Tensor, ignore: int) -> Shot:
    """Each picture flipped and then shifted; what a shift uncovers is black and ignored."""
    new_x, new_y = x.clone(), y.clone()
    height, width = y.shape[1:]
    for i, (flipped, right, down) in enumerate(moves.tolist()):
        for whole, uncovered in ((new_x[i], 0), (new_y[i], ignore)):
            whole.copy_((whole.flip(-1) if flipped else whole).roll((down, right), (-2, -1)))
            rows, columns = torch.arange(height) - down, torch.arange(width) - right
            whole[..., (rows < 0) | (rows >= height), :] = uncovered
            whole[..., (columns < 0) | (columns >= width)] = uncovered
    return (new_x.float() / 255).double(), new_y


@contextmanager
def resting(*modules: nn.Module) -> Iterator[None]:
    """These in evaluation mode, where batch normalisation uses what it has and keeps it."""
    for module in modules:
        module.eval()
    yield
    for module in modules:
        module.train()


def exact(learner: Any) -> Any:
    """The learner with a network in double precision."""
    build = learner.build_network

    def built() -> Any:
        network = build()
        add = network.add_domain
        network.add_domain = lambda outputs: (add(outputs), network.double())
        network.register_forward_pre_hook(lambda _, given: (given[0].double(), *given[1:]))
        return network.double()

    learner.build_network = built
    return learner


def ours(make: Callable[[], Any], exam: Exam) -> Iterator[After]:
    """The learner's three rounds, as the benchmark runs them."""
    learner = exact(make())
    for k in exam.rounds:
        given = {"round": k, "num_classes": NUM_CLASSES, "seed": exam.seed}
        seen = {}
        if getattr(learner, "sees_past_rounds", False):
            seen["train_rounds"] = tuple(scenes(j, COUNTS[j]) for j in range(k))
        learner.train(scenes(k - 1, COUNTS[k - 1]), None, task=k - 1, new_classes=LISTS[k - 1], **given, **seen)
        said = [learner.predict(Scenes(scenes(d, seed=1).x), task=d, **given).numpy() for d in range(3)]
        parts = learner.memory.parts.values() if hasattr(learner, "memory") else ()
        memory = [column.clone() for part in parts for column in part.columns]
        weights = [w.detach().clone() for w in learner.network.state_dict().values()]
        yield After(weights, memory, np.stack(said))


def segmentation(
    method: type, naive: Callable[..., Iterable[After]], mutants: Sequence[Mutant], *, exam: Exam = EXAM, **given: Any
) -> Check:
    """`compared` in this exam."""
    training = {n: getattr(exam, n) for n in vars(exam) if n != "seed"}
    network = {**TINY, "channels_last": False}
    return compared(method, {**network, **training}, partial(ours, exam=exam), naive, mutants, exam, **given)
