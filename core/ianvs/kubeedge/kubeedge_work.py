"""What the specs of a job say to a case under `contract: ianvs`, in Ianvs's own terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ianvs.config.contracts import ContractCase
from ianvs.config.spec import AlgorithmSpec, MetricSpec, TestEnvSpec
from ianvs.kubeedge.work import Metric, Module, Work
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_FORMULAS
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, ExamSettings, ModelEval

__all__ = ["metrics_of", "settings_of", "settings_of_exam", "work_of"]


def settings_of(algorithm: AlgorithmSpec) -> AlgorithmSettings:
    """What its file says to Ianvs's paradigms."""
    assert isinstance(algorithm.settings, AlgorithmSettings)
    return algorithm.settings


def settings_of_exam(exam: TestEnvSpec) -> ExamSettings:
    """What its file says to Ianvs's paradigms."""
    assert isinstance(exam.settings, ExamSettings)
    return exam.settings


def work_of(case: ContractCase) -> Work:
    """The case in Ianvs's terms, which writes below its folder."""
    algorithm, exam = case.algorithm, case.testenv
    settings, asked = settings_of(algorithm), settings_of_exam(exam)
    data_setting = settings.data_setting(algorithm.paradigm.name)
    home = None if case.working_directory is None else str(case.working_directory)
    return Work(
        paradigm=algorithm.paradigm.name,
        folder=str(case.folder),
        modules=tuple(
            Module(module.type, module.name, module.url, case.hyperparameters.get(module.type, {}))
            for module in algorithm.modules
        ),
        train=_first(exam, "train"),
        test=_first(exam, "test"),
        label=exam.dataset.label,
        initial_model_url=settings.initial_model_url,
        data_setting={} if data_setting is None else _plain(data_setting),
        testenv={**_plain(asked), "model_eval": _model_eval(asked.model_eval)},
        mode=settings.mode or None,
        quantization_type=settings.quantization_type or None,
        llama_quantize_path=settings.llama_quantize_path or None,
        cwd=home,
        sys_path=() if home is None else (home,),
        packages=tuple((package.name, str(package.url or "")) for package in settings.third_party_packages),
        seed=case.seed,
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
