"""Which trials go on at which rung, against a naive reading of the paper's rule."""

from __future__ import annotations

import random

import pytest

from ianvs.running.next_trials import continuing_trials, rungs_of
from ianvs.store import Trial


def test_rungs_are_powers_of_the_reduction_and_end_with_what_may_be_seen() -> None:
    assert rungs_of(2, 3, 10) == (2, 6, 10)
    assert rungs_of(2, 2, 8) == (2, 4, 8)
    assert rungs_of(3, 4, 3) == (3,)
    assert rungs_of(2, 3, 1) == (1,)


def trial(number: int, goal: int, **values: float | None) -> Trial:
    return Trial(number, {"x": number}, goal, {int(name[1:]): value for name, value in values.items()})


def test_the_best_third_goes_on_and_of_equal_ones_the_first() -> None:
    trials = [trial(n, 2, r2=value) for n, value in enumerate([0.1, 0.5, 0.5, 0.5, 0.2, 0.3, None], 1)]
    assert dict(continuing_trials(trials, (2, 6, 10), 3, True)) == {2: 6, 3: 6}
    assert dict(continuing_trials(trials, (2, 6, 10), 3, False)) == {1: 6, 5: 6}


def test_who_is_among_the_best_only_later_goes_on_later() -> None:
    before = [trial(1, 2, r2=0.5), trial(2, 6, r2=0.9, r6=0.4), trial(3, 2, r2=0.1)]
    assert dict(continuing_trials(before, (2, 6), 3, True)) == {}
    worse = [trial(n, 2, r2=0.0) for n in (4, 5, 6)]
    assert dict(continuing_trials([*before, *worse], (2, 6), 3, True)) == {1: 6}


def test_at_the_end_one_comes_to_the_last_rung_if_any_can() -> None:
    trials = [trial(1, 2, r2=0.5), trial(2, 2, r2=0.7)]
    assert dict(continuing_trials(trials, (2, 6), 3, True)) == {}
    assert dict(continuing_trials(trials, (2, 6), 3, True, at_the_end=True)) == {2: 6}
    fallen = [trial(1, 2, r2=0.5), trial(2, 6, r2=0.7, r6=None)]
    assert dict(continuing_trials(fallen, (2, 6), 3, True, at_the_end=True)) == {1: 6}
    assert dict(continuing_trials([trial(1, 2, r2=None)], (2, 6), 3, True, at_the_end=True)) == {}


@pytest.mark.parametrize("seed", range(30))
def test_like_a_naive_second_reading(seed: int) -> None:
    draw = random.Random(seed)
    rungs, reduction, up = (2, 4, 8, 9), draw.choice([2, 3, 4]), draw.random() < 0.5
    trials = []
    for number in range(1, draw.randint(2, 40)):
        depth = draw.randint(1, 4)
        values: dict[int, float | None] = {rung: draw.choice([0.1, 0.2, 0.3, 0.4, None]) for rung in rungs[:depth]}
        failed = next((i for i, rung in enumerate(rungs[:depth]) if values[rung] is None), depth - 1)
        values = {rung: values[rung] for rung in rungs[: failed + 1]}
        trials.append(Trial(number, {}, rungs[failed], values))
    expected = {}
    for place in range(3):
        here = [one for one in trials if rungs[place] in one.values]
        for one in here:
            mine = one.values[rungs[place]]
            if mine is None or one.next_rung != rungs[place]:
                continue
            better = 0
            for other in here:
                theirs = other.values[rungs[place]]
                if theirs is not None and other is not one:
                    ahead = theirs > mine if up else theirs < mine
                    better += ahead or (theirs == mine and other.number < one.number)
            if better < len(here) // reduction:
                expected[one.number] = rungs[place + 1]
    assert dict(continuing_trials(trials, rungs, reduction, up)) == expected
