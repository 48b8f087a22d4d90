"""Loads a JobSpec from the file of a job, or reports all errors of all files."""

import os
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ianvs.base.entry_points import installed
from ianvs.base.errors import ConfigError, PluginError, ValidationError, closest
from ianvs.config.contracts import Native, contract_named, mixed, runner_of
from ianvs.config.messages import GPU_IS_CUDA, GPU_WORDS
from ianvs.config.models import JobFile, TestEnvSpec
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS
from ianvs.config.models.base import at, entries
from ianvs.config.models.class_tree import class_tree
from ianvs.config.models.contract_name import GROUP, NATIVE
from ianvs.config.models.job import Device, EngineSpec, JobSettings, References
from ianvs.config.models.search import SelectSpec
from ianvs.config.overrides import Override, assign_to_files
from ianvs.config.paths import Lookup
from ianvs.config.reading import Reading
from ianvs.config.spec import AlgorithmSpec, JobSpec
from ianvs.config.strict_yaml import Document, Steps


def load_job(
    path: Path | str,
    *,
    workspace: Path | None = None,
    jobs: int | None = None,
    root: Path | None = None,
    engine: str | None = None,
    device: str | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[Override] = (),
    corrects: bool = False,
) -> JobSpec:
    """Return the job at `path` with all linked files; keyword arguments override the files.

    Raises ConfigError with all errors of all files, in the order of reading.

    Args:
        path: The job's file.
        workspace: Overrides the file.
        jobs: Overrides the file.
        root: Folder of relative paths of datasets.
        engine: Overrides the file.
        device: Overrides the file.
        environment: Variables for `${VAR}` in paths; None: those of the process.
        overrides: Further settings; those of hyperparameters are kept for `planning.with_hyperparameters`.
        corrects: Return a job whose only errors are misspelt keys with corrected keys, and the errors as its
            `problems`, for callers that look for further ones.
    """
    working_folder = Path.cwd()
    file = (working_folder / Path(path).expanduser()).absolute()
    reading, document = _opened(file, root, os.environ if environment is None else environment)
    if jobs is not None or device is not None:
        reading.problems += _override_problems(jobs, device)
    reading.corrects = corrects and not overrides and type(reading) is Reading
    if overrides and document is not None:
        reading.overrides, override_problems = assign_to_files(overrides, document)
        reading.problems += override_problems
        document = reading.overridden(document, "benchmarkingjob")
    job: JobFile | None = reading.validated(document, "benchmarkingjob")
    if reading.corrected:
        document = reading.open(file)
    testenvs, algorithms = _linked(reading, document)
    if root and not (working_folder / root).is_dir() and not any(testenv.dataset.download for testenv in testenvs):
        reading.problems.append(
            ValidationError(f"there is no folder '{root}', given as the dataset's root.", code="missing-file")
        )
    named_contracts = [(str(algorithm.name), algorithm.contract) for algorithm in algorithms]
    if len(algorithms) > 1 and (mixed_contracts := mixed(named_contracts)):
        assert document is not None
        algorithms_place = document.key_place(("benchmarkingjob", "test_object", "algorithms"))
        reading.problems.append(ValidationError(mixed_contracts, algorithms_place, code="mixed-contracts"))
    deferred = [problem for problem in reading.rewritten if not problem.warning]
    warnings = reading.warnings + [problem for problem in reading.rewritten if problem.warning]
    others = [problem for problem in reading.problems if problem not in reading.corrected]
    if others or not (job and testenvs and algorithms):
        raise ConfigError(_in_order(reading.problems + deferred, reading.documents))
    if job.working_directory and reading.working_directory is None:
        message = "'working_directory' has no effect: it is of algorithms under `contract: ianvs`."
        warnings.append(ValidationError(message, job.places["working_directory"], code="no-effect"))
    contract = algorithms[0].contract if runner_of(algorithms[0]) else NATIVE
    replaced: dict[str, object] = {key: value for key, value in (("jobs", jobs), ("device", device)) if value}
    if engine not in (None, job.engine.name):
        replaced["engine"] = EngineSpec(str(engine))
    settings: dict[str, Any] = {field.name: getattr(job, field.name) for field in fields(JobSettings)} | replaced
    if job.search is not None and job.search.select is None and len(job.seeds) > 1:  # it does not see reported runs
        settings["search"] = replace(job.search, select=SelectSpec(by="seeds", place=job.search.place))
    settings["workspace"] = (working_folder / (workspace or job.workspace)).absolute()
    references = job.references if isinstance(job.references, References) else References()
    named = {role: name for role in ("joint", "single_task") if (name := getattr(references, role))}
    settings["places"] = {key: place for key, place in job.places.items() if key not in replaced}
    settings["places"] |= {f"references.{role}": references.places[role] for role in named}
    return JobSpec(
        **settings,
        name=job.name,
        file=file,
        testenvs=tuple(
            replace(exam, metrics=tuple(replace(each, contract=contract) for each in exam.metrics)) for exam in testenvs
        ),
        algorithms=tuple(
            each  # otherwise with the interpreter of its environment, which may not exist yet
            if each.environment is None
            else replace(each, python=each.environment.interpreter(settings["workspace"]))
            for each in algorithms
        ),
        references=named,
        published={link.name: link.published for link in job.test_object.algorithms if link.published},
        overrides=tuple(reading.overrides),
        plans_references=job.references != "none",
        working_directory=reading.working_directory,
        problems=tuple(_in_order(deferred + reading.corrected, reading.documents)),
        warnings=tuple(_in_order(warnings, reading.documents)),
        unexpanded_paths=reading.lookup.unexpanded_paths,
    )


