"""federatedclassincrementallearning: federated learning of one group of classes after another."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import errors_in
from ianvs.kubeedge.knowledge import source_of
from ianvs.kubeedge.outcome import Outcome, number
from ianvs.kubeedge.paradigms.federated_learning import KINDS, Federation, Part, answers, array_parts
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.datasources import BaseDataSource


@dataclass
class _State:
    federation: Federation
    task: int = 0  # the task that is being learned
    round: int = 0  # the next round of the task
    accuracies: list[list[list[float]]] = field(default_factory=list)  # [task][slice][item]
    saw_labels: bool = False


def run(case: Case) -> Outcome:
    """Run tasks 0..n-1 of `round` rounds each, with an evaluation on the slices so far after each.

    Then the test file.
    """
    case.metric()  # right after the modules, as in Ianvs
    n, rounds = case.work.exam.incremental_rounds, case.work.exam.round
    pairs = case.pairs(KINDS, n)
    test = case.source(case.data("test"), "eval")
    now: _State = case.state or _State(Federation.from_case(case))
    for t in range(now.task, n):
        with errors_in(f"task {t}"):
            parts = array_parts(case, pairs[t][0], t)
            size = len(np.unique(parts[0][1]))
            labelled = [_labelled(part, case.work.algorithm.fl_data_setting.label_data_ratio) for part in parts]
            for r in range(now.round, rounds):
                with case.round(r):
                    now.federation.train(case, labelled, task_id=t, round=r, task_size=size)
                now.round = r + 1
                case.store_snapshot(now)
            case.report(f"examination after task {t}")
            with case.timed("evaluate"):
                now.accuracies.append(_examined(case, now, test, t, n))
        now.task, now.round = t + 1, 0
        case.store_snapshot(now)
    with case.round("test"):
        result, saw_labels = answers(case, now.federation.clients[0], test.x, test)
    last = [a for slice_ in now.accuracies[-1] for a in slice_]
    means = [[float(np.mean(slice_)) if slice_ else None for slice_ in row] for row in now.accuracies]
    return Outcome(
        result=result,
        system={
            "task_avg_acc": {"accuracy": float(np.mean(last))} if last else {},
            "forget_rate": forget_rate(now.accuracies),
        },
        R=[[*row, *[None] * (n - len(row))] for row in means],
        handed_test_labels=saw_labels or now.saw_labels,
        measures=now.federation.measures(),
    )


def _labelled(part: Part, ratio: float) -> dict[str, NDArray[Any]]:
    x, y = part
    count = int(ratio * len(x))
    return {"label_x": x[:count], "label_y": y[:count], "unlabel_x": x[count:], "unlabel_y": y[count:]}


def _examined(case: Case, now: _State, test: BaseDataSource, task: int, n: int) -> list[list[float]]:
    """Return the model_metric of each test item alone, by slices 0..task of the test file."""
    name, function = case.metric()
    step = len(test.x) // n
    scores: list[list[float]] = []
    for j in range(task + 1):
        rows = range(step * j, len(test.x) if j == n - 1 else step * (j + 1))
        scores.append([])
        for i in rows:
            item = source_of(test, test.x[i : i + 1], test.y[i : i + 1])
            result, saw_labels = answers(case, now.federation.clients[0], [test.x[i]], item)
            now.saw_labels = now.saw_labels or saw_labels
            with errors_in(f"model_metric '{name}'", case.work.model_metric.url):
                value = function([test.y[i]], result)
                if number(value) is None:
                    raise PluginError(f"it has to return a number, not {value!r:.200}.", code="broken-contract")
            scores[-1].append(float(value))
    return scores


def forget_rate(accuracies: list[list[list[float]]]) -> list[float]:
    """Return, for each task, the mean over items of max(0, best earlier accuracy - accuracy now); 0 for the first.

    accuracies: [task][slice][item]; items of later slices have no earlier accuracy.
    """
    flat = [[a for slice_ in row for a in slice_] for row in accuracies]
    rates = []
    for t, row in enumerate(flat):
        losses = [max([0.0, *(earlier[i] - a for earlier in flat[:t] if i < len(earlier))]) for i, a in enumerate(row)]
        rates.append(sum(losses) / len(losses) if losses and t else 0.0)
    return rates
