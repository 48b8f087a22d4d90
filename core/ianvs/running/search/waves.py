"""What a search does next, from what it knows: trials that go on, and new ones. Nothing depends on when they ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ianvs.config.spec import Range, SearchSpec
from ianvs.running.search.drawing import draw
from ianvs.running.search.halving import going_on
from ianvs.running.search.importance import importance_of
from ianvs.store import Study, Trial

__all__ = ["next_wave", "record_value"]

REDUCTION = 3  # one in so many goes on, where `reduction` does not say


def next_wave(study: Study, spec: SearchSpec, space: Mapping[str, Range]) -> Study:
    """The study with what is to be run next, or at its end. The same where trials are still on their way."""
    if any(trial.waits for trial in study.trials) or (study.ended and len(study.trials) >= spec.trials):
        return study
    wanted = max(spec.trials - len(study.trials), 0) if not study.said else 0
    on = dict(
        going_on(study.trials, study.rungs, spec.reduction or REDUCTION, study.higher_is_better, at_the_end=not wanted)
    )
    trials = tuple(replace(trial, goal=on.get(trial.number, trial.goal)) for trial in study.trials)
    numbers = range(len(trials) + 1, len(trials) + 1 + min(spec.batch, wanted))
    drawn = draw(
        space,
        trials,
        numbers,
        sampler=(spec.sampler or "random") if spec.name == "asha" else spec.name,
        higher_is_better=study.higher_is_better,
        seed=spec.seed,
    )
    trials += tuple(Trial(number, values, study.rungs[0], {}) for number, values in drawn.items())
    study = replace(study, trials=trials, ended=False, winner=None)
    if len(drawn) < len(numbers):
        study = replace(study, said=f"there is nothing else to try in its ranges than these {len(trials)}")
    if any(trial.waits for trial in trials):
        return study
    if wanted:
        return next_wave(study, spec, space)  # there was nothing to ask for
    best = study.best()
    return replace(
        study,
        ended=True,
        winner=None if best is None else best.number,
        importance=importance_of(study, space),
    )


def record_value(study: Study, number: int, value: float | None) -> Study:
    """The study with what a trial was worth at the rung that it was sent to; None: it failed."""
    trials = (
        replace(trial, values={**trial.values, trial.goal: value}) if trial.number == number else trial
        for trial in study.trials
    )
    return replace(study, trials=tuple(trials))
