"""Builds an exam from a dataset and the testenv."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ianvs.base.errors import ConfigError, IanvsError, PluginError, ValidationError, closest, one_line
from ianvs.base.seeding import generator
from ianvs.config.models.algorithm import SPLITTING_METHODS
from ianvs.config.spec import DataTypeSpec, ScenarioSpec, TestEnvSpec
from ianvs.exam import data
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.options import check_options
from ianvs.exam.data.split import stratified_deal
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.exam.scenarios.modifiers import Modifiers, apply_modifiers, parse_modifiers
from ianvs.exam.scenarios.per_seed_exam import drawn_by, seeds_of_case
from ianvs.exam.scenarios.request import (
    Scenario,
    ScenarioRequest,
    class_labels,
    classes_in,
    domain_tests,
    named_rounds,
    natural_domains,
    refuse,
    whole_test_set,
)
from ianvs.exam.scenarios.scenario_catalogue import find_scenario, is_authors, load_authors_scenario
from ianvs.plugins.loader import Loaded, cause

DEFAULT_ROUNDS = 2  # Ianvs's default


def check_scenario(
    spec: ScenarioSpec | None, incremental_rounds: int | None = None, using: tuple[str, ...] = ()
) -> list[ValidationError]:
    """Return the errors in the scenario that can be found without the data or an author's code."""
    if spec is not None and is_authors(spec):
        return []
    try:
        drawn = drawn_by(spec, 0) if spec is not None and seeds_of_case(spec) else spec
        _number_of_rounds(None if drawn is None else _open_scenario(drawn), incremental_rounds, using)
    except ConfigError as error:
        return list(error.problems)
    return []


def open_exam(
    testenv: TestEnvSpec,
    cache: Path,
    splitting_method: str = "default",
    *,
    as_one: bool = False,
    progress: data.Progress | None = None,
    fingerprint: str | None = None,
) -> Exam:
    """Return the exam of a testenv; its data are decoded into `cache` once, as memory maps that all cases share.

    fingerprint: the expected one of the data. Raises ConfigError or DataError.
    """
    return build_exam(
        data.load(testenv.dataset, cache, progress, fingerprint),
        testenv.scenario,
        using=testenv.dataset.using,
        incremental_rounds=testenv.incremental_rounds,
        splitting_method=splitting_method,
        as_one=as_one,
        type_spec=testenv.dataset.data_type,
        asks_first=testenv.prequential is not None,
    )


def build_exam(
    dataset: Dataset,
    scenario: ScenarioSpec | None,
    *,
    using: tuple[str, ...] = (),
    incremental_rounds: int | None = None,
    splitting_method: str = "default",
    as_one: bool = False,
    type_spec: DataTypeSpec | None = None,
    asks_first: bool = False,
) -> Exam:
    """Return the exam on `dataset`. Raises ConfigError with the place of the error.

    Without a scenario it is Ianvs's: `using` gives one round per domain in that order; otherwise the samples are cut
    into `incremental_rounds` parts, by "default" in the order of the file, with "shuffled" stratified with a fixed
    seed. If `using` names domains that the samples don't have, the test samples are cut likewise into a test set per
    round.

    Args:
        dataset: The data.
        scenario: The testenv's scenario.
        using: Domains to use.
        incremental_rounds: Number of rounds.
        splitting_method: "default" or "shuffled".
        as_one: All data come in one round.
        type_spec: An author's data type.
        asks_first: The exam must be a stream with labels (prequential).
    """
    if as_one:
        return _build_one_round(dataset, scenario, using, type_spec)
    opened = None if scenario is None else _open_scenario(scenario)
    request = ScenarioRequest(dataset, scenario, using, _number_of_rounds(opened, incremental_rounds, using), type_spec)
    if opened is not None:
        exam = opened.build(request)
        if exam.stream is not None:
            _require_chunks(exam, exam.stream.batch, request)
        return _require_prequential(exam, request) if asks_first else exam
    if asks_first:
        refuse(request, "`prequential` needs a stream. Set a `scenario` with `batch`.")
    if splitting_method not in SPLITTING_METHODS:
        hint = closest(splitting_method, SPLITTING_METHODS)
        message = f"there is no splitting_method '{splitting_method}'.{hint} There are: {one_line(SPLITTING_METHODS)}."
        refuse(request, message)
    if using and dataset.train.domains is not None:
        rules = Rules("ianvs-domains", task_in_training=True, task_in_testing=False, output_space="all")
        return natural_domains(request, rules)
    return _split_rounds(request, splitting_method)


