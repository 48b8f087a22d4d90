"""What the columns of a leaderboard are. Each carries its meaning, so that nobody has to guess it from its title."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ianvs.metrics.metric import Metric

__all__ = ["COSTS", "Column", "Kind", "make_columns", "title_of"]

Kind = Literal[
    "rank",
    "algorithm",
    "scenario",
    "metric",
    "metric_std",
    "paradigm",
    "round",
    "dataset",
    "module",
    "hyperparameter",
    "adopted",
    "seeds",
    "cost",
    "status",
    "time",
]


@dataclass(frozen=True)
class Column:
    """One column. `key` names what it shows: a metric's column, a module type, a hyperparameter or a cost."""

    title: str
    kind: Kind
    key: str = ""
    meaning: str = ""
    higher_is_better: bool | None = None  # None: neither


COSTS: tuple[tuple[str, str], ...] = (
    ("train_seconds", "seconds spent in training, summed over rounds; mean over seeds"),
    ("eval_seconds", "seconds spent in evaluation, summed over rounds; mean over seeds"),
    ("peak_memory_mb", "highest resident memory of the case's process in MB (10^6 bytes); mean over seeds"),
    ("peak_gpu_memory_mb", "highest GPU memory in MB (10^6 bytes); mean over seeds"),
    ("model_size_mb", "size of the saved model after the last round in MB (10^6 bytes); mean over seeds"),
    ("memory_samples", "largest number of samples in the replay memory; mean over seeds"),
)
"""What a case costs, under the names of the system metrics. The first three always have a column."""

_ALWAYS_SHOWN = 3
_MODULE = {"basemodel": "the network, where the plugin names it; else the name of its class in the algorithm's yaml"}
_ADOPTED = "rounds whose new model passed model_eval and replaced the one before, of all rounds of all seeds"


def title_of(name: str) -> str:
    """`name` with its first letter in upper case: learning_rate -> Learning_rate."""
    return name[:1].upper() + name[1:]


def make_columns(
    metrics: Sequence[tuple[str, Metric]],
    modules: Iterable[str],
    hyperparameters: Iterable[str],
    measured: Iterable[str],
    several: bool = False,
    gated: bool = False,
) -> tuple[Column, ...]:
    """The columns of a leaderboard, in order, with titles that are all different.

    metrics: (column name, metric) in the testenv's order. modules: module types. measured: keys of COSTS with a value.
    several: whether the job has several exams. gated: whether an exam has `model_eval`.
    """
    measured = set(measured)
    columns = [
        Column(
            "Rank",
            "rank",
            meaning='place among those that play by the rules; "bound" is a reference, "over" went over the budget of '
            'the exam, "-" no place',
        ),
        Column("Algorithm", "algorithm", meaning="name in the algorithm's yaml"),
    ]
    if several:
        columns.append(Column("Scenario", "scenario", meaning="which exam of the job; each has its own ranking"))
    for name, metric in metrics:
        meaning = metric.summary or name
        columns.append(Column(name, "metric", name, meaning, metric.higher_is_better))
        columns.append(Column(f"{name}_std", "metric_std", name, f"sample standard deviation of {name} over seeds"))
    columns += [
        Column("Paradigm", "paradigm", meaning="how a case is examined"),
        Column("Round", "round", meaning="number of rounds"),
        Column("Dataset", "dataset", meaning="name of the dataset"),
    ]
    kinds = list(dict.fromkeys(["basemodel", *modules]))
    columns += [Column(title_of(kind), "module", kind, _MODULE.get(kind, f"class of the {kind}")) for kind in kinds]
    columns += [
        Column(title_of(name), "hyperparameter", name, f"hyperparameter {name}")
        for name in dict.fromkeys(hyperparameters)
    ]
    if gated:
        columns.append(Column("Adopted", "adopted", meaning=_ADOPTED))
    columns.append(Column("Seeds", "seeds", meaning="n: number of finished seeds behind mean and std"))
    columns += [
        Column(title_of(key), "cost", key, meaning)
        for position, (key, meaning) in enumerate(COSTS)
        if position < _ALWAYS_SHOWN or key in measured
    ]
    columns += [
        Column("Status", "status", meaning="finished, or what is missing and why"),
        Column("Time", "time", meaning="when the row's last case ended, UTC"),
    ]
    return _with_distinct_titles(columns)


def _with_distinct_titles(columns: Sequence[Column]) -> tuple[Column, ...]:
    """A hyperparameter named `time` must not be mistaken for the column Time: fixed columns keep their titles."""
    named_by_user = ("metric", "metric_std", "module", "hyperparameter")
    taken = {column.title for column in columns if column.kind not in named_by_user}
    titles = {}
    for kind in named_by_user:
        for position, column in enumerate(columns):
            if column.kind != kind:
                continue
            title = column.title
            while title in taken:
                title = f"{title} ({kind})"
            taken.add(title)
            titles[position] = title
    return tuple(replace(c, title=titles[i]) if i in titles else c for i, c in enumerate(columns))
