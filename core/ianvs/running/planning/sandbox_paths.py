"""Files that sandboxes may read, and files that they must not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ianvs.base.errors import ConfigError, ValidationError
from ianvs.config.spec import AlgorithmSpec, JobSpec, TestEnvSpec
from ianvs.exam.data.named_sources import find_source
from ianvs.plugins.source import authors_sources
from ianvs.processes.sandbox import Sandbox
from ianvs.running.planning.identity import plugin_files_of
from ianvs.running.planning.named_files import named_paths


def exam_paths(job: JobSpec) -> tuple[Path, ...]:
    """Return files and folders of the job's exams, and its results."""
    paths = [job.workspace, *(path for exam in job.testenvs for path in _data_of(exam))]
    return tuple(dict.fromkeys(path.resolve() for path in paths))


def readable_paths(job: JobSpec, algorithm: AlgorithmSpec) -> tuple[Path, ...]:
    """Return files and folders that an algorithm names, such as weights. See `readable_problems`."""
    return tuple(path.absolute() for path in [*named_paths(job, algorithm), *_code_of_exams(job)])


def inspector_sandbox(job: JobSpec) -> Sandbox | None:
    """Return the sandbox for importing and building plugins before a run; None if the job has no sandboxes."""
    if not job.sandboxed:
        return None
    paths = [path for algorithm in job.algorithms for path in readable_paths(job, algorithm)]
    for algorithm in job.algorithms:
        for _, plugin in plugin_files_of(job, algorithm):
            paths += authors_sources(*plugin)
    return Sandbox(tuple(dict.fromkeys(paths)), masked=exam_paths(job), gpu=job.device != "cpu")


def readable_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Yield errors for files that an algorithm names and that belong to an exam."""
    hidden = exam_paths(job)
    for algorithm in job.algorithms:
        for path, place in named_paths(job, algorithm).items():
            inner = path.resolve()
            if any(inner.is_relative_to(hidden_path) or hidden_path.is_relative_to(inner) for hidden_path in hidden):
                yield ValidationError(
                    f"A sandbox hides the exam, and {algorithm.name} names '{path}', which is or holds a part "
                    "of it, or of the workspace. Move it to a folder of its own.",
                    place,
                    code="conflicting-keys",
                )


def _code_of_exams(job: JobSpec) -> Iterator[Path]:
    """Yield files of data types and evaluation tasks of the exam's author, whose code learners need."""
    for exam in job.testenvs:
        kind = exam.dataset.data_type
        urls = [*(task.url for task in exam.evaluation_tasks), None if kind is None else kind.url]
        yield from (Path(url) for url in urls if url is not None)


def _data_of(exam: TestEnvSpec) -> Iterator[Path]:
    spec = exam.dataset
    if spec.root is not None:
        yield spec.root
    yield from (source.path for source in (*spec.train, *spec.test))
    if spec.url is not None:
        yield spec.url.parent
    if isinstance(spec.pictures, Path):
        yield spec.pictures
    if exam.scenario is not None and isinstance(file := exam.scenario.options.get("file"), str):
        yield Path(file)
    if spec.name is not None and spec.url is None:
        with suppress(ConfigError):
            yield from find_source(spec).files(spec)
