"""Determines the next trials of a search from its results: trials that continue, and new ones. Timing has no influence.

Trials continue by asynchronous successive halving (Li et al., MLSys 2020, algorithm 2), see docs/running.md; Optuna
draws new trials. docs/decisions/004-statistics.md explains the waves and the separate sampler of each trial.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from ianvs.config.spec import Range, SearchSpec
from ianvs.store import Study, Trial
from ianvs.store.keys import canonical, digest

if TYPE_CHECKING:
    import optuna

REDUCTION = 3  # default of `reduction`: one in so many continues
_FEWEST = 4  # minimum number of trials for an importance
_STARTUP = 10  # random trials before TPE starts: Optuna's default
_TRIES = 20  # by the requested sampler, then evenly
_MOST = 300  # tries before the space is considered exhausted


def next_wave(study: Study, spec: SearchSpec, space: Mapping[str, Range]) -> Study:
    """Return the study with the next trials, or with its end; unchanged while trials are running."""
    if any(trial.waits for trial in study.trials) or (study.ended and len(study.trials) >= spec.trials):
        return study
    wanted = max(spec.trials - len(study.trials), 0) if not study.note else 0
    on = dict(
        continuing_trials(
            study.trials, study.rungs, spec.reduction or REDUCTION, study.higher_is_better, at_the_end=not wanted
        )
    )
    trials = tuple(replace(trial, next_rung=on.get(trial.number, trial.next_rung)) for trial in study.trials)
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
        study = replace(study, note=f"there is nothing else to try in its ranges than these {len(trials)}")
    if any(trial.waits for trial in trials):
        return study
    if wanted:
        return next_wave(study, spec, space)  # there was nothing to try
    winner = None if (best := study.best()) is None else best.number
    return replace(study, ended=True, winner=winner, importance=importance_of(study, space))


def record_value(study: Study, number: int, value: float | None) -> Study:
    """Return the study with the value of a trial at its rung; None: it failed."""
    trials = (
        replace(trial, values={**trial.values, trial.next_rung: value}) if trial.number == number else trial
        for trial in study.trials
    )
    return replace(study, trials=tuple(trials))


def importance_of(study: Study, space: Mapping[str, Range]) -> dict[str, float] | None:
    """Return each hyperparameter's share, together 1: fANOVA (Hutter, Hoos & Leyton-Brown, ICML 2014) by Optuna.

    It uses the values of trials at the first rung, which all have reached. None if there are too few, or all are equal.
    """
    import optuna

    rung = study.rungs[0]
    judged = [trial for trial in study.trials if trial.values.get(rung) is not None]
    if len(judged) < _FEWEST or len({trial.values[rung] for trial in judged}) == 1:
        return None
    if len(space) == 1:
        return dict.fromkeys(space, 1.0)
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    optuna_study = _study_of(space, judged, study.higher_is_better, rung)
    importances = optuna.importance.get_param_importances(optuna_study, evaluator=evaluator)
    return {name: float(importances[name]) for name in space if name in importances}


def rungs_of(first: int, reduction: int, last: int) -> tuple[int, ...]:
    """Return first, first * reduction, ... and at the end the last round that the search may use."""
    rungs = []
    while first < last:
        rungs.append(first)
        first *= reduction
    return (*rungs, last)


def continuing_trials(
    trials: Sequence[Trial], rungs: Sequence[int], reduction: int, higher_is_better: bool, *, at_the_end: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield (number of a trial, its next rung) of all that continue. None of them may be running.

    at_the_end: no other trials will come; the best one continues if none has reached the last rung.
    """
    sign = 1 if higher_is_better else -1
    moved = False
    for rung, above in pairwise(rungs):
        been = [trial for trial in trials if rung in trial.values]
        worth = {trial.number: value for trial in been if (value := trial.values[rung]) is not None}
        ranked = sorted(worth, key=lambda number: (-sign * worth[number], number))
        best = set(ranked[: len(been) // reduction])
        for trial in been:
            if trial.number in best and trial.next_rung == rung:
                moved = True
                yield trial.number, above
    last = rungs[-1]
    if not at_the_end or moved or any(trial.values.get(last) is not None for trial in trials):
        return
    judged = [(trial.reached, trial) for trial in trials if not trial.failed and trial.reached]
    if judged:
        far, best_of = max(
            judged, key=lambda entry: (entry[0], sign * (entry[1].values[entry[0]] or 0.0), -entry[1].number)
        )
        yield best_of.number, rungs[rungs.index(far) + 1]


def draw(
    space: Mapping[str, Range],
    trials: Sequence[Trial],
    numbers: Sequence[int],
    *,
    sampler: str,
    higher_is_better: bool,
    seed: int,
) -> dict[int, dict[str, object]]:
    """Return drawn hyperparameters of new trials by number, none of them tried before; fewer if the space is exhausted.

    sampler: "random", or "tpe" (tree-structured Parzen estimator; Bergstra et al., NeurIPS 2011).
    """
    import optuna

    study = _study_of(space, trials, higher_is_better)
    tried = {canonical(dict(trial.drawn)) for trial in trials}
    drawn_trials: dict[int, dict[str, object]] = {}
    distributions = _distributions(space)
    for number in numbers:
        for attempt in range(_MOST):
            drawn_by = int(digest(["search", seed, number, attempt])[:8], 16)
            study.sampler = _sampler(sampler if attempt < _TRIES else "random", drawn_by)
            optuna_trial = study.ask(distributions)
            drawn = {name: _value(space_range, optuna_trial.params[name]) for name, space_range in space.items()}
            if canonical(drawn) not in tried:
                break
            study.tell(optuna_trial, state=optuna.trial.TrialState.FAIL)  # FAIL: samplers ignore it
        else:
            break
        tried.add(canonical(drawn))
        drawn_trials[number] = drawn
    return drawn_trials


def _study_of(
    space: Mapping[str, Range], trials: Sequence[Trial], higher_is_better: bool, rung: int | None = None
) -> optuna.Study:
    """Return an Optuna study in memory with `trials`. rung: use only their values there, as if it had been the end.

    A trial that has not reached the end of the search counts as pruned, with its last value.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if higher_is_better else "minimize")
    distributions, states = _distributions(space), optuna.trial.TrialState
    last = max((trial.reached for trial in trials), default=0)
    for trial in trials:
        params = {name: _stored(space_range, trial.drawn[name]) for name, space_range in space.items()}
        values = {round_: value for round_, value in trial.values.items() if value is not None}
        end = last if rung is None else rung
        if end in values:
            state, value, steps = states.COMPLETE, values[end], values
        elif rung is None and not trial.failed:
            state, value, steps = states.PRUNED if values else states.RUNNING, None, values
        else:
            state, value, steps = states.FAIL, None, {}
        study.add_trial(
            optuna.trial.create_trial(
                state=state, value=value, params=params, distributions=distributions, intermediate_values=steps
            )
        )
    return study


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    if name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # constant_liar keeps trials of one wave apart.
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP, constant_liar=True)


def _distributions(space: Mapping[str, Range]) -> dict[str, optuna.distributions.BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, optuna.distributions.BaseDistribution] = {}
    for name, space_range in space.items():
        if space_range.kind == "choice":
            # A choice may be a list, too.
            distributions[name] = CategoricalDistribution(list(range(len(space_range.choices))))
        elif space_range.kind == "int":
            distributions[name] = IntDistribution(int(space_range.low or 0), int(space_range.high or 0))
        else:
            distributions[name] = FloatDistribution(
                space_range.low or 0.0, space_range.high or 0.0, log=space_range.kind == "log_uniform"
            )
    return distributions


def _value(space_range: Range, drawn: float) -> object:
    """Return a drawn value as a case has it. Six digits are enough for a number that people read and write."""
    if space_range.kind == "choice":
        return space_range.choices[int(drawn)]
    if space_range.kind == "int":
        return int(drawn)
    return min(max(float(f"{drawn:.6g}"), space_range.low or 0.0), space_range.high or 0.0)


def _stored(space_range: Range, value: object) -> object:
    """Return the value in Optuna's representation."""
    if space_range.kind != "choice":
        return value
    return [canonical(each) for each in space_range.choices].index(canonical(value))
