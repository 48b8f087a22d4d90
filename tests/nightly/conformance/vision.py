"""The exam that classifiers take: three rounds of two classes each, two epochs, momentum, batch normalisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ianvs.base.seeding import stream_seed
from tests.nightly.conformance.harness import After, Check, Mutant, compared
from tests.unit.testalgorithms.exam_of_arrays import Data

CLASSES, FEATURES, HIDDEN = 6, 8, 16


@dataclass(frozen=True)
class Exam:
    """Random clouds of points, too near to each other to be told apart without a mistake.

    A naive statement takes from here what both have to share: first weights, order of samples, draws of the memory.
    each: samples of a round, no multiple of the batch. told: whether answers are chosen among the task's classes.
    batch_norm: of the hidden layer.
    """

    seed: int = 3
    epochs: int = 2
    batch_size: int = 8
    learning_rate: float = 0.05
    momentum: float = 0.9
    each: int = 29
    told: bool = False
    batch_norm: bool = True
    classes: int = CLASSES

    rounds = (1, 2, 3)

    # What is taught and asked.

    def group(self, k: int) -> list[int]:
        """The classes of round k."""
        return [2 * k - 2, 2 * k - 1]

    def seen(self, k: int) -> list[int]:
        """Classes of rounds 1 to k."""
        return list(range(2 * k))

    def data(self, k: int) -> tuple[Tensor, Tensor]:
        """x (N, 8), y (N,) of round k."""
        return self._drawn(k, self.each, self.group(k))

    @property
    def test(self) -> Tensor:
        """(40, 8), of all classes."""
        return self._drawn(0, 40, list(range(self.classes)))[0]

    def _drawn(self, k: int, n: int, classes: list[int]) -> tuple[Tensor, Tensor]:
        draw = np.random.default_rng([17, k])
        centres = np.random.default_rng(5).normal(size=(self.classes, FEATURES))
        y = draw.permutation(np.resize(classes, n)).astype(np.int64)
        x = (centres[y] + draw.normal(size=(n, FEATURES))).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy(y)

    # What both share.

    def network(self) -> nn.Sequential:
        """With its first weights."""
        torch.manual_seed(stream_seed(self.seed, 0, "init"))
        norm = [nn.BatchNorm1d(HIDDEN)] if self.batch_norm else []
        first = nn.Linear(FEATURES, HIDDEN, bias=not self.batch_norm)
        return nn.Sequential(nn.Flatten(), first, *norm, nn.ReLU(), nn.Linear(HIDDEN, self.classes))

    def sgd(self, parameters: Iterable[Tensor]) -> torch.optim.SGD:
        """A new optimiser, as each round begins with one."""
        return torch.optim.SGD(parameters, self.learning_rate, momentum=self.momentum)

    def draws(self, k: int, purpose: str) -> torch.Generator:
        """The random numbers of round k for "order", "replay" (what comes back), "memory" (what is kept), ..."""
        return torch.Generator().manual_seed(stream_seed(self.seed, k, purpose))

    def batches(self, k: int, n: int, epochs: int | None = None) -> Iterator[tuple[int, Tensor]]:
        """(epoch, positions) of each step of round k over n samples."""
        order = self.draws(k, "order")
        for epoch in range(self.epochs if epochs is None else epochs):
            for some in torch.split(torch.randperm(n, generator=order), self.batch_size):
                yield epoch, some

    def mask(self, k: int) -> Tensor:
        """(classes,) 0 for those that answers of round k may be, -inf for the others."""
        allowed = self.group(k) if self.told else self.seen(k)
        mask = torch.full((self.classes,), -torch.inf)
        mask[allowed] = 0.0
        return mask

    @torch.no_grad()
    def answers(self, network: nn.Module, k: int) -> np.ndarray:
        """Of the network in evaluation mode; with the task told, of the first round's task."""
        network.eval()
        found = (network(self.test) + self.mask(1 if self.told else k)).argmax(1).numpy()
        network.train()
        return found

    def after(
        self,
        network: nn.Module,
        k: int,
        memory: Sequence[Tensor] = (),
        more: Sequence[Tensor] = (),
        answers: np.ndarray | None = None,
    ) -> After:
        """After round k. answers: those of a method that has its own way to answer."""
        weights, memory, more = (
            [t.detach().clone() for t in some] for some in (network.state_dict().values(), memory, more)
        )
        return After(weights, memory, self.answers(network, k) if answers is None else answers, more)


EXAM = Exam()


def ours(
    make: Callable[[], Any], exam: Exam, more: Callable[[Any], list[Tensor]] = lambda learner: []
) -> Iterator[After]:
    """The learner's three rounds, as the benchmark runs them."""
    learner = make()
    for k in exam.rounds:
        x, y = (column.numpy() for column in exam.data(k))
        told = {"task_classes": exam.group(k)} if exam.told else {}
        context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.classes, "seed": exam.seed}
        if getattr(learner, "sees_past_rounds", False):
            context["train_rounds"] = tuple(Data(*(c.numpy() for c in exam.data(j))) for j in range(1, k + 1))
        learner.train(Data(x, y), None, **context, **told)
        asked = {"task_classes": exam.group(1)} if exam.told else {}
        answers = learner.predict(Data(exam.test.numpy()), **context, **asked)
        weights = [w.detach().clone() for w in learner.network.state_dict().values()]
        yield After(weights, kept(learner), answers, more(learner))


def kept(learner: Any) -> list[Tensor]:
    """Columns of all that a learner keeps of samples."""
    memory = getattr(learner, "memory", ())
    parts = getattr(memory, "parts", None) or getattr(memory, "memories", None) or ([memory] if memory else [])
    return [column.detach().clone() for part in parts for column in part.columns]


def vision(
    method: type,
    naive: Callable[..., Iterable[After]],
    mutants: Sequence[Mutant],
    *,
    exam: Exam = EXAM,
    more: Callable[[Any], list[Tensor]] = lambda learner: [],
    **given: Any,
) -> Check:
    """`compared` in this exam."""
    training = {"epochs": exam.epochs, "batch_size": exam.batch_size, "learning_rate": exam.learning_rate}
    network = {"momentum": exam.momentum, "hidden": HIDDEN, "batch_norm": exam.batch_norm}
    return compared(method, {**training, **network}, partial(ours, exam=exam, more=more), naive, mutants, exam, **given)
