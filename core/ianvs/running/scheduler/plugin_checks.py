"""Checks of authors' plugins, whose code runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ianvs.base.errors import Problem
from ianvs.config.contracts import contract_of
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.processes.engines import LocalEngine
from ianvs.running.inspector import ParadigmFacts
from ianvs.running.inspector.plugin_check import FORCED, Checked, Subject
from ianvs.running.planning import PlannedAlgorithm, cells, grid
from ianvs.running.planning.studies import is_searched, with_ends
from ianvs.running.scheduler.flight import Preflight
from ianvs.running.scheduler.taught_texts import Rounds, taught_texts
from ianvs.store import ExamRecord, ExamStore

__all__ = ["fit_problems", "plugin_problems"]

MOST_BUILT = 32  # choices of hyperparameters that an algorithm is built with; of a larger grid each value once


def plugin_problems(flight: Preflight) -> list[Problem]:
    """Import each algorithm's plugin, hold it against its contract and its grid, and build it."""
    job = flight.job
    if (contract := contract_of(job)).runs_cases:
        return list(contract.code_problems(job))
    if flight.problems:  # there is no plan: what the files name is looked at all the same
        subjects = [
            subject
            for algorithm, facts in zip(job.algorithms, flight.inspector.paradigms(job.algorithms), strict=True)
            for subject in _subjects(job, algorithm, facts)
        ]
    else:
        planned = {_looked_at(each): each for each in flight.plan.algorithms}.values()
        subjects = [s for each in planned for s in _subjects(job, each.spec, each.paradigm, each.choices)]
    problems: list[Problem] = []
    for subject in subjects:
        found = _check(flight, subject)
        problems += found.problems
        if found.asks:
            flight.asking.add(_key(subject.algorithm, subject.module))
    return problems


def fit_problems(flight: Preflight) -> list[Problem]:
    """Ask those plugins that have a check_exam() whether they can take the exams as they turned out to be.

    Of plugins under another contract, what it finds by importing them.
    """
    if (contract := contract_of(flight.job)).runs_cases:
        return list(contract.import_problems(flight.job))
    exams = ExamStore(flight.job.workspace)
    subjects: list[Subject] = []
    texts: dict[str, Rounds] = {}
    for each in flight.plan.algorithms:
        record = exams.record(each.exam_id)
        if record is not None:
            facts = _facts(record) | {"conversations": taught_texts(flight.plan, each, record, texts)}
            for subject in _subjects(flight.job, each.spec, each.paradigm, each.choices, facts):
                if _key(each.spec, subject.module) in flight.asking and subject not in subjects:
                    subjects.append(subject)
    return [problem for subject in subjects for problem in _check(flight, subject).problems]


def _check(flight: Preflight, subject: Subject) -> Checked:
    here = isinstance(flight.engine, LocalEngine)  # opened before: meanwhile it imports what cases need
    # Another machine may have other cards; each case looks for itself.
    return flight.inspector.check(subject if here else replace(subject, device="auto"))


def _subjects(
    job: JobSpec,
    algorithm: AlgorithmSpec,
    paradigm: ParadigmFacts,
    choices: tuple[Mapping[str, object], ...] | None = None,
    exam: Mapping[str, object] | None = None,
) -> Iterator[Subject]:
    """A subject for each module. choices: of the hyperparameters of an algorithm that has one module and no grid."""
    forced = any(testenv.teacher_forced for testenv in job.testenvs)
    if is_searched(algorithm):
        choices = None  # its trials are within the ends of its ranges
    for module in map(with_ends, algorithm.modules):
        built = tuple(_some(module)) if choices is None else choices[:MOST_BUILT]
        methods = paradigm.methods.get(module.type, ())
        methods += (FORCED,) if forced and module.type == "basemodel" else ()
        yield Subject(algorithm, module, methods, built, job.device, job.places.get("device"), exam)


def _some(module: ModuleSpec) -> Iterator[dict[str, object]]:
    """The module's grid, or, of a large one, a few choices that have each value in one of them."""
    if cells((module,)) <= MOST_BUILT:
        yield from grid((module,))
        return
    longest = max(len(values) for _, values in module.grid)
    for index in range(min(longest, 8 * MOST_BUILT)):
        yield {**module.constants, **{name: values[index % len(values)] for name, values in module.grid}}


def _key(algorithm: AlgorithmSpec, module: ModuleSpec) -> tuple[Any, ...]:
    return algorithm.name, algorithm.file, algorithm.paradigm.name, module.type, module.name


def _looked_at(planned: PlannedAlgorithm) -> tuple[Any, ...]:
    """What is looked at once: the trials of a search are of one class, and within the ends of its ranges."""
    return _key(planned.spec, planned.spec.modules[0]), 0 if is_searched(planned.spec) else len(planned)


def _facts(record: ExamRecord) -> dict[str, object]:
    return {
        "kind": record.kind,
        "shape": record.shape,
        "classes": record.classes,
        "num_classes": len(record.classes),
        "rounds": len(record.rounds),
    }
