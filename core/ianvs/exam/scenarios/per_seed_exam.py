"""Exams that are drawn separately for each seed of a job: `order_seed: case`, `seed: case`.

A scenario draws by a seed among its options. `case` stands for the seed of the case: each seed of the job gets the exam
of a job with its number in that place. Scenarios never see the word.
"""

from collections.abc import Mapping
from dataclasses import replace

from ianvs.config.spec import ScenarioSpec, TestEnvSpec

CASE = "case"
SEEDS = ("order_seed", "seed")
"""Options with seeds of scenarios, which may be `case`."""


def seeds_of_case(spec: ScenarioSpec | None) -> list[str]:
    """Return the options of a scenario, nested ones included, that take the seed of the case."""
    names: list[str] = []
    values: list[object] = [] if spec is None else [spec.options]
    for value in values:  # which grows by the values within each
        if isinstance(value, Mapping):
            names += (name for name, inner in value.items() if name in SEEDS and inner == CASE)
            values += value.values()
        elif isinstance(value, list):
            values += value
    return list(dict.fromkeys(names))


def drawn_by(spec: ScenarioSpec, seed: int) -> ScenarioSpec:
    """Return the scenario of a case with this seed."""
    return replace(spec, options={name: _drawn(name, value, seed) for name, value in spec.options.items()})


def with_seed(testenv: TestEnvSpec, seed: int) -> TestEnvSpec:
    """Return the testenv with the scenario of a case with this seed."""
    return testenv if testenv.scenario is None else replace(testenv, scenario=drawn_by(testenv.scenario, seed))


def _drawn(name: str, value: object, seed: int) -> object:
    if name in SEEDS and value == CASE:
        return seed
    if isinstance(value, dict):
        return {key: _drawn(key, inner, seed) for key, inner in value.items()}
    return [_drawn("", inner, seed) for inner in value] if isinstance(value, list) else value
