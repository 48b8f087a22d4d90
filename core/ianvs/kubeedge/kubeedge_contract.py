"""The contract `ianvs`. It is asked whether a job is its own; all else is imported when needed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ianvs.base.errors import ConfigError, ValidationError, closest, shown_path
from ianvs.config.contracts import Contract, ContractCase, ContractResult, MetricFacts, Table
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ParadigmSpec, RankSpec, TestEnvSpec
from ianvs.kubeedge.yaml.recognize_job import IANVS, reading_of

if TYPE_CHECKING:
    from ianvs.base.types import CaseResult  # with numpy

_PATH_FIELDS = ("initial_model_url", "llama_quantize_path")
_COLUMN_ORDER = ("rank", "algorithm", "metric", "paradigm", "module", "hyperparameter", "time", "url")
"""The types of columns in KubeEdge Ianvs's tables, in their order."""


class KubeEdge(Contract):
    """Overrides the hooks that differ from the native contract; the imported modules implement them."""

    name = IANVS

    def module_types(self, paradigm: ParadigmSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
        from ianvs.kubeedge.yaml.file_models import PARADIGM_MODULES

        return MODULE_TYPES, PARADIGM_MODULES.get(paradigm.name, ())

    def metric(self, spec: MetricSpec) -> MetricFacts:
        from ianvs.kubeedge.yaml.file_models import KUBEEDGE_FORMULAS, KUBEEDGE_METRICS

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

    reading = staticmethod(reading_of)

    def setting_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        from ianvs.kubeedge.kubeedge_checks import setting_problems

        return setting_problems(job)

    def code_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        from ianvs.kubeedge.kubeedge_checks import code_problems

        return code_problems(job)

    def import_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        from ianvs.kubeedge.kubeedge_checks import import_problems

        return import_problems(job)

    def exam_identity(self, exam: TestEnvSpec) -> Mapping[str, object]:
        facts: dict[str, object] = dict(vars(exam.contract_settings))
        # Empty ones are left out, so that older identities stay the same.
        empty_link_fields = [name for name in ("link", "edge_ms", "cloud_ms") if not facts[name]]
        return {"settings": _identity_data(exam.contract_settings, *empty_link_fields, "min_compute_capability")}

    def algorithm_identity(self, algorithm: AlgorithmSpec) -> Mapping[str, object]:
        files = {name: _existing(getattr(algorithm.contract_settings, name)) for name in _PATH_FIELDS}
        return {"settings": _identity_data(algorithm.contract_settings), **files}

    def run(self, case: ContractCase, report: Callable[[str], None]) -> None:
        from ianvs.kubeedge.run import run
        from ianvs.kubeedge.work import work_of

        run(work_of(case), report)

    def score(self, case: ContractCase) -> ContractResult:
        from ianvs.kubeedge.scores import score
        from ianvs.kubeedge.work import metrics_of, work_of

        return score(work_of(case), metrics_of(case.metrics))

    def table(self, columns: Table) -> Table:
        """Return Ianvs's columns in its order and with its names, followed by those of ianvs."""
        keyed, order = ("module", "metric", "hyperparameter"), {kind: place for place, kind in enumerate(_COLUMN_ORDER)}
        ordered = sorted(columns, key=lambda column: order.get(column[0], len(order)))
        return [(kind, key, key if kind in keyed else kind if kind in order else title) for kind, key, title in ordered]

    def tables(self, results: "Iterable[CaseResult]", rank: RankSpec) -> Mapping[str, str]:
        from ianvs.kubeedge.exact_tables import exact_tables

        return exact_tables(results, rank)


def _identity_data(value: object, *left_out: str) -> object:
    """Return settings as plain data, without their locations and without fields that are digested separately."""
    from ianvs.kubeedge.yaml.settings import ModelMetric, ThirdPartyPackage

    if isinstance(value, ModelMetric):
        return {"metric": MetricSpec(value.name, value.url), "mode": value.mode}
    if isinstance(value, ThirdPartyPackage):
        return MetricSpec(value.name, value.url)
    if isinstance(value, tuple):
        return [_identity_data(part) for part in value]
    if not is_dataclass(value):
        return value
    excluded = ("place", "places", *_PATH_FIELDS, *left_out)
    return {
        setting.name: _identity_data(getattr(value, setting.name))
        for setting in fields(value)
        if setting.name not in excluded
    }


def _existing(text: str) -> Path | str | None:
    return Path(text) if text.startswith("/") and Path(text).exists() else text or None
