"""A dataset and what the testenv says -> an exam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ianvs import data
from ianvs.config.spec import ScenarioSpec, TestEnvSpec
from ianvs.data.dataset import Dataset
from ianvs.data.options import check_options
from ianvs.data.split import stratified_deal
from ianvs.errors import ConfigError, Problem, closest, one_line
from ianvs.scenarios.domain_incremental import domain_tests, ianvs_domains
from ianvs.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.scenarios.instance_incremental import everything_asked, named_rounds
from ianvs.scenarios.modifiers import Modifiers, modified, modifiers_of
from ianvs.scenarios.request import ScenarioOptions, ScenarioRequest, class_labels, classes_in, refuse
from ianvs.scenarios.scenario_catalogue import SCENARIOS, find_scenario
from ianvs.seeding import generator

__all__ = ["SCENARIOS", "build_exam", "check_scenario", "open_exam"]

DEFAULT_ROUNDS = 2  # of Ianvs, where a testenv says nothing
SPLITTING_METHODS = ("default", "shuffled")


def check_scenario(
    spec: ScenarioSpec | None, incremental_rounds: int | None = None, using: tuple[str, ...] = ()
) -> list[Problem]:
    """What is wrong with how the data arrive, as far as it can be said without the data."""
    return _planned(spec, incremental_rounds, using)[1]


def open_exam(
    testenv: TestEnvSpec,
    cache: Path,
    splitting_method: str = "default",
    *,
    as_one: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Exam:
    """The exam of a testenv with its data, which are decoded into `cache` once: memory maps that all cases share.

    Raises ConfigError or DataError.
    """
    return build_exam(
        data.load(testenv.dataset, cache, progress),
        testenv.scenario,
        using=testenv.dataset.using,
        incremental_rounds=testenv.incremental_rounds,
        splitting_method=splitting_method,
        as_one=as_one,
    )


def build_exam(
    dataset: Dataset,
    scenario: ScenarioSpec | None,
    *,
    using: tuple[str, ...] = (),
    incremental_rounds: int | None = None,
    splitting_method: str = "default",
    as_one: bool = False,
) -> Exam:
    """The exam on `dataset`. Raises ConfigError at the place of the slip.

    Without a scenario as in Ianvs: `using` gives one round per domain in that order; else the samples are cut into
    `incremental_rounds` parts: by "default" in the order of the file, with "shuffled" stratified, with a fixed seed.
    Where `using` names domains that the samples don't know, the test samples are cut likewise, a test set a round.
    With `as_one` there is one round of everything.
    """
    if as_one:
        return _as_one(dataset, scenario, using)
    planned, problems = _planned(scenario, incremental_rounds, using)
    if problems:
        raise ConfigError(problems)
    request = ScenarioRequest(dataset, scenario, planned.options, using, planned.rounds)
    if planned.build is not None:
        return _deliverable(planned.build(request), request)
    if splitting_method not in SPLITTING_METHODS:
        hint = closest(splitting_method, SPLITTING_METHODS)
        message = f"there is no splitting_method '{splitting_method}'.{hint} There are: {one_line(SPLITTING_METHODS)}."
        refuse(request, message)
    if using and dataset.train.domains is not None:
        return ianvs_domains(request)
    return _cut(request, splitting_method)


@dataclass(frozen=True)
class _Planned:
    """`build` is None where there is no scenario."""

    build: Callable[[ScenarioRequest], Exam] | None = None
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
) -> tuple[Callable[[ScenarioRequest], Exam] | None, ScenarioOptions | None, list[Problem]]:
    """(builder, options, []), or (None, None, problems)."""
    scenario = find_scenario(spec.name)
    if scenario is None:
        return None, None, [_unknown(spec)]
    options, problems = check_options(scenario.options, spec.options, scenario.name, spec.place, spec.places)
    if options is None:
        return None, None, problems
    problems = [Problem(message, spec.places.get(option, spec.place)) for option, message in options.slips()]
    modifiers = None
    if options.modifiers is not None:
        modifiers, slips = modifiers_of(options.modifiers, spec.places.get("modifiers", spec.place))
        problems += slips
    if problems:
        return None, None, problems
    return _Modified(scenario.build, modifiers), options, []


@dataclass(frozen=True)
class _Modified:
    """A builder of a scenario, and what is done with its rounds afterwards."""

    build: Callable[[ScenarioRequest], Exam]
    modifiers: Modifiers | None

    def __call__(self, request: ScenarioRequest) -> Exam:
        exam = self.build(request)
        return exam if self.modifiers is None else modified(exam, request, self.modifiers)


def _deliverable(exam: Exam, request: ScenarioRequest) -> Exam:
    """`exam`, if a chunk of its stream begins in each round: one without could not be told from the round before."""
    if exam.stream is not None:
        batch, shortest = exam.stream.batch, min(exam.rounds, key=lambda round_: len(round_.train))
        if batch > len(shortest.train):
            message = f"`batch` is {batch}, more than the samples of {shortest.name}, the shortest round"
            message = f"{message}: a chunk may run over the end of a round, not over a whole one"
            refuse(request, f"{message}. Set `batch` to {len(shortest.train)} or less.", "batch")
    return exam


def _cut(request: ScenarioRequest, splitting_method: str) -> Exam:
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
    named = named_rounds(request, parts)
    return Exam(dataset, named, _cut_tests(request, named) if request.using else everything_asked(request), rules)


def _cut_tests(request: ScenarioRequest, rounds: tuple[Round, ...]) -> tuple[TestSet, ...]:
    """The test samples in as many equal parts as there are rounds, in the order of the file."""
    dataset = request.dataset
    if len(dataset.test) < len(rounds):
        refuse(request, f"{len(dataset.test)} test samples can't be cut into {len(rounds)} test sets, one a round.")
    parts = np.array_split(np.arange(len(dataset.test)), len(rounds))
    named = zip(rounds, parts, strict=True)
    return tuple(TestSet(r.name, part, classes_in(dataset, dataset.test, part)) for r, part in named)


def _as_one(dataset: Dataset, scenario: ScenarioSpec | None, using: tuple[str, ...]) -> Exam:
    """One round of everything that `scenario` brings."""
    request = ScenarioRequest(dataset, scenario, None, using, 1)
    positions = np.arange(len(dataset.train))
    everything = Round("all", positions, classes_in(dataset, dataset.train, positions))
    if scenario is not None:
        build, options, slips = _understood(scenario)
        if slips:
            raise ConfigError(slips)
        if options is not None and build is not None:
            exam = build(replace(request, options=options, rounds=_count(options, using)))
            if (why := _separate(exam)) is not None:
                message = "a paradigm that teaches all rounds as one can't take this exam"
                refuse(request, f"{message}: {why}. An algorithm with `sees_past_rounds`, such as joint, can be here.")
            everything = _merged(exam)
    tests = domain_tests(request, using) if using and dataset.test.domains is not None else everything_asked(request)
    rules = Rules("single-task", task_in_training=False, task_in_testing=False, output_space="all")
    return Exam(dataset, (everything,), tests, rules)


def _count(options: ScenarioOptions, using: tuple[str, ...]) -> int | None:
    listed = options.listed(using)
    return options.rounds if listed is None else listed[1]


def _separate(exam: Exam) -> str | None:
    """Why the rounds of `exam` can't be put into one; None where they can."""
    if any(round_.transform is not None for round_ in exam.rounds):
        return "its rounds bring the same samples, each transformed in a way of its own"
    if not exam.rules.training_labels:
        return "its labels are hidden"
    if exam.rules.asked == "future":
        return "test sets hold what a later round teaches"
    return None


def _merged(exam: Exam) -> Round:
    """All samples of the rounds as one, each with what it was first told to be."""
    dataset = exam.dataset
    train, first = np.unique(np.concatenate([round_.train for round_ in exam.rounds]), return_index=True)
    labels = None
    if any(round_.labels is not None for round_ in exam.rounds):
        told = [dataset.train.y[r.train] if r.labels is None else r.labels for r in exam.rounds]
        labels = np.concatenate(told)[first]
    return Round("all", train, classes_in(dataset, dataset.train, train), labels=labels)


def _unknown(spec: ScenarioSpec) -> Problem:
    names = [*SCENARIOS, *(alias for scenario in SCENARIOS.values() for alias in scenario.aliases)]
    message = f"there is no scenario '{spec.name}'.{closest(spec.name, names)} There are: {one_line(list(SCENARIOS))}."
    return Problem(message, spec.places.get("name", spec.place))
