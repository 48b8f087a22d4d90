"""Asks Optuna for hyperparameters to try, given what is known of those that were tried.

Every trial is drawn by a sampler of its own, seeded by the search and the trial's number: what is drawn is determined
by what is known when it is asked for, and nothing of a sampler has to be kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ianvs.config.spec import Range
from ianvs.store import Trial
from ianvs.store.keys import canonical, digest

if TYPE_CHECKING:
    import optuna

__all__ = ["draw", "study_of"]

_STARTUP = 10  # trials before TPE has anything to go by: Optuna's own default
_TRIES = 20  # by the sampler that is asked for; then evenly
_MOST = 300  # tries until nothing new is believed to be left


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

    study = study_of(space, trials, higher_is_better)
    tried = {canonical(dict(trial.drawn)) for trial in trials}
    found: dict[int, dict[str, object]] = {}
    distributions = _distributions(space)
    for number in numbers:
        for attempt in range(_MOST):
            study.sampler = _sampler(sampler if attempt < _TRIES else "random", _seed(seed, number, attempt))
            asked = study.ask(distributions)
            drawn = {name: _value(one, asked.params[name]) for name, one in space.items()}
            if canonical(drawn) not in tried:
                break
            study.tell(asked, state=optuna.trial.TrialState.FAIL)  # FAIL: samplers don't look at it
        else:
            break
        tried.add(canonical(drawn))
        found[number] = drawn
    return found


def study_of(
    space: Mapping[str, Range], trials: Sequence[Trial], higher_is_better: bool, rung: int | None = None
) -> optuna.Study:
    """A study in memory that knows `trials`. rung: of their values only those there, as if it had been the end.

    One that has not come to the end of the search counts as pruned, with what it was worth where it came to.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if higher_is_better else "minimize")
    distributions, states = _distributions(space), optuna.trial.TrialState
    last = max((trial.reached for trial in trials), default=0)
    for trial in trials:
        params = {name: _stored(one, trial.drawn[name]) for name, one in space.items()}
        known = {round_: value for round_, value in trial.values.items() if value is not None}
        end = last if rung is None else rung
        if end in known:
            state, value, steps = states.COMPLETE, known[end], known
        elif rung is None and not trial.failed:
            state, value, steps = states.PRUNED if known else states.RUNNING, None, known
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


def _seed(seed: int, number: int, attempt: int) -> int:
    return int(digest(["search", seed, number, attempt])[:8], 16)


def _distributions(space: Mapping[str, Range]) -> dict[str, optuna.distributions.BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, optuna.distributions.BaseDistribution] = {}
    for name, one in space.items():
        if one.kind == "choice":
            found[name] = CategoricalDistribution(list(range(len(one.choices))))  # a choice may be a list, too
        elif one.kind == "int":
            found[name] = IntDistribution(int(one.low or 0), int(one.high or 0))
        else:
            found[name] = FloatDistribution(one.low or 0.0, one.high or 0.0, log=one.kind == "log_uniform")
    return found


def _value(one: Range, drawn: float) -> object:
    """As a case has it. Six digits are enough for a number that people will read and write again."""
    if one.kind == "choice":
        return one.choices[int(drawn)]
    if one.kind == "int":
        return int(drawn)
    return min(max(float(f"{drawn:.6g}"), one.low or 0.0), one.high or 0.0)


def _stored(one: Range, value: object) -> object:
    """What Optuna knows a value by."""
    if one.kind != "choice":
        return value
    return [canonical(each) for each in one.choices].index(canonical(value))
