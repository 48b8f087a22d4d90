"""From what a job says of its engine to an open one: entry points of the group `ianvs.engines`, or an author's file."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import IanvsError, PluginError, Problem, closest
from ianvs.base.package import PACKAGE
from ianvs.base.secrets import hide_secrets
from ianvs.config.spec import EngineSpec, JobSpec, ModuleSpec, ScenarioSpec
from ianvs.plugins.loader import Loaded, cause, load
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.value_types import type_problems
from ianvs.processes.engines import Engine, Workload
from ianvs.running.scheduler.graphics_cards import visible_gpus
from ianvs.running.scheduler.preloading import imported_by_cases, imports_of

ENTRY_POINTS = "ianvs.engines"


def engine_problems(job: JobSpec) -> list[Problem]:
    """What is wrong with the engine's name, file and options, as far as it shows before it is opened."""
    spec = job.engine
    try:
        kind = _loaded(spec).target
    except PluginError as error:
        return [Problem(str(error), spec.place)]
    takes = constructor_parameters(kind)
    known = takes.names[1:]  # the first is the workload
    what = f"engine {spec.name}"
    listed = f"It takes: {', '.join(known)}." if known else "It takes none."
    problems = [
        Problem(f"{what} has no option '{name}'.{closest(name, known)} {listed}", spec.places.get(name, spec.place))
        for name in spec.options
        if name not in known
    ]
    missing = [name for name in takes.required[1:] if name not in spec.options]
    problems += [Problem(f"{what} needs the option '{name}'. {listed}", spec.place) for name in missing]
    if job.cases_per_gpu == "auto" and spec.name == "ray":
        told = "cases_per_gpu: auto watches this machine's cards, and Ray gives out its own: set the option `gpu_share`"
        problems.append(Problem(f"{told} of engine ray, or write a number.", spec.place))
    options = ModuleSpec("engine", what, None, constants=spec.options, places=spec.places)
    return [*problems, *type_problems(options, takes, spec.place)]


def isolates(job: JobSpec) -> bool:
    """Whether the engine that the job names gives tasks processes of their own."""
    return bool(getattr(_loaded(job.engine).target, "isolates", True))


def open_engine(job: JobSpec, tasks: int) -> Engine:
    """The engine that the job names, with what its tasks will import already loaded where that helps."""
    return _open(job, Workload(tasks=tasks, preload=imported_by_cases(job)))


def open_checker(job: JobSpec) -> Engine:
    """For building exams beside a job that runs nothing, or runs in this very process."""
    workload = Workload(tasks=1, threads=job.threads)
    if not engine_problems(job):
        engine = _open(job, workload)
        if engine.isolates:
            return engine
        engine.close()
    return _open(dataclasses.replace(job, engine=EngineSpec("local")), workload)


def _loaded(spec: EngineSpec) -> Loaded:
    loaded = load(None if spec.url is None else str(spec.url), spec.name, ENTRY_POINTS)
    if isinstance(loaded.target, type) and issubclass(loaded.target, Engine):
        return loaded
    raise PluginError(f"'{spec.name}' is no subclass of ianvs.processes.engines.Engine.")


def _open(job: JobSpec, workload: Workload) -> Engine:
    uses_cards = job.device != "cpu" and "torch" in imports_of(job)
    workload = dataclasses.replace(
        workload,
        jobs=job.jobs,
        threads=job.threads,
        device=job.device,
        gpus=(visible_gpus() if job.gpus is None else job.gpus) if uses_cards else (),
        cases_per_gpu=1 if job.cases_per_gpu == "auto" else job.cases_per_gpu,
        code=authors_files(job),
    )
    spec = job.engine
    try:
        with _loaded(spec).active() as kind:
            engine: Engine = kind(workload, **spec.options)
    except IanvsError:
        raise
    except Exception as error:
        where = None if spec.url is None else spec.url.resolve()
        said = hide_secrets(cause(error, where), spec.options, environment=os.environ)
        raise IanvsError(f"engine {spec.name} can't be opened: {said}") from error
    return engine


def authors_files(job: JobSpec) -> tuple[Path, ...]:
    """Files and folders of the job's authors: everything that has a `url`, manifests of exams, initial models."""
    return tuple(dict.fromkeys(_authors_files(job)))


def _authors_files(value: object) -> Iterator[Path]:
    if isinstance(value, tuple):
        for part in value:
            yield from _authors_files(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name, part in ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)):
            if name == "url" and part is not None:
                yield from _file_of(part)
            elif name == "initial_model" and isinstance(part, Path):
                yield part
            elif isinstance(value, ScenarioSpec) and name == "options" and isinstance(file := part.get("file"), str):
                yield Path(file)
            else:
                yield from _authors_files(part)


def _file_of(url: Path | str) -> Iterator[Path]:
    """The author's file, the folder of its package, or nothing for what every installation has."""
    if str(url).endswith(".py") or Path(url).is_absolute():
        yield Path(url)
        return
    top = str(url).partition(":")[0].split(".")[0]
    spec = importlib.util.find_spec(top)
    if top != PACKAGE.name and spec is not None and spec.origin and "site-packages" not in Path(spec.origin).parts:
        yield Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
