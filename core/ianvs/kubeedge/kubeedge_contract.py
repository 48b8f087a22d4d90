"""The contract `ianvs`. What runs authors' code, or needs more than files, is imported where it is asked for."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ianvs.base.errors import ConfigError, ValidationError, closest, shown_path
from ianvs.config.contracts import Contract, ContractCase, ContractResult, MetricFacts, Table
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.paths import Lookup
from ianvs.config.reading import Reading
from ianvs.config.spec import AlgorithmSpec, MetricSpec, ParadigmSpec, RankSpec, TestEnvSpec
from ianvs.config.strict_yaml import Document
from ianvs.kubeedge import kubeedge_checks
from ianvs.kubeedge.work import metrics_of, work_of
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_FORMULAS, KUBEEDGE_METRICS, PARADIGM_MODULES
from ianvs.kubeedge.yaml.kubeedge_reading import IANVS, reading_of
from ianvs.kubeedge.yaml.settings import ModelMetric, ThirdPartyPackage

if TYPE_CHECKING:
    from ianvs.base.types import CaseResult  # with numpy

_FILES = ("initial_model_url", "llama_quantize_path")
_KINDS = ("rank", "algorithm", "metric", "paradigm", "module", "hyperparameter", "time", "url")
"""Of columns, those that Ianvs's tables have, in their order."""


class KubeEdge(Contract):
    """Its methods say what differs from ours; what they do stands in the modules that they import."""

    name = IANVS

    def reading(self, job: Document, lookup: Lookup) -> Reading | None:
        return reading_of(job, lookup)

    def module_types(self, paradigm: ParadigmSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return MODULE_TYPES, PARADIGM_MODULES.get(paradigm.name, ())

    def metric(self, spec: MetricSpec) -> MetricFacts:
        if spec.url is not None:
            summary, better = f"What {shown_path(spec.url)} computes.", spec.options.get("higher_is_better")
            return MetricFacts(summary, spec.name == "MATRIX", None if better is None else bool(better))
        definitions = {**KUBEEDGE_METRICS, **KUBEEDGE_FORMULAS}
        if spec.name not in definitions:
            hint = closest(spec.name, KUBEEDGE_METRICS) or f" Without one there are: {', '.join(KUBEEDGE_METRICS)}."
            raise ConfigError(
                [ValidationError(f"metric '{spec.name}' has no url.{hint}", spec.place, code="unknown-metric")]
            )
        higher = None if spec.name in ("MATRIX", "samples_transfer_ratio") else spec.name != "forget_rate"
        return MetricFacts(definitions[spec.name], spec.name == "MATRIX", higher)

    setting_problems = staticmethod(kubeedge_checks.setting_problems)
    code_problems = staticmethod(kubeedge_checks.code_problems)
    import_problems = staticmethod(kubeedge_checks.import_problems)

    def exam_identity(self, exam: TestEnvSpec) -> Mapping[str, object]:
        facts: dict[str, object] = dict(vars(exam.settings))
        unset = [name for name in ("link", "edge_ms", "cloud_ms") if not facts[name]]  # as if there were no such keys
        return {"settings": _facts(exam.settings, *unset, "min_compute_capability")}

    def algorithm_identity(self, algorithm: AlgorithmSpec) -> Mapping[str, object]:
        files = {name: _existing(getattr(algorithm.settings, name)) for name in _FILES}
        return {"settings": _facts(algorithm.settings), **files}

    def run(self, case: ContractCase, report: Callable[[str], None]) -> None:
        from ianvs.kubeedge.run import run

        run(work_of(case), report)

    def score(self, case: ContractCase) -> ContractResult:
        from ianvs.kubeedge.scores import score

        return score(work_of(case), metrics_of(case.metrics))

    def table(self, columns: Table) -> Table:
        """Ianvs's columns in its order and under its names, then ours."""
        keyed, order = ("module", "metric", "hyperparameter"), {kind: place for place, kind in enumerate(_KINDS)}
        ordered = sorted(columns, key=lambda column: order.get(column[0], len(order)))
        return [(kind, key, key if kind in keyed else kind if kind in order else title) for kind, key, title in ordered]

    def tables(self, results: "Iterable[CaseResult]", rank: RankSpec) -> Mapping[str, str]:
        from ianvs.kubeedge.exact_tables import exact_tables

        return exact_tables(results, rank)


def _facts(value: object, *left_out: str) -> object:
    """Settings as plain data, without where things stood, and without the files that count on their own."""
    if isinstance(value, ModelMetric):
        return {"metric": MetricSpec(value.name, value.url), "mode": value.mode}
    if isinstance(value, ThirdPartyPackage):
        return MetricSpec(value.name, value.url)
    if isinstance(value, tuple):
        return [_facts(part) for part in value]
    if not is_dataclass(value):
        return value
    without = ("place", "places", *_FILES, *left_out)
    return {each.name: _facts(getattr(value, each.name)) for each in fields(value) if each.name not in without}


def _existing(text: str) -> Path | str | None:
    return Path(text) if text.startswith("/") and Path(text).exists() else text or None
