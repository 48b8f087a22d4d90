"""The file of a job -> JobSpec, or every problem of every file."""

from __future__ import annotations

import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.config.effects import ACTED_ON, warnings_of
from ianvs.config.models import AlgorithmFile, JobFile, TestEnvFile
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, grids
from ianvs.config.models.base import at, entries
from ianvs.config.models.job import Device, References
from ianvs.config.paths import Lookup
from ianvs.config.reading import Reading
from ianvs.config.spec import AlgorithmSpec, JobSpec, LimitsSpec
from ianvs.config.strict_yaml import Document, Steps
from ianvs.config.to_spec import algorithm_spec, engine_spec, rank_spec, testenv_spec
from ianvs.errors import ConfigError, Place, Problem, closest

__all__ = ["files_of_job", "load_job"]

_DOWNLOAD = ("testenv", "dataset", "download")


@dataclass
class _Student:
    """An algorithm of the job, as far as it could be read."""

    name: Any
    place: Place
    document: Document | None
    model: AlgorithmFile | None
    constants: dict[int, list[Document]] = field(default_factory=dict)  # by index of the module


def load_job(
    path: Path | str,
    *,
    workspace: Path | None = None,
    jobs: int | None = None,
    root: Path | None = None,
    engine: str | None = None,
    device: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> JobSpec:
    """The job at `path` with everything that it links to; the keyword arguments replace what the files say.

    `environment` holds the variables for `${VAR}` in paths, the process's own by default. Raises ConfigError with all
    problems of all files, in the order in which they are read.
    """
    here = Path.cwd()
    file = (here / Path(path).expanduser()).absolute()
    variables = os.environ if environment is None else environment
    reading = Reading(Lookup(file.parent, here, variables, root=(here / root).absolute() if root else None))
    reading.problems += _override_problems(jobs, device)
    document = reading.open(file)
    job = reading.validated(document, "benchmarkingjob", JobFile)
    section = document.data if document else None
    testenvs: list[tuple[Document, TestEnvFile]] = []
    students: list[_Student] = []
    if document and at(section, "benchmarkingjob") is not None:
        testenvs = list(_testenvs(reading, document))
        students = list(_students(reading, document))
    if root and not (here / root).is_dir() and not any(at(source.data, *_DOWNLOAD) for source, _ in testenvs):
        reading.problems.append(Problem(f"there is no folder '{root}', given as the dataset's root."))
    if reading.problems or not (document and job and testenvs):
        raise ConfigError(_in_order(reading.problems, reading.files))
    warnings = [*reading.warnings, *warnings_of(job, document, "benchmarkingjob")]
    for source, testenv in testenvs:
        warnings += warnings_of(testenv, source, "testenv")
    named = job.references.model_dump(exclude_none=True) if isinstance(job.references, References) else {}
    for student in students:
        if student.model and student.document:
            warnings += warnings_of(student.model, student.document, "algorithm")
    return JobSpec(
        name=job.name,
        file=file,
        workspace=(here / (workspace or job.workspace)).absolute(),
        testenvs=tuple(
            testenv_spec(testenv, source, name)
            for (source, testenv), name in zip(testenvs, _exam_names(testenvs), strict=True)
        ),
        algorithms=tuple(_specs(students)),
        rank=rank_spec(job, document),
        seeds=tuple(job.seeds),
        engine=engine_spec(job, document, engine),
        jobs=jobs or job.jobs,
        threads=job.threads,
        device=device or job.device,
        gpus=None if job.gpus is None else tuple(job.gpus),
        cases_per_gpu=job.cases_per_gpu,
        limits=LimitsSpec(**job.limits.model_dump()),
        retries=job.retries,
        fail_fast=job.fail_fast,
        references=named,
        plans_references=job.references != "none",
        places=_places(document, named, [] if device else ["device"]),
        warnings=tuple(_in_order(warnings, reading.files)),
    )


def _places(document: Document, roles: Iterable[str], keys: Iterable[str]) -> dict[str, Place]:
    """Of the references by "references.<role>", and of those of `keys` that the job's file gives."""
    top: Steps = ("benchmarkingjob",)
    places = {f"references.{role}": document.value_place((*top, "references", role)) for role in roles}
    return places | {key: document.value_place((*top, key)) for key in keys if at(document.data, *top, key) is not None}


def files_of_job(path: Path) -> list[Path]:
    """The job's file and those that it links to, in the order of reading, whatever is wrong in them.

    Raises ConfigError if the job's file itself can't be read.
    """
    file = path.absolute()
    reading = Reading(Lookup(file.parent, Path.cwd(), os.environ))
    document = reading.open(file)
    if document is None:
        raise ConfigError(reading.problems)
    list(_testenvs(reading, document))
    list(_students(reading, document))
    return reading.files


def _testenvs(reading: Reading, document: Document) -> Iterator[tuple[Document, TestEnvFile]]:
    """Each testenv of the job that could be read."""
    path: Steps = ("benchmarkingjob", "testenv")
    several = isinstance(at(document.data, *path), list)
    for link in [where for where, _ in entries(document.data, *path)] if several else [path]:
        source = reading.follow(document, link)
        testenv = reading.validated(source, "testenv", TestEnvFile, document.value_place(link))
        if source and testenv:
            yield source, testenv


def _exam_names(testenvs: list[tuple[Document, TestEnvFile]]) -> list[str]:
    """What each exam is called: by its own `name`, else by its scenario; where two are alike, by its file too."""
    names = []
    for source, testenv in testenvs:
        scenario = testenv.scenario
        of_scenario = scenario if isinstance(scenario, str) else scenario.name if scenario else ""
        names.append(testenv.name or of_scenario or source.file.stem)
    files = [source.file.parent.name if source.file.stem == "testenv" else source.file.stem for source, _ in testenvs]
    alike = [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]
    return [f"{name} {alike[:i].count(name) + 1}" if alike.count(name) > 1 else name for i, name in enumerate(alike)]


def _students(reading: Reading, document: Document) -> Iterator[_Student]:
    for path, entry in entries(document.data, "benchmarkingjob", "test_object", "algorithms"):
        link = (*path, "url")
        linked = reading.follow(document, link) if isinstance(entry, dict) else None
        model = reading.validated(linked, "algorithm", AlgorithmFile, document.value_place(link))
        place = document.value_place((*path, "name"))
        student = _Student(at(entry, "name"), place, linked, model)
        if linked:
            student.constants = _constants(reading, linked)
        yield student


def _constants(reading: Reading, document: Document) -> dict[int, list[Document]]:
    found: dict[int, list[Document]] = {}
    for path, module in entries(document.data, "algorithm", "modules"):
        for where, name, grid in grids(document.data, path):
            if (
                name == OTHER_HYPERPARAMETERS
                and at(module, "type") in ACTED_ON
                and isinstance(at(grid, "values"), list)
            ):
                files = [reading.constants(document, link) for link, _ in entries(document.data, *where, "values")]
                found[int(path[-1])] = [file for file in files if file]
    return found


def _specs(students: list[_Student]) -> Iterator[AlgorithmSpec]:
    for student in students:
        if student.model and student.document:
            yield algorithm_spec(student.model, student.document, student.name, student.place, student.constants)


def _override_problems(jobs: int | None, device: str | None) -> Iterator[Problem]:
    if jobs is not None and jobs < 1:
        yield Problem(f"jobs should be at least 1, found {jobs}.")
    names = typing.get_args(Device)
    if device is not None and device not in names:
        hint = closest(device, names) or f" There are: {', '.join(names)}."
        yield Problem(f"device '{device}' is not known.{hint}")


def _in_order(problems: list[Problem], files: list[Path]) -> list[Problem]:
    """`problems` by file in reading order, then by line; each once."""

    def position(problem: Problem) -> tuple[int, int, int]:
        place = problem.place
        if place is None:
            return (-1, 0, 0)
        return (files.index(place.file) if place.file in files else len(files), place.line, place.column)

    return sorted(dict.fromkeys(map(_printable, problems)), key=position)


def _printable(problem: Problem) -> Problem:
    """The problem in one line, whatever text of the file its message quotes."""
    message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in problem.message)
    return Problem(message, problem.place)
