"""From what a job says of its engine to an open one: entry points of the group `ianvs.engines`, or an author's file;
and which modules its cases will import, so that the process which they are forked from can do it once.

The latter is a guess, by what is written: too much costs that process a second, too little costs every case one.
"""

import contextlib
import dataclasses
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import IanvsError, PluginError, ValidationError, closest
from ianvs.base.package import PACKAGE, own_name
from ianvs.base.secrets import hide_secrets
from ianvs.config.spec import EngineSpec, JobSpec, ModuleSpec, ScenarioSpec
from ianvs.exam.metrics.registry import metric_header
from ianvs.plugins.loader import Loaded, cause, load
from ianvs.plugins.local_imports import imported_by
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import local_files
from ianvs.plugins.value_types import type_problems
from ianvs.processes.engines import Engine, InlineEngine, LocalEngine, Workload
from ianvs.running.scheduler.slots import visible_gpus

ENTRY_POINTS = "ianvs.engines"


def engine_problems(job: JobSpec) -> list[ValidationError]:
    """What is wrong with the engine's name, file and options, as far as it shows before it is opened."""
    spec = job.engine
    try:
        kind = _loaded(spec).target
    except PluginError as error:
        return [ValidationError(str(error), spec.place, code="invalid-engine")]
    takes = constructor_parameters(kind)
    options_known = takes.names[1:]  # the first is the workload
    engine_name = f"engine {spec.name}"
    listed = f"It takes: {', '.join(options_known)}." if options_known else "It takes none."
    problems = [
        ValidationError(
            f"{engine_name} has no option '{name}'.{closest(name, options_known)} {listed}",
            spec.places.get(name, spec.place),
            code="unknown-option",
        )
        for name in spec.options
        if name not in options_known
    ]
    missing = [name for name in takes.required[1:] if name not in spec.options]
    problems += [
        ValidationError(f"{engine_name} needs the option '{name}'. {listed}", spec.place, code="missing-option")
        for name in missing
    ]
    if job.cases_per_gpu == "auto" and spec.name == "ray":
        reason = "cases_per_gpu: auto watches this machine's GPUs, and Ray assigns its own: set the option `gpu_share`"
        problems.append(
            ValidationError(f"{reason} of engine ray, or write a number.", spec.place, code="conflicting-keys")
        )
    options = ModuleSpec("engine", engine_name, str(spec.url or spec.name), constants=spec.options, places=spec.places)
    return [*problems, *type_problems(options, takes, spec.place)]


def runs_inline(job: JobSpec) -> bool:
    """Whether the job asks for everything in this process."""
    return job.engine.name == "inline" and job.engine.url is None


def engine_class(job: JobSpec) -> type[Engine]:
    """Of the job's engine; Engine itself for one that can't be loaded, of which engine_problems tells."""
    with contextlib.suppress(PluginError):
        kind: type[Engine] = _loaded(job.engine).target
        return kind
    return Engine


class SharedLocalEngine:
    """The local engine of a job, opened for whoever needs it first: the inspector's processes are forked from it, too.

    What takes seconds is so imported once. engine: None before, and where tasks can't be forked.
    """

    engine: Engine | None = None

    def forking(self, job: JobSpec, tasks: int | None = None) -> Engine | None:
        """tasks: as for Workload. None where the job has another engine; what is wrong with it, opening it tells."""
        if self.engine is None and job.engine.name == "local" and job.engine.url is None:
            with contextlib.suppress(IanvsError):
                engine = open_engine(job, tasks)
                if engine.forks:
                    self.engine = engine
                else:
                    engine.close()
        return self.engine

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()


def open_engine(job: JobSpec, tasks: int | None, *, for_cases: bool = True) -> Engine:
    """The engine that the job names; for cases, with what they will import already loaded where that helps."""
    uses_cards = job.device != "cpu" and "torch" in imports_of(job)
    workload = Workload(
        tasks=tasks,
        preload=imported_by_cases(job) if for_cases else (),
        jobs=job.jobs,
        threads=job.threads,
        device=job.device,
        gpus=(visible_gpus() if job.gpus is None else job.gpus) if uses_cards else (),
        cases_per_gpu=1 if job.cases_per_gpu == "auto" else job.cases_per_gpu,
        code=tuple(dict.fromkeys(authors_files(job))),
        workspace=job.workspace,
        resources=tuple(dict.fromkeys([*(algorithm.resources for algorithm in job.algorithms), None])),
    )
    spec = job.engine
    try:
        with _loaded(spec).active() as kind:
            engine: Engine = kind(workload, **spec.options)
    except IanvsError:
        raise
    except Exception as error:
        where = None if spec.url is None else spec.url.resolve()
        reason = hide_secrets(cause(error, where), spec.options, environment=os.environ)
        raise IanvsError(f"engine {spec.name} can't be opened: {reason}", code="invalid-engine") from error
    return engine