def _opened(file: Path, root: Path | None, variables: Mapping[str, str]) -> tuple[Reading, Document | None]:
    """Return the reader and the content of the job's file."""
    reading = Reading(Lookup(file.parent, Path.cwd(), variables, root=Path.cwd() / root if root else None))
    document = reading.open(file)
    if document is None:
        return reading, None
    for name in installed(GROUP):
        try:
            contract = contract_named(name)
        except PluginError:
            continue  # reported for a job that names it
        if isinstance(contract, Native):
            continue  # so is the form of its files
        if (theirs := contract.reading(document, reading.lookup)) is not None:
            return theirs, theirs.open(file)
    return reading, document


def read_job(path: Path, root: Path | None = None) -> Reading:
    """Read all files of the job at `path`, if they have their own form; else only its own file. Raises ConfigError."""
    reading, document = _opened(path.absolute(), root, os.environ)
    if type(reading) is not Reading:
        reading.validated(document, "benchmarkingjob")
        _linked(reading, document)
    if reading.problems:
        raise ConfigError(_in_order(reading.problems, reading.documents))
    return reading


def files_of_job(path: Path) -> list[Path]:
    """Return the job's file and its linked files, in the order of reading, even if they have errors.

    Raises ConfigError if the job's file can't be read.
    """
    file = path.absolute()
    reading = Reading(Lookup(file.parent, Path.cwd(), os.environ))
    document = reading.open(file)
    if document is None:
        raise ConfigError(reading.problems)
    _linked(reading, document)
    return list(reading.documents)


