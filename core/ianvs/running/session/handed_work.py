"""What the specs of a job say to a case under `contract: ianvs`, in Ianvs's own terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ianvs.base.errors import IanvsError
from ianvs.config.models.kubeedge import KUBEEDGE_FORMULAS
from ianvs.config.spec import AlgorithmSpec, MetricSpec, ModelEval, TestEnvSpec
from ianvs.kubeedge.work import Metric, Module, Work
from ianvs.running.planning.cases import own_hyperparameters

__all__ = ["metrics_of", "work_of"]


def work_of(
    algorithm: AlgorithmSpec,
    exam: TestEnvSpec,
    hyperparameters: Mapping[str, object],
    seed: int,
    folder: Path,
    working_directory: Path | None,
) -> Work:
    """A case of `algorithm` with this choice of hyperparameters, which writes below `folder`."""
    settings, kinds = algorithm.settings, [module.type for module in algorithm.modules]
    if settings is None or exam.settings is None:
        raise IanvsError(f"{algorithm.name} is not under `contract: ianvs`")
    data_setting = settings.data_setting(algorithm.paradigm.name)
    return Work(
        paradigm=algorithm.paradigm.name,
        folder=str(folder),
        modules=tuple(
            Module(module.type, module.name, module.url, own_hyperparameters(hyperparameters, module.type, kinds))
            for module in algorithm.modules
        ),
        train=_first(exam, "train"),
        test=_first(exam, "test"),
        label=exam.dataset.label,
        initial_model_url=settings.initial_model_url,
        data_setting={} if data_setting is None else _plain(data_setting),
        testenv={**_plain(exam.settings), "model_eval": _model_eval(exam.settings.model_eval)},
        mode=settings.mode or None,
        quantization_type=settings.quantization_type or None,
        llama_quantize_path=settings.llama_quantize_path or None,
        cwd=None if working_directory is None else str(working_directory),
        sys_path=() if working_directory is None else (str(working_directory),),
        packages=tuple((package.name, str(package.url or "")) for package in settings.third_party_packages),
        seed=seed,
    )


def metrics_of(specs: Iterable[MetricSpec]) -> list[Metric]:
    """Those that are asked for by name; values by Ianvs's own formulas come with them."""
    named = (spec for spec in specs if spec.name not in KUBEEDGE_FORMULAS)
    return [Metric(spec.name, str(spec.url) if spec.url else None) for spec in named]


def _first(exam: TestEnvSpec, part: str) -> str | None:
    sources = getattr(exam.dataset, part)
    return str(sources[0].path) if sources else None


def _plain(settings: Any) -> dict[str, Any]:
    """A mapping of the settings, as Ianvs's files have it."""
    names = (each.name for each in dataclasses.fields(settings) if each.name not in ("place", "places"))
    return {name: getattr(settings, name) for name in names}


def _model_eval(told: ModelEval) -> dict[str, Any]:
    metric = told.model_metric
    url = "" if metric.url is None else str(metric.url)
    named = {"name": metric.name, "url": url, "mode": metric.mode}
    return {"model_metric": named, "threshold": told.threshold, "operator": told.operator}