def makes_checks(engine: Engine, job: JobSpec) -> bool:
    """Whether exams are built by the job's `engine`, and not by processes of this machine."""
    return isinstance(engine, LocalEngine | InlineEngine) or (engine.isolates and job.engine.checks == "there")


def open_checker(job: JobSpec, *, opened: bool = False) -> Engine:
    """For building exams beside a job that runs nothing, or runs elsewhere.

    opened: whether the job's engine is open already; else it is opened, and says what it can't do.
    """
    if not opened and not engine_problems(job):
        engine = open_engine(job, tasks=1, for_cases=False)
        if makes_checks(engine, job):
            return engine
        engine.close()
    return open_engine(dataclasses.replace(job, engine=EngineSpec("local")), tasks=1, for_cases=False)


def _loaded(spec: EngineSpec) -> Loaded:
    loaded = load(None if spec.url is None else str(spec.url), spec.name, ENTRY_POINTS)
    if isinstance(loaded.target, type) and issubclass(loaded.target, Engine):
        return loaded
    raise PluginError(f"'{spec.name}' is not a subclass of ianvs.processes.engines.Engine.", code="invalid-engine")


def authors_files(value: object) -> Iterator[Path]:
    """Files and folders of a job's authors: everything that has a `url`, manifests of exams, initial models.

    value: the job, or a part of it. One that is named twice comes twice.
    """
    if isinstance(value, tuple):
        for part in value:
            yield from authors_files(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name, part in ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)):
            if name == "url" and part is not None:
                yield from _file_of(part)
            elif name == "initial_model" and isinstance(part, Path):
                yield part
            elif isinstance(value, ScenarioSpec) and name == "options" and isinstance(file := part.get("file"), str):
                yield Path(file)
            else:
                yield from authors_files(part)


def _file_of(url: Path | str) -> Iterator[Path]:
    """The author's file, the folder of its package, or nothing for what every installation has."""
    if str(url).endswith(".py") or Path(url).is_absolute():
        yield Path(url)
        return
    top = str(url).partition(":")[0].split(".")[0]
    spec = importlib.util.find_spec(top)
    if top != PACKAGE.name and spec is not None and spec.origin and "site-packages" not in Path(spec.origin).parts:
        yield Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


_HEAVY = ("torchvision", "transformers", "peft", "sentence_transformers")  # up to a second and a half each to import
_METHODS = Path(PACKAGE.name, "testalgorithms")
_PLAIN_NETWORKS = ("mlp", "linear")
_PICTURES = re.compile("resnet", re.IGNORECASE)  # ours is built of torchvision's blocks, too


def imports_of(job: JobSpec) -> set[str]:
    """Top-level names of all that the job's plugins import."""
    return _top_level(_files(job))


def imported_by_cases(job: JobSpec) -> tuple[str, ...]:
    """What an engine's `preload` is to be."""
    names = {"ianvs.running.session.case", "ianvs.running.session.case:warm_up", "ianvs.running.session.exams"}
    files = _files(job)
    written = {path for path in files if (own_name(path) or _METHODS).is_relative_to(_METHODS)}
    # What the rest of our package imports depends on what it is asked for.
    imported = _top_level(written)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in written]
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    values = [pair for module in modules for pair in module.constants.items()]
    values += [(name, value) for module in modules for name, listed in module.grid for value in listed]
    networks = [value for name, value in values if name == "network"]
    if any(value not in _PLAIN_NETWORKS for value in networks) or any(map(_PICTURES.search, texts)):
        imported.add("torchvision")
    texts_given = [value for _, value in values if isinstance(value, str)]
    if any("/" in text or Path(text).is_dir() for text in texts_given):  # "hf/NAME", or the folder of a model
        imported.add("transformers")
    if "torch" in _top_level(files):
        # Counting a network's operations imports torch's compiler, two seconds: once, not in each case.
        names |= {"torch", "ianvs.authoring", "torch._dynamo", "torch.utils.flop_counter"}
    metrics = [metric_header(metric) for exam in job.testenvs for metric in exam.metrics]
    if any(metric.about is not None for metric in metrics):
        imported.add("sentence_transformers")
    return tuple(sorted(names | {name for name in _HEAVY if name in imported and importlib.util.find_spec(name)}))


def _files(job: JobSpec) -> set[Path]:
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    return {path for module in modules for path in local_files(module.url, module.name, job=job.file.parent)}


def _top_level(files: set[Path]) -> set[str]:
    return {module.split(".")[0] for path in files for module in imported_by(path)}
