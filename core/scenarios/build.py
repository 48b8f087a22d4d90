"""A dataset and what the testenv says -> an exam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from core.config.spec import ScenarioSpec
from core.data.dataset import Dataset
from core.data.options import check_options
from core.data.split import stratified_deal
from core.errors import ConfigError, Problem, closest, one_line
from core.scenarios.class_incremental import ClassIncrementalOptions, class_incremental
from core.scenarios.domain_incremental import (
    DomainIncrementalOptions,
    MultiDomainOptions,
    domain_incremental,
    domain_tests,
    ianvs_domains,
    multi_domain_incremental,
)
from core.scenarios.exam import Exam, Round, Rules
from core.scenarios.instance_incremental import (
    InstanceIncrementalOptions,
    everything_asked,
    instance_incremental,
    named_rounds,
)
from core.scenarios.request import Request, ScenarioOptions, class_labels, classes_in, refuse
from core.seeding import generator

__all__ = ["SCENARIOS", "Scenario", "build_exam", "check_scenario"]

DEFAULT_ROUNDS = 2  # of Ianvs, where a testenv says nothing
SPLITTING_METHODS = ("default", "shuffled")


@dataclass(frozen=True)
class Scenario:
    """A way in which data arrive. `build` is None for one that this version does not have."""

    name: str
    aliases: tuple[str, ...]
    options: type[ScenarioOptions] = ScenarioOptions
    build: Callable[[Request], Exam] | None = None


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario("class-incremental", ("CIL",), ClassIncrementalOptions, class_incremental),
            Scenario("domain-incremental", ("DIL",), DomainIncrementalOptions, domain_incremental),
            Scenario(
                "multi-domain-incremental", ("MDIL", "domain-aware"), MultiDomainOptions, multi_domain_incremental
            ),
            Scenario("instance-incremental", ("IIL",), InstanceIncrementalOptions, instance_incremental),
            Scenario("task-incremental", ("TIL",)),
            Scenario("task-free", ("TFCL", "task-free-continual-learning")),
            Scenario("online", ("OCL", "online-continual-learning")),
            Scenario("blurred-boundary", ("BBCL", "blurred-boundary-continual-learning")),
            Scenario("continual-pre-training", ("CPT",)),
        )
    }
)
"""The scenarios of the survey arXiv 2302.00487, and that of MDIL-SS (arXiv 2110.12205), by name."""


def check_scenario(
    spec: ScenarioSpec | None, incremental_rounds: int | None = None, using: tuple[str, ...] = ()
) -> list[Problem]:
    """What is wrong with how the data arrive, as far as it can be said without the data."""
    return _planned(spec, incremental_rounds, using)[1]


def build_exam(
    dataset: Dataset,
    scenario: ScenarioSpec | None,
    *,
    using: tuple[str, ...] = (),
    incremental_rounds: int | None = None,
    splitting_method: str = "default",
    single_task: bool = False,
) -> Exam:
    """The exam on `dataset`. Raises ConfigError at the place of the slip.

    Without a scenario as in Ianvs: `using` gives one round per domain in that order; else the samples are cut into
    `incremental_rounds` parts: by "default" in the order of the file, with "shuffled" stratified, with a fixed seed.
    With `single_task` there is one round of everything.
    """
    if single_task:
        if scenario is not None and (slips := _understood(scenario)[2]):
            raise ConfigError(slips)
        return _single_task(Request(dataset, scenario, None, using, 1))
    planned, problems = _planned(scenario, incremental_rounds, using)
    if problems:
        raise ConfigError(problems)
    request = Request(dataset, scenario, planned.options, using, planned.rounds)
    if planned.build is not None:
        return planned.build(request)
    if splitting_method not in SPLITTING_METHODS:
        hint = closest(splitting_method, SPLITTING_METHODS)
        message = f"there is no splitting_method '{splitting_method}'.{hint} There are: {one_line(SPLITTING_METHODS)}."
        refuse(request, message)
    if using:
        return ianvs_domains(request)
    return _cut(request, splitting_method)


@dataclass(frozen=True)
class _Planned:
    build: Callable[[Request], Exam] | None = None
    options: ScenarioOptions | None = None
    rounds: int | None = None


def _planned(
    spec: ScenarioSpec | None, incremental_rounds: int | None, using: tuple[str, ...]
) -> tuple[_Planned, list[Problem]]:
    """What the testenv asks for. Whatever says how many rounds there are has to agree."""
    said: dict[str, int] = {}
    build, options = None, None
    if spec is None:
        listed = ("using", len(using)) if using else None
    else:
        build, options, problems = _understood(spec)
        if options is None:
            return _Planned(), problems
        if options.rounds is not None:
            said["rounds"] = options.rounds
        listed = options.listed(using)
    if listed is not None:
        said[listed[0]] = listed[1]
    if incremental_rounds is not None:
        said["incremental_rounds"] = incremental_rounds
    if len(set(said.values())) > 1:
        told = " but ".join(f"`{option}` gives {count}" for option, count in said.items())
        place = None if spec is None else next((spec.places[o] for o in said if o in spec.places), spec.place)
        message = f"how many rounds are there? {told}. Make them agree, or keep one of them."
        return _Planned(), [Problem(message, place)]
    return _Planned(build, options, next(iter(said.values()), None)), []


def _understood(
    spec: ScenarioSpec,
) -> tuple[Callable[[Request], Exam] | None, ScenarioOptions | None, list[Problem]]:
    """(builder, options, []), or (None, None, problems)."""
    scenario = _named(spec.name)
    if scenario is None or scenario.build is None:
        return None, None, [_unknown(spec, scenario)]
    options, problems = check_options(scenario.options, spec.options, scenario.name, spec.place, spec.places)
    return scenario.build, options, problems


def _cut(request: Request, splitting_method: str) -> Exam:
    dataset = request.dataset
    count = len(dataset.train)
    rounds = DEFAULT_ROUNDS if request.rounds is None else request.rounds
    if not 1 <= rounds <= count:
        refuse(request, f"{count} samples can't be cut into {rounds} rounds. Set `incremental_rounds`.")
    if splitting_method == "default":
        parts = np.array_split(np.arange(count), rounds)
    else:
        parts = stratified_deal(class_labels(dataset.train), count, rounds, generator(0, 0, "shuffled splitting"))
    rules = Rules(f"ianvs-{splitting_method}", task_in_training=False, task_in_testing=False, output_space="all")
    return Exam(dataset, named_rounds(request, parts), everything_asked(request), rules)


def _single_task(request: Request) -> Exam:
    dataset = request.dataset
    positions = np.arange(len(dataset.train))
    everything = Round("all", positions, classes_in(dataset, dataset.train, positions))
    tests = domain_tests(request, request.using) if request.using else everything_asked(request)
    rules = Rules("single-task", task_in_training=False, task_in_testing=False, output_space="all")
    return Exam(dataset, (everything,), tests, rules)


def _named(name: str) -> Scenario | None:
    wanted = _folded(name)
    return next((s for s in SCENARIOS.values() if wanted in map(_folded, (s.name, *s.aliases))), None)


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-")


def _unknown(spec: ScenarioSpec, scenario: Scenario | None) -> Problem:
    ready = [known.name for known in SCENARIOS.values() if known.build is not None]
    place = spec.places.get("name", spec.place)
    if scenario is not None:
        message = f"the scenario {scenario.name} is not there yet. This version has: {one_line(ready)}."
    else:
        names = [*ready, *(alias for name in ready for alias in SCENARIOS[name].aliases)]
        message = f"there is no scenario '{spec.name}'.{closest(spec.name, names)} There are: {one_line(ready)}."
    return Problem(message, place)
