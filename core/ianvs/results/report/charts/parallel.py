"""Trials of a search as lines over parallel axes: their hyperparameters, then their value at each rung."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ianvs.base.secrets import HIDDEN
from ianvs.results.report.charts.svg import Scale, figure, nice_scale, path, tag, text
from ianvs.results.report.trials import became, drawn_text
from ianvs.results.report.values import fit, method_name
from ianvs.store import Axis, Study, Trial

_LEFT, _TOP, _HEIGHT, _STEP = 60, 40, 260, 130


def parallel_chart(key: str, study: Study) -> Markup:
    """Return the chart. A line ends where its trial was stopped; the winner's is thick. Secrets have no axis.

    "" for fewer than two trials.
    """
    trials = [trial for trial in study.trials if trial.reached]
    if len(trials) < 2:
        return Markup("")
    shown = [axis for axis in study.axes if all(trial.drawn[axis.name] != HIDDEN for trial in trials)]
    axes = [(axis.name, _scale(axis)) for axis in shown]
    results = [value for trial in trials for value in trial.values.values() if value is not None]
    worth = nice_scale(results)
    columns = [*axes, *((f"after round {rung}", worth) for rung in study.rungs)]
    places = [_LEFT + _STEP * number for number in range(len(columns))]
    parts = []
    for x, (name, scale) in zip(places, columns, strict=True):
        parts.append(tag("path", d=f"M{x} {_TOP}v{_HEIGHT}", class_="axis"))
        parts.append(text(x, _TOP - 16, fit(name, 20), "middle", class_="name"))
        parts += [text(x - 5, _at(scale, value) + 4, fit(label, 10), "end") for value, label in scale.ticks]
    drawn = sorted(trials, key=lambda trial: (became(study, trial) == "winner", trial.reached))  # the winner on top
    lines = [_line(study, shown, trial, columns, places) for trial in drawn]
    width = places[-1] + _LEFT  # labels are centred on their axes
    title = f"Trials of {method_name(study.algorithm, study.testenv)}"
    about = f"{len(trials)} trials of {study.metric} {study.values_description}; trials.csv holds their numbers."
    return figure(
        key, width, _TOP + _HEIGHT + 16, title, about, tag("g", *parts, class_="axes"), *lines, class_="chart trials"
    )


def _line(
    study: Study, axes: Sequence[Axis], trial: Trial, columns: Sequence[tuple[str, Scale]], places: Sequence[float]
) -> Markup:
    count = len(axes)
    heights = [
        _at(scale, _place(axis, trial.drawn[axis.name])) for axis, (_, scale) in zip(axes, columns, strict=False)
    ]
    values = [trial.values.get(rung) for rung in study.rungs]
    heights += [math.nan if value is None else _at(columns[count][1], value) for value in values]
    end = became(study, trial)
    kind = "won" if end == "winner" else "done" if trial.reached == study.rungs[-1] else "stopped"
    tip = f"trial {trial.number}: {drawn_text(trial)}; {end}"
    points = list(zip(places, heights, strict=True))
    return tag("path", tag("title", tip), d=path(points), class_=f"trial {kind}")


def _at(scale: Scale, value: float) -> float:
    return _TOP + _HEIGHT * (1 - scale.part(value))


def _scale(axis: Axis) -> Scale:
    """Return the scale of an axis over its range; of a choice one tick for each value."""
    if axis.kind == "choice":
        ticks = tuple((float(index), str(choice)) for index, choice in enumerate(axis.choices))
        return Scale(-0.25, len(axis.choices) - 0.75, ticks)
    low, high = axis.low or 0.0, axis.high or 0.0
    if axis.kind != "log_uniform":
        return Scale(low, high, tuple((value, f"{value:.3g}") for value in (low, (low + high) / 2, high)))
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    ends = {low: f"{low:g}", high: f"{high:g}"}
    return Scale(low, high, tuple(({10.0**power: f"{10.0**power:g}" for power in powers} | ends).items()), log=True)


def _place(axis: Axis, value: Any) -> float:
    if axis.kind != "choice":
        return float(value)
    return float([repr(choice) for choice in axis.choices].index(repr(value)))