def _linked(reading: Reading, document: Document | None) -> tuple[tuple[TestEnvSpec, ...], tuple[AlgorithmSpec, ...]]:
    """Return the readable testenvs and algorithms of the job in `document`."""
    if document is None:
        return (), ()
    testenvs: list[TestEnvSpec] = []
    top: Steps = ("benchmarkingjob", "testenv")
    listed = isinstance(at(document.data, *top), list)
    for link in [where for where, _ in entries(document.data, *top)] if listed else [top]:
        source = reading.follow(document, link)
        if reading.overrides:
            source = reading.overridden(source, "testenv")
        exam: TestEnvSpec | None = reading.validated(source, "testenv", document.value_place(link))
        if source is None or exam is None:
            continue
        scenario = exam.scenario.name if exam.scenario else source.file.stem
        exam = replace(exam, file=source.file, name=exam.name or scenario)
        for part in ("train", "test") if exam.dataset.name is None else ():
            if at(source.data, "testenv", "dataset", f"{part}_url"):
                reading.warnings.append(_former_url(part, exam, source))
        if at(source.data, "testenv", "dataset", "hierarchy") is not None:
            exam = _with_class_tree(exam, source, reading)
        testenvs.append(exam)
    if len({exam.name for exam in testenvs}) < len(testenvs):
        names = _distinct_names(testenvs)
        testenvs = [replace(exam, name=name) for exam, name in zip(testenvs, names, strict=True)]

    algorithms: list[AlgorithmSpec] = []
    for path, entry in entries(document.data, "benchmarkingjob", "test_object", "algorithms"):
        link = (*path, "url")
        if (source := reading.follow(document, link)) is None:
            continue
        algorithm: AlgorithmSpec | None = reading.validated(source, "algorithm", document.value_place(link))
        source = reading.documents[source.file] or source  # with corrected keys
        if any(OTHER_HYPERPARAMETERS in steps for steps in source.keys):
            algorithm = reading.with_constants(source, algorithm)
        if algorithm is None:
            continue
        modules = algorithm.modules
        if reading.rewrite is None:
            modules = (*(m for m in modules if m.type == "basemodel"), *(m for m in modules if m.type != "basemodel"))
        name, place = algorithm.name or at(entry, "name"), document.value_place((*path, "name"))
        algorithms.append(replace(algorithm, modules=modules, name=name, file=source.file, place=place))
    return tuple(testenvs), tuple(algorithms)


def _former_url(part: str, exam: TestEnvSpec, source: Document) -> ValidationError:
    """Return a warning that `train_url` or `test_url` has other names."""
    forms = {each.form for each in (exam.dataset.train if part == "train" else exam.dataset.test)}
    read_as = " and ".join(f"{part}_{form}" for form in sorted(forms))
    message = f"'{part}_url' is an old name, read as {read_as} by its suffix. Write {read_as}."
    return ValidationError(message, source.key_place(("testenv", "dataset", f"{part}_url")), code="renamed-key")


def _with_class_tree(exam: TestEnvSpec, source: Document, reading: Reading) -> TestEnvSpec:
    """Return the exam with the tree of its classes, which is in its file or in one that this names."""
    path: Steps = ("testenv", "dataset", "hierarchy")
    linked = reading.follow(source, path) if isinstance(at(source.data, *path), str) else source
    if linked is None:
        return exam
    tree, problems = class_tree(linked, path if linked is source else ())
    reading.problems += problems
    return exam.with_dataset(replace(exam.dataset, hierarchy=tree))


def _distinct_names(testenvs: Sequence[TestEnvSpec]) -> list[str]:
    """Return the names of exams; of two that are equal, with the file."""
    names = [exam.name for exam in testenvs]
    files = [exam.file.parent.name if exam.file.stem == "testenv" else exam.file.stem for exam in testenvs]
    shown = [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]
    return [f"{name} {shown[: n + 1].count(name)}" if shown.count(name) > 1 else name for n, name in enumerate(shown)]


def _override_problems(jobs: int | None, device: str | None) -> Iterator[ValidationError]:
    if jobs is not None and jobs < 1:
        yield ValidationError(f"jobs should be at least 1, found {jobs}.", code="out-of-range")
    names = typing.get_args(Device)
    if device is not None and device not in names:
        hint = GPU_IS_CUDA if device in GPU_WORDS else closest(device, names) or f" There are: {', '.join(names)}."
        yield ValidationError(f"device '{device}' is not known.{hint}", code="invalid-choice")


def _in_order(problems: list[ValidationError], files: Iterable[Path]) -> list[ValidationError]:
    """Return `problems` by file in reading order, then by line; each once."""
    order = {file: index for index, file in enumerate(files)}

    def position(problem: ValidationError) -> tuple[int, int, int]:
        where = problem.location
        return (order.get(where.file, len(order)), where.line, where.column) if where else (-1, 0, 0)

    return sorted(dict.fromkeys(map(_printable, problems)), key=position)


def _printable(problem: ValidationError) -> ValidationError:
    """Return the error in one line, since its message may quote text of the file."""
    message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in problem.message)
    return replace(problem, message=message)