@dataclass(frozen=True)
class _LoadedScenario:
    """A scenario with its options, the import context of its code, and its modifiers."""

    spec: ScenarioSpec
    scenario: Scenario
    around: Loaded
    modifiers: Modifiers | None

    def build(self, request: ScenarioRequest) -> Exam:
        exam = self._built_by_author(request) if is_authors(self.spec) else self.scenario.build(request)
        return exam if self.modifiers is None else apply_modifiers(exam, request, self.scenario, self.modifiers)

    def _built_by_author(self, request: ScenarioRequest) -> Exam:
        try:
            with self.around.active():
                exam = self.scenario.build(request)
        except IanvsError:
            raise
        except Exception as error:
            where = None if self.spec.url is None else self.spec.url.resolve()
            refuse(request, f"{self.spec.name} can't build the exam: {cause(error, where)}")
        if (why := _exam_error(exam)) is not None:
            refuse(request, f"what {self.spec.name} builds is no exam: {why}.")
        return exam


def _exam_error(exam: object) -> str | None:
    """Return what is wrong with an author's `exam`; None if it is valid."""
    if not isinstance(exam, Exam):
        return f"build() gives {type(exam).__name__}, not an ianvs.exam.scenarios.Exam"
    if not exam.rounds or not exam.tests:
        return "it has no round, or no test set"
    parts = [(round_.name, round_.train, len(exam.dataset.train)) for round_ in exam.rounds]
    parts += [(test.name, test.test, len(exam.dataset.test)) for test in exam.tests]
    for name, positions, count in parts:
        if positions.dtype.kind != "i" or not len(positions) or not 0 <= positions.min() <= positions.max() < count:
            return f"{name} needs positions of samples, at least one, from 0 to {count - 1}"
    return None


def _open_scenario(spec: ScenarioSpec) -> _LoadedScenario:
    """Load a scenario. Raises ConfigError with all errors in its name, code and options."""
    try:
        ours = find_scenario(spec.name) if spec.url is None else None
        around = load_authors_scenario(spec) if ours is None else Loaded(ours)
    except PluginError as error:
        raise ConfigError(
            [ValidationError(str(error), spec.places.get("name", spec.place), code="unknown-scenario")]
        ) from error
    kind: type[Scenario] = around.target
    scenario_name = spec.name if ours is None else ours.names[0]
    scenario, problems = check_options(kind, spec.options, scenario_name, spec.place, spec.places)
    modifiers = None
    if scenario is not None:
        problems = [
            ValidationError(message, spec.places.get(option, spec.place), code="invalid-scenario")
            for option, message in scenario.option_errors()
        ]
        if scenario.modifiers is not None:
            modifiers, modifier_problems = parse_modifiers(scenario.modifiers, spec.places.get("modifiers", spec.place))
            problems += modifier_problems
    if scenario is None or problems:
        raise ConfigError(problems)
    return _LoadedScenario(spec, scenario, around, modifiers)


def _number_of_rounds(
    opened: _LoadedScenario | None, incremental_rounds: int | None, using: tuple[str, ...]
) -> int | None:
    """Return the number of rounds in the testenv. Raises ConfigError if several keys disagree."""
    if opened is None:
        spec, counts = None, [("using", len(using) or None)]
    else:
        spec, counts = opened.spec, [("rounds", opened.scenario.rounds), opened.scenario.listed(using) or ("", None)]
    counts.append(("incremental_rounds", incremental_rounds))
    counts_given = {option: count for option, count in counts if count is not None}
    if len(set(counts_given.values())) > 1:
        contradiction = " but ".join(f"`{option}` gives {count}" for option, count in counts_given.items())
        place = None if spec is None else next((spec.places[o] for o in counts_given if o in spec.places), spec.place)
        message = f"how many rounds are there? {contradiction}. Make them agree, or keep one of them."
        raise ConfigError([ValidationError(message, place, code="round-count-conflict")])
    return next(iter(counts_given.values()), None)


