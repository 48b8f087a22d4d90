"""Exams that are drawn anew for each seed of a job: `order_seed: case`, `seed: case`.

What a scenario draws, it draws by a seed among its options. `case` stands for the seed of the case: each seed of the
job then takes the exam that it would take if its own number stood there. No scenario meets the word.
"""

from collections.abc import Iterator
from dataclasses import replace

from ianvs.config.spec import ScenarioSpec, TestEnvSpec

CASE = "case"
SEEDS = ("order_seed", "seed")
"""Options by which scenarios draw, and which may be `case`."""


def seeds_of_case(spec: ScenarioSpec | None) -> list[str]:
    """Return the options of a scenario, and of what is within them, that are drawn by the seed of the case."""
    return [] if spec is None else list(dict.fromkeys(_seeds_in(spec.options)))


def drawn_by(spec: ScenarioSpec, seed: int) -> ScenarioSpec:
    """Return the scenario that a case with this seed takes."""
    return replace(spec, options={name: _drawn(name, value, seed) for name, value in spec.options.items()})


def with_seed(testenv: TestEnvSpec, seed: int) -> TestEnvSpec:
    """Return the testenv with the scenario that a case with this seed takes."""
    return testenv if testenv.scenario is None else replace(testenv, scenario=drawn_by(testenv.scenario, seed))


def _seeds_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (name for name, inner in value.items() if name in SEEDS and inner == CASE)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _seeds_in(inner)


def _drawn(name: str, value: object, seed: int) -> object:
    if name in SEEDS and value == CASE:
        return seed
    if isinstance(value, dict):
        return {key: _drawn(key, inner, seed) for key, inner in value.items()}
    return [_drawn("", inner, seed) for inner in value] if isinstance(value, list) else value
