"""The work by Avalanche (0.6), with its own strategies; accuracy of every test set after every round."""

from __future__ import annotations

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.supervised import EWC, Cumulative, LwF, Naive, Replay
from torch.nn import CrossEntropyLoss
from torch.utils.data import TensorDataset
from work import (
    ALPHA,
    ASKED_AT_ONCE,
    CAPACITY,
    CLASSES,
    LEARNING_RATE,
    MOMENTUM,
    ROUNDS,
    STRENGTH,
    TEMPERATURE,
    Clock,
    Work,
    child,
)

STRATEGIES = {
    "naive": (Naive, {}),
    "cumulative": (Cumulative, {}),
    "replay": (Replay, {"mem_size": CAPACITY}),
    "lwf": (LwF, {"alpha": ALPHA, "temperature": TEMPERATURE}),
    "ewc": (EWC, {"ewc_lambda": STRENGTH, "mode": "separate"}),
}


class Labelled(TensorDataset):
    """A TensorDataset with the attribute that Avalanche looks for."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        super().__init__(x, y)
        self.targets = y.tolist()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:  # it wants labels as numbers
        x, _ = super().__getitem__(index)
        return x, self.targets[index]


def run(work: Work, seed: int, clock: Clock) -> tuple[float, list[torch.Tensor]]:
    torch.manual_seed(seed)
    train, test = (Labelled(*work.arrays(part)) for part in ("train", "test"))
    order = list(range(CLASSES))
    benchmark = nc_benchmark(train, test, n_experiences=ROUNDS, task_labels=False, fixed_class_order=order, seed=0)
    network = work.network()
    kind, options = STRATEGIES[work.method]
    strategy = kind(
        model=network,
        optimizer=torch.optim.SGD(network.parameters(), LEARNING_RATE, momentum=MOMENTUM),
        criterion=CrossEntropyLoss(),
        train_mb_size=work.batch,
        train_epochs=work.epochs,
        eval_mb_size=ASKED_AT_ONCE,
        evaluator=EvaluationPlugin(accuracy_metrics(experience=True), loggers=[]),
        **options,
    )
    scores: list[float] = []
    for experience in benchmark.train_stream:
        with clock:
            strategy.train(experience)
        found = strategy.eval(benchmark.test_stream)
        scores = [value for name, value in found.items() if name.startswith("Top1_Acc_Exp")]
    assert len(scores) == ROUNDS
    return sum(scores) / ROUNDS, list(network.parameters())


if __name__ == "__main__":
    child(run)
