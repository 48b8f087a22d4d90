"""Opens the engine of a job, from an entry point of the group `ianvs.engines` or a file, and guesses its imports.

The process that cases are forked from imports these modules once. Too many cost that process a second, too few cost
every case one.
"""

import contextlib
import dataclasses
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ianvs.base.errors import IanvsError, PluginError, ValidationError, closest
from ianvs.base.package import PACKAGE, own_name
from ianvs.base.secrets import hide_secrets
from ianvs.config.spec import EngineSpec, JobSpec, ModuleSpec, ScenarioSpec
from ianvs.exam.metrics.registry import metric_header
from ianvs.plugins.loader import Loaded, cause, load
from ianvs.plugins.local_imports import parsed
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import local_files
from ianvs.plugins.value_types import type_problems
from ianvs.processes.engines import Engine, InlineEngine, LocalEngine, Workload
from ianvs.running.scheduler.slots import visible_gpus

ENTRY_POINTS = "ianvs.engines"


def engine_problems(job: JobSpec) -> list[ValidationError]:
    """Check the engine's name, file and options without opening it."""
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


def engine_class(job: JobSpec) -> type[Engine]:
    """Return the class of the job's engine; Engine if it can't be loaded, which engine_problems reports."""
    with contextlib.suppress(PluginError):
        kind: type[Engine] = _loaded(job.engine).target
        return kind
    return Engine


class SharedLocalEngine:
    """The local engine of a job, shared with the inspector, so that slow imports happen only once.

    engine: None before it is opened, and if tasks can't be forked.
    """

    engine: Engine | None = None

    def forking(self, job: JobSpec, tasks: int | None = None) -> Engine | None:
        """Return the forking local engine; None if the job has another one. tasks: as for Workload."""
        if self.engine is None and job.engine == EngineSpec("local"):
            engine = LocalEngine(_workload(job, tasks))
            if engine.forks:
                self.engine = engine
            else:
                engine.close()
        return self.engine

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()


def _workload(job: JobSpec, tasks: int | None, *, for_cases: bool = True, elsewhere: bool = False) -> Workload:
    """Return the expected tasks. for_cases: preload the modules that cases import. elsewhere: gather authors' files."""
    imports = imports_by_file(job)
    uses_cards = job.device != "cpu" and any("torch" in names for names in imports.values())
    return Workload(
        tasks=tasks,
        preload=imported_by_cases(job, imports) if for_cases else (),
        jobs=job.jobs,
        threads=job.threads,
        device=job.device,
        gpus=(visible_gpus() if job.gpus is None else job.gpus) if uses_cards else (),
        cases_per_gpu=1 if job.cases_per_gpu == "auto" else job.cases_per_gpu,
        code=tuple(dict.fromkeys(authors_files(job))) if elsewhere else (),
        workspace=job.workspace,
        resources=tuple(dict.fromkeys([*(algorithm.resources for algorithm in job.algorithms), None])),
    )


def open_engine(job: JobSpec, tasks: int | None, *, for_cases: bool = True) -> Engine:
    """Open the job's engine. for_cases: preload the modules that cases import."""
    spec, loaded = job.engine, _loaded(job.engine)
    workload = _workload(job, tasks, for_cases=for_cases, elsewhere=loaded.target.elsewhere)
    try:
        with loaded.active() as kind:
            engine: Engine = kind(workload, **spec.options)
    except IanvsError:
        raise
    except Exception as error:
        where = None if spec.url is None else spec.url.resolve()
        reason = hide_secrets(cause(error, where), spec.options, environment=os.environ)
        raise IanvsError(f"engine {spec.name} can't be opened: {reason}", code="invalid-engine") from error
    return engine


def builds_exams(engine: Engine, job: JobSpec) -> bool:
    """Return whether exams are built on the job's `engine` and not by local processes."""
    return isinstance(engine, LocalEngine | InlineEngine) or (engine.isolates and job.engine.build_exams == "there")


def open_checker(job: JobSpec, *, opened: bool = False) -> Engine:
    """Open a local engine for building exams, if no cases run or they run on other machines.

    opened: whether the job's engine is open already; else it is opened, and says what it can't do.
    """
    if not opened and not engine_problems(job):
        engine = open_engine(job, tasks=1, for_cases=False)
        if builds_exams(engine, job):
            return engine
        engine.close()
    return open_engine(dataclasses.replace(job, engine=EngineSpec("local")), tasks=1, for_cases=False)


def _loaded(spec: EngineSpec) -> Loaded:
    loaded = load(None if spec.url is None else str(spec.url), spec.name, ENTRY_POINTS)
    if isinstance(loaded.target, type) and issubclass(loaded.target, Engine):
        return loaded
    raise PluginError(f"'{spec.name}' is not a subclass of ianvs.processes.engines.Engine.", code="invalid-engine")


def authors_files(value: object) -> Iterator[Path]:
    """Yield files and folders of a job's authors: everything with a `url`, manifests of exams, initial models.

    value: the job, or a part of it. Duplicates are not removed.
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
    """Yield the file, or the folder of its package; nothing for modules of an installation."""
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
_PICTURES = re.compile("resnet", re.IGNORECASE)  # the built-in one uses torchvision's blocks, too


def imports_by_file(job: JobSpec) -> dict[Path, set[str]]:
    """Return the top-level names of all imports in each file of the job's plugins."""
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    files = {path for module in modules for path in local_files(module.url, module.name, job=job.file.parent)}
    return {path: {module.split(".")[0] for module in parsed(path).imports} for path in files}


def imported_by_cases(job: JobSpec, imports: Mapping[Path, set[str]]) -> tuple[str, ...]:
    """Return the modules for an engine's `preload`. imports: `imports_by_file`."""
    names = {"ianvs.running.session.case", "ianvs.running.session.exams"}
    written = {path for path in imports if (own_name(path) or _METHODS).is_relative_to(_METHODS)}
    # Imports of other parts of ianvs depend on their use.
    imported = {name for path in written for name in imports[path]}
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
    if any("torch" in names_in_file for names_in_file in imports.values()):
        # Counting a network's operations imports torch's compiler, two seconds: once, not in each case.
        names |= {"torch", "ianvs.authoring", "torch._dynamo", "torch.utils.flop_counter"}
    metrics = [metric_header(metric) for exam in job.testenvs for metric in exam.metrics]
    if any(metric.about is not None for metric in metrics):
        imported.add("sentence_transformers")
    heavy = {name for name in _HEAVY if name in imported and importlib.util.find_spec(name)}
    return (*sorted(names | heavy), "ianvs.running.session.case:warm_up")
