"""What is drawn: inside its range, never twice, the same for who knows the same, and better by TPE than by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from ianvs.config.spec import Range, SearchSpec
from ianvs.running.next_trials import draw, importance_of, next_wave, record_value
from ianvs.store import Study, Trial

SPACE = {
    "lr": Range("log_uniform", 1e-4, 1e-1),
    "share": Range("uniform", 0.25, 0.5),
    "count": Range("int", 1, 9),
    "kind": Range("choice", choices=("a", [1, 2], None)),
}


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_draws_lie_in_their_ranges_and_depend_on_what_is_known_alone(sampler: str) -> None:
    trials: list[Trial] = []
    for first in range(1, 33, 8):
        asked: dict[str, Any] = {"sampler": sampler, "higher_is_better": True, "seed": 3}
        drawn = draw(SPACE, trials, range(first, first + 8), **asked)
        assert drawn == draw(SPACE, trials, range(first, first + 8), **asked)
        trials += [Trial(n, values, 2, {2: values["share"]}) for n, values in drawn.items()]
    assert len({repr(trial.drawn) for trial in trials}) == len(trials) == 32
    for trial in trials:
        assert 1e-4 <= trial.drawn["lr"] <= 1e-1 and 0.25 <= trial.drawn["share"] <= 0.5
        assert trial.drawn["count"] in range(1, 10) and isinstance(trial.drawn["count"], int)
        assert trial.drawn["kind"] in SPACE["kind"].choices
    logs = [math.log10(trial.drawn["lr"]) for trial in trials]
    if sampler == "random":
        assert sum(one < -2.5 for one in logs) in range(8, 25)  # half of each 16: even over powers, not over numbers
    other = draw(SPACE, trials, [33], sampler=sampler, higher_is_better=True, seed=4)
    assert other != draw(SPACE, trials, [33], sampler=sampler, higher_is_better=True, seed=3)


def test_nothing_is_drawn_twice_and_what_is_used_up_is_not_waited_for() -> None:
    space = {"count": Range("int", 1, 3), "kind": Range("choice", choices=("a", "b"))}
    for sampler in ("random", "tpe"):
        drawn = draw(space, [], range(1, 11), sampler=sampler, higher_is_better=True, seed=0)
        assert sorted((one["count"], one["kind"]) for one in drawn.values()) == [
            (count, kind) for count in (1, 2, 3) for kind in ("a", "b")
        ]
        assert list(drawn) == [1, 2, 3, 4, 5, 6]


def _study(space: dict[str, Range], rungs: tuple[int, ...] = (5,), up: bool = True) -> Study:
    return Study("k", "a", "", {"name": "tpe"}, "accuracy", up, "", (0,), rungs, rungs[-1], ())


def _searched(
    spec: SearchSpec, space: dict[str, Range], worth: Any, rungs: tuple[int, ...] = (5,), up: bool = True
) -> Study:
    study = next_wave(_study(space, rungs, up), spec, space)
    while not study.ended:
        for trial in [trial for trial in study.trials if trial.waits]:
            study = record_value(study, trial.number, worth(trial.drawn, trial.next_rung))
        study = next_wave(study, spec, space)
    return study


def _distance(drawn: dict[str, Any], goal: int) -> float:
    return (math.log10(drawn["lr"]) + 3) ** 2 + (drawn["share"] - 0.3) ** 2


@pytest.mark.slow
def test_tpe_finds_better_than_chance_and_what_matters_is_told() -> None:
    space = {name: SPACE[name] for name in ("lr", "share")}

    def mean(sampler: str) -> float:
        best = []
        for seed in range(4):
            spec = SearchSpec(name=sampler, trials=40, seed=seed)  # type: ignore[arg-type]
            study = _searched(spec, space, _distance, up=False)
            late: Sequence[Trial] = study.trials[20:]
            best.append(sum(trial.value or 0.0 for trial in late) / len(late))
        return sum(best) / len(best)

    assert mean("tpe") < 0.6 * mean("random")
    study = _searched(SearchSpec(name="random", trials=40), space, _distance, up=False)
    assert study.importance is not None and study.importance["lr"] > 0.9
    assert sum(study.importance.values()) == pytest.approx(1)
    assert study.winner == min(study.trials, key=lambda trial: trial.value or 0.0).number


def test_a_search_by_halving_trains_less_and_ends_with_a_winner_at_the_last_rung() -> None:
    space = {name: SPACE[name] for name in ("lr", "share")}
    spec = SearchSpec(name="asha", trials=40)
    study = _searched(spec, space, lambda drawn, goal: -_distance(drawn, goal) + goal, rungs=(2, 6, 10))
    assert study.rounds_trained <= 0.5 * study.rounds_of_all
    assert len(study.trials) == 40 and study.winner is not None
    won = study.trials[study.winner - 1]
    assert won.reached == 10 and won.value == max(t.value or 0 for t in study.trials if t.reached == 10)
    # More trials go on with the same search.
    more = next_wave(study, SearchSpec(name="asha", trials=43), space)
    assert not more.ended and len(more.trials) == 43 and more.trials[40].next_rung == 2
    assert [t.drawn for t in more.trials[:40]] == [t.drawn for t in study.trials]


def test_where_every_trial_fails_nobody_wins() -> None:
    space = {"lr": SPACE["lr"]}
    for name in ("random", "tpe", "asha"):
        spec = SearchSpec(name=name, trials=5)  # type: ignore[arg-type]
        study = _searched(spec, space, lambda drawn, goal: None, rungs=(2, 6) if name == "asha" else (5,))
        assert study.ended and study.winner is None and importance_of(study, space) is None


def test_a_space_that_is_used_up_ends_the_search_with_a_word() -> None:
    space = {"count": Range("int", 1, 4)}
    study = _searched(SearchSpec(name="asha", trials=40), space, lambda drawn, goal: drawn["count"], rungs=(2, 6))
    assert study.ended and len(study.trials) == 4 and "nothing else to try" in study.note
    assert study.winner is not None and study.trials[study.winner - 1].drawn == {"count": 4}
