"""A case of the contract `ianvs` in Ianvs's terms, sufficient to run and to score it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.errors import DataError
from ianvs.config.contracts import ContractCase
from ianvs.config.models.testenv import COMPARISONS
from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_FORMULAS
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, ExamSettings, ModelMetric


@dataclass(frozen=True)
class Module:
    """A module of an algorithm with one choice of hyperparameters. url: its file or folder, None for a built-in."""

    type: str
    name: str
    url: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """A case. Paths are absolute, except for values that plugins interpret (initial_model_url may be a hub name)."""

    paradigm: str  # Ianvs's name, such as "lifelonglearning"
    folder: Path  # W: everything that the case writes is below it
    modules: tuple[Module, ...] = ()  # in the order of the algorithm file
    train: str | None = None  # index, jsonl, json, csv or metadata.json
    test: str | None = None
    label: str | None = None  # column of the label in a csv file
    using: tuple[str, ...] = ()  # the domains of the samples
    algorithm: AlgorithmSettings = field(default_factory=AlgorithmSettings)
    exam: ExamSettings = field(default_factory=ExamSettings)
    cwd: str | None = None  # None: `folder`; otherwise it is on sys.path, too, like PYTHONPATH
    seed: int = 0
    shared: Path | None = (
        None  # folder for files that all cases of the algorithm share, such as a cache; None: W's parent
    )

    def module(self, type_: str) -> Module | None:
        """Return the module of a type; the last of several, as in Ianvs."""
        return next((module for module in reversed(self.modules) if module.type == type_), None)

    @property
    def model_metric(self) -> ModelMetric:
        """The metric of model_eval; its name is "" if none is given."""
        return self.exam.model_eval.model_metric

    def passes(self, value: object) -> bool:
        return bool(COMPARISONS[self.exam.model_eval.operator](value, self.exam.model_eval.threshold))


def trains(work: Work) -> bool:
    """Return whether the paradigm, in its mode, trains."""
    if work.paradigm == "lifelonglearning":
        return work.model_metric.mode != "multi-inference"
    return work.paradigm not in ("jointinference", "multiedgeinference")


def work_of(case: ContractCase) -> Work:
    """Return the case in Ianvs's terms, which writes below its folder."""
    algorithm, data = case.algorithm, case.testenv.dataset
    if isinstance(data.label, tuple):
        raise DataError(
            "`label` lists columns; under `contract: ianvs` it names one. Name that column.", code="wrong-type"
        )
    return Work(
        paradigm=algorithm.paradigm.name,
        folder=case.folder,
        modules=tuple(
            Module(module.type, module.name, module.url, case.hyperparameters.get(module.type, {}))
            for module in algorithm.modules
        ),
        train=str(data.train[0].path) if data.train else None,
        test=str(data.test[0].path) if data.test else None,
        label=data.label,
        using=tuple(data.using),
        algorithm=algorithm.contract_settings,
        exam=case.testenv.contract_settings,
        cwd=None if case.working_directory is None else str(case.working_directory),
        seed=case.seed,
        shared=case.shared,
    )


def metrics_of(specs: Iterable[MetricSpec]) -> list[MetricSpec]:
    """Return the requested metrics; values by Ianvs's own formulas are included."""
    return [spec for spec in specs if spec.name not in KUBEEDGE_FORMULAS]