def _require_chunks(exam: Exam, batch: int, request: ScenarioRequest) -> None:
    """Raise ConfigError unless a chunk of the stream begins in each round: it could not be told from the one before."""
    shortest = min(exam.rounds, key=lambda round_: len(round_.train))
    if batch > len(shortest.train):
        message = f"`batch` is {batch}, more than the samples of {shortest.name}, the shortest round"
        message = f"{message}: a chunk may run over the end of a round, not over a whole one"
        refuse(request, f"{message}. Set `batch` to {len(shortest.train)} or less.", "batch")


def _require_prequential(exam: Exam, request: ScenarioRequest) -> Exam:
    """Return `exam` if predictions can be requested before the labels are revealed (prequential)."""
    if exam.stream is None:
        refuse(request, f"`prequential` needs a stream: {exam.rules.scenario} serves whole rounds. Set its `batch`.")
    if not exam.rules.training_labels:
        refuse(request, f"`prequential` tells labels, and {exam.rules.scenario} hides them. Take it out.")
    return exam


def _split_rounds(request: ScenarioRequest, splitting_method: str) -> Exam:
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
    if not request.using:
        return Exam(dataset, named, whole_test_set(request), rules)
    # The test samples are cut into as many equal parts as there are rounds, in the order of the file.
    if len(dataset.test) < rounds:
        refuse(request, f"{len(dataset.test)} test samples can't be cut into {rounds} test sets, one a round.")
    cut = zip(named, np.array_split(np.arange(len(dataset.test)), rounds), strict=True)
    tests = (TestSet(r.name, part, classes_in(dataset, dataset.test, part)) for r, part in cut)
    return Exam(dataset, named, tuple(tests), rules)


def _build_one_round(
    dataset: Dataset, scenario: ScenarioSpec | None, using: tuple[str, ...], type_spec: DataTypeSpec | None
) -> Exam:
    """Return an exam with all data of `scenario` in one round."""
    request = ScenarioRequest(dataset, scenario, using, 1, type_spec)
    positions = np.arange(len(dataset.train))
    everything = Round("all", positions, classes_in(dataset, dataset.train, positions))
    if scenario is not None:
        opened = _open_scenario(scenario)
        exam = opened.build(replace(request, rounds=_number_of_rounds(opened, None, using)))
        if (why := _merge_obstacle(exam)) is not None:
            message = "a paradigm that teaches all rounds as one can't take this exam"
            refuse(request, f"{message}: {why}. An algorithm with `sees_past_rounds`, such as joint, can be here.")
        everything = _merge_rounds(exam)
        request = replace(request, dataset=exam.dataset)  # a scenario may have changed the labels
    tests = domain_tests(request, using) if using and dataset.test.domains is not None else whole_test_set(request)
    rules = Rules("single-task", task_in_training=False, task_in_testing=False, output_space="all")
    return Exam(request.dataset, (everything,), tests, rules)


def _merge_obstacle(exam: Exam) -> str | None:
    """Return why the rounds of `exam` can't be merged into one; None if they can."""
    if any(round_.transform is not None for round_ in exam.rounds):
        return "its rounds bring the same samples, each transformed in a way of its own"
    if not exam.rules.training_labels:
        return "its labels are hidden"
    if exam.rules.test_sets == "future":
        return "test sets hold what a later round teaches"
    return None


def _merge_rounds(exam: Exam) -> Round:
    """Return all samples of the rounds as one round, each with its first training label."""
    dataset = exam.dataset
    train, first = np.unique(np.concatenate([round_.train for round_ in exam.rounds]), return_index=True)
    labels = None
    if any(round_.labels is not None for round_ in exam.rounds):
        round_labels = [dataset.train.y[r.train] if r.labels is None else r.labels for r in exam.rounds]
        labels = np.concatenate(round_labels)[first]
    return Round("all", train, classes_in(dataset, dataset.train, train), labels=labels)
