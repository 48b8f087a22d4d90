"""Which modules the cases of a job will import, so that the process which they are forked from can do it once.

A guess, by what is written: too much costs that process a second, too little costs every case one.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.package import PACKAGE, own_name
from ianvs.config.spec import JobSpec
from ianvs.exam.metrics.registry import metric_header
from ianvs.plugins.source import imported_by, local_files

_HEAVY = ("torchvision", "transformers", "peft", "sentence_transformers")  # up to a second and a half each to import
_METHODS = Path(PACKAGE.name, "testalgorithms")
_PLAIN_NETWORKS = ("mlp", "linear")
_PICTURES = re.compile("resnet", re.IGNORECASE)  # ours is built of torchvision's blocks, too
_COMPILER = re.compile(r"\boptim\b|adam|(?<!\bre\.)compile|vmap|pre-training", re.IGNORECASE)
"""Where it stands, torch's compiler is imported: by torch's own optimisers (of a probe, too), and by torch.func."""


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
    values = list(_hyperparameters(job))
    networks = [value for name, value in values if name == "network"]
    if any(value not in _PLAIN_NETWORKS for value in networks) or any(map(_PICTURES.search, texts)):
        imported.add("torchvision")
    if any(_may_be_a_model(value) for _, value in values):
        imported.add("transformers")
    if "torch" in _top_level(files):
        names |= {"torch", "ianvs.authoring"}
        scenarios = [exam.scenario.name for exam in job.testenvs if exam.scenario]
        if any(map(_COMPILER.search, [*texts, *scenarios, *(f"{name} {value}" for name, value in values)])):
            names.add("torch._dynamo")
    metrics = [metric_header(metric) for exam in job.testenvs for metric in exam.metrics]
    if any(metric.batch is not None for metric in metrics):
        imported.add("sentence_transformers")
    return tuple(sorted(names | {name for name in _HEAVY if name in imported and importlib.util.find_spec(name)}))


def _files(job: JobSpec) -> set[Path]:
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    return {path for module in modules for path in local_files(module.url, module.name, job=job.file.parent)}


def _top_level(files: set[Path]) -> set[str]:
    return {module.split(".")[0] for path in files for module in imported_by(path)}


def _hyperparameters(job: JobSpec) -> Iterator[tuple[str, object]]:
    """(name, value), for every value of each."""
    for module in (module for algorithm in job.algorithms for module in algorithm.modules):
        yield from module.constants.items()
        yield from ((name, value) for name, values in module.grid for value in values)


def _may_be_a_model(value: object) -> bool:
    """Whether it could be "hf/NAME" or the folder of a model."""
    return isinstance(value, str) and ("/" in value or Path(value).is_dir())
