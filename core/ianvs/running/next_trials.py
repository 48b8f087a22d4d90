"""What a search does next, from what it knows: trials that go on, and new ones. Nothing depends on when they ended.

Trials go on by asynchronous successive halving (Li et al., MLSys 2020, algorithm 2), as docs/running.md says; Optuna
draws what new trials try. docs/decisions/004-statistics.md says why waves, and why a sampler for each trial.
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

REDUCTION = 3  # one in so many goes on, where `reduction` does not say
_FEWEST = 4  # trials of which anything can be said
_STARTUP = 10  # trials before TPE has anything to go by: Optuna's own default
_TRIES = 20  # by the sampler that is asked for; then evenly
_MOST = 300  # tries until nothing new is believed to be left


def next_wave(study: Study, spec: SearchSpec, space: Mapping[str, Range]) -> Study:
    """Return the study with what is to be run next, or at its end. The same where trials are still on their way."""
    if any(trial.waits for trial in study.trials) or (study.ended and len(study.trials) >= spec.trials):
        return study
    wanted = max(spec.trials - len(study.trials), 0) if not study.note else 0
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
        study = replace(study, note=f"there is nothing else to try in its ranges than these {len(trials)}")
    if any(trial.waits for trial in trials):
        return study
    if wanted:
        return next_wave(study, spec, space)  # there was nothing to ask for
    winner = None if (best := study.best()) is None else best.number
    return replace(study, ended=True, winner=winner, importance=importance_of(study, space))


def record_value(study: Study, number: int, value: float | None) -> Study:
    """Return the study with what a trial was worth at the rung that it was sent to; None: it failed."""
    trials = (
        replace(trial, values={**trial.values, trial.goal: value}) if trial.number == number else trial
        for trial in study.trials
    )
    return replace(study, trials=tuple(trials))


def importance_of(study: Study, space: Mapping[str, Range]) -> dict[str, float] | None:
    """By hyperparameter its share, together 1: fANOVA (Hutter, Hoos & Leyton-Brown, ICML 2014) by Optuna.

    Of what trials were worth at the first rung, which all have come to. None where that is too little, or all the same.
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
    """first, first * reduction, ... and at the end the last round that the search may see."""
    rungs = []
    while first < last:
        rungs.append(first)
        first *= reduction
    return (*rungs, last)


def going_on(
    trials: Sequence[Trial], rungs: Sequence[int], reduction: int, higher_is_better: bool, *, at_the_end: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield (number of a trial, the rung that it is to go to) of all that go on. None of them may be on its way.

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
    """By number what is drawn for new trials, none of it tried before; fewer where nothing new is left to try.

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
            study.tell(optuna_trial, state=optuna.trial.TrialState.FAIL)  # FAIL: samplers don't look at it
        else:
            break
        tried.add(canonical(drawn))
        drawn_trials[number] = drawn
    return drawn_trials


def _study_of(
    space: Mapping[str, Range], trials: Sequence[Trial], higher_is_better: bool, rung: int | None = None
) -> optuna.Study:
    """Return a study in memory that knows `trials`. rung: of their values only those there, as if it had been the end.

    One that has not come to the end of the search counts as pruned, with what it was worth where it came to.
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
        # constant_liar: trials that are asked for together keep away from each other.
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP, constant_liar=True)


def _distributions(space: Mapping[str, Range]) -> dict[str, optuna.distributions.BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, optuna.distributions.BaseDistribution] = {}
    for name, space_range in space.items():
        if space_range.kind == "choice":
            distributions[name] = CategoricalDistribution(
                list(range(len(space_range.choices)))
            )  # a choice may be a list, too
        elif space_range.kind == "int":
            distributions[name] = IntDistribution(int(space_range.low or 0), int(space_range.high or 0))
        else:
            distributions[name] = FloatDistribution(
                space_range.low or 0.0, space_range.high or 0.0, log=space_range.kind == "log_uniform"
            )
    return distributions


def _value(space_range: Range, drawn: float) -> object:
    """As a case has it. Six digits are enough for a number that people will read and write again."""
    if space_range.kind == "choice":
        return space_range.choices[int(drawn)]
    if space_range.kind == "int":
        return int(drawn)
    return min(max(float(f"{drawn:.6g}"), space_range.low or 0.0), space_range.high or 0.0)


def _stored(space_range: Range, value: object) -> object:
    """What Optuna knows a value by."""
    if space_range.kind != "choice":
        return value
    return [canonical(each) for each in space_range.choices].index(canonical(value))
