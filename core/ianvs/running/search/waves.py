"""What a search does next, from what it knows: trials that go on, and new ones. Nothing depends on when they ended.

Trials go on by asynchronous successive halving (Li et al., MLSys 2020, algorithm 2): at a rung that n trials have come
to, the best n // reduction go on; who is among them only later, since others came that are worse, goes on then.
Decisions are made between waves of trials, on all that is known, so that they don't depend on how many run at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ianvs.config.spec import Range, SearchSpec
from ianvs.running.search.drawing import draw, study_of
from ianvs.store import Study, Trial

__all__ = ["REDUCTION", "going_on", "importance_of", "next_wave", "record_value", "rungs_of"]


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


def rungs_of(first: int, reduction: int, last: int) -> tuple[int, ...]:
    """first, first * reduction, ... and at the end the last round that the search may see."""
    rungs = []
    while first < last:
        rungs.append(first)
        first *= reduction
    return (*rungs, last)


def going_on(
    trials: Sequence[Trial], rungs: Sequence[int], reduction: int, higher_is_better: bool, *, at_the_end: bool = False
) -> Iterator[tuple[int, int]]:
    """(number of a trial, the rung that it is to go to) of all that go on. None of them may be on its way.

    at_the_end: no other trials will come; the best one goes on where none has come to the last rung.
    """
    sign = 1 if higher_is_better else -1
    moved = False
    for rung, above in pairwise(rungs):
        been = [trial for trial in trials if rung in trial.values]
        worth = {trial.number: value for trial in been if (value := trial.values[rung]) is not None}
        ranked = sorted(worth, key=lambda number: (-sign * worth[number], number))
        best = set(ranked[: len(been) // reduction])
        for trial in been:
            if trial.number in best and trial.goal == rung:
                moved = True
                yield trial.number, above
    last = rungs[-1]
    if not at_the_end or moved or any(trial.values.get(last) is not None for trial in trials):
        return
    known = [(trial.reached, trial) for trial in trials if not trial.failed and trial.reached]
    if known:
        far, best_of = max(known, key=lambda one: (one[0], sign * (one[1].values[one[0]] or 0.0), -one[1].number))
        yield best_of.number, rungs[rungs.index(far) + 1]
