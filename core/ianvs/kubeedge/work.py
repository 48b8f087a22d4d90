"""What a case of the contract `ianvs` is told, all of it: nothing else has to be known to run or to score it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.config.contracts import ContractCase
from ianvs.config.spec import AlgorithmSpec, MetricSpec, TestEnvSpec
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_FORMULAS
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, ExamSettings, ModelEval

Operator = Callable[[Any, Any], bool]

_OPERATORS: dict[str, Operator] = {
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Module:
    """A module of an algorithm with one choice of hyperparameters. url: its file or folder, None for a built-in."""

    type: str
    name: str
    url: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """A metric: the name it is registered under, and its file. Without a url it has to be one of KUBEEDGE_METRICS."""

    name: str
    url: str | None = None


@dataclass(frozen=True)
class Work:
    """One case. Paths are absolute, but for those of plugins' own making (initial_model_url may be a hub name).

    testenv and data_setting hold Ianvs's keys; a key that is missing has Ianvs's default.
    """

    paradigm: str  # as Ianvs names it, such as "lifelonglearning"
    folder: str  # W: everything that the case writes lies below it
    modules: tuple[Module, ...] = ()  # in the order of the algorithm file
    train: str | None = None  # index, jsonl, json, csv or metadata.json
    test: str | None = None
    label: str | None = None  # column of the label in a csv file
    initial_model_url: str = ""
    data_setting: Mapping[str, float | str] = field(default_factory=dict)  # train_ratio, splitting_method, ...
    testenv: Mapping[str, Any] = field(default_factory=dict)  # incremental_rounds, round, model_eval, ...
    mode: str | None = None  # "with_compression"
    quantization_type: str | None = None
    llama_quantize_path: str | None = None
    cwd: str | None = None  # None: `folder`
    sys_path: tuple[str, ...] = ()  # first on sys.path, as PYTHONPATH would be
    packages: tuple[tuple[str, str], ...] = ()  # third_party_packages: name and url of files to import first
    seed: int = 0

    @property
    def root(self) -> Path:
        """W as a path."""
        return Path(self.folder)

    def module(self, type_: str) -> Module | None:
        """The module of a type; of several the last, as in Ianvs."""
        return next((module for module in reversed(self.modules) if module.type == type_), None)

    def number(self, key: str, default: int) -> int:
        """A whole number of the testenv. Raises PluginError if it is none, or less than 1."""
        value = self.testenv.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise PluginError(f"testenv: {key} has to be a whole number of at least 1, not {value!r}.")
        return value

    @property
    def rounds(self) -> int:
        """`incremental_rounds`."""
        return self.number("incremental_rounds", 2)

    def setting(self, key: str) -> float | str:
        """A key of the data setting, or its default."""
        federated = self.paradigm.startswith("federated")
        defaults: Mapping[str, float | str] = {
            "train_ratio": 1.0 if federated else 0.8,
            "splitting_method": "default",
            "data_partition": "iid",
            "non_iid_ratio": 0.6,
            "label_data_ratio": 1.0,
        }
        return self.data_setting.get(key, defaults[key])

    @property
    def _model_eval(self) -> Mapping[str, Any]:
        return self.testenv.get("model_eval") or {}

    @property
    def model_metric(self) -> Metric | None:
        """The metric of model_eval; None if none is named."""
        told = self._model_eval.get("model_metric") or {}
        return Metric(str(told["name"]), told.get("url") or None) if told.get("name") else None

    @property
    def eval_mode(self) -> str | None:
        """`mode` of the model_metric: "" where no model_metric is given, None where it is given without one."""
        told = self._model_eval.get("model_metric")
        return "" if told is None else told.get("mode")

    @property
    def threshold(self) -> object:
        """Of model_eval, the number as it was written."""
        return self._model_eval.get("threshold", 0.9)

    @property
    def operator_name(self) -> str:
        """Of model_eval."""
        return str(self._model_eval.get("operator", ">"))

    @property
    def passes(self) -> Operator:
        """The comparison of model_eval. Raises PluginError for a word that is none."""
        if self.operator_name not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise PluginError(f"testenv: the operator of model_eval is '{self.operator_name}'; it can be {known}.")
        return _OPERATORS[self.operator_name]


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
