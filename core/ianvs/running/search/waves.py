"""What a search does next, from what it knows: trials that go on, and new ones. Nothing depends on when they ended.

And how much of what makes trials differ comes from each hyperparameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ianvs.config.spec import Range, SearchSpec
from ianvs.running.search.drawing import draw, study_of
from ianvs.running.search.halving import going_on
from ianvs.store import Study, Trial

__all__ = ["importance_of", "next_wave", "record_value"]


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


_FEWEST = 4  # trials of which anything can be said


def importance_of(study: Study, space: Mapping[str, Range]) -> dict[str, float] | None:
    """By hyperparameter its share, together 1: fANOVA (Hutter, Hoos & Leyton-Brown, ICML 2014) by Optuna.

    Of what trials were worth at the first rung, which all have come to. None where that is too little, or all the same.
    """
    import optuna

    rung = study.rungs[0]
    known = [trial for trial in study.trials if trial.values.get(rung) is not None]
    if len(known) < _FEWEST or len({trial.values[rung] for trial in known}) == 1:
        return None
    if len(space) == 1:
        return dict.fromkeys(space, 1.0)
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    told = study_of(space, known, study.higher_is_better, rung)
    found = optuna.importance.get_param_importances(told, evaluator=evaluator)
    return {name: float(found[name]) for name in space if name in found}
