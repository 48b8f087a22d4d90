"""Ianvs's `model_eval`: the model of a round replaces the one before only if it is better on the held-out part."""

from ianvs.base.errors import PluginError
from ianvs.config.models.testenv import COMPARISONS
from ianvs.config.spec import GateSpec
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import resolve
from ianvs.running.scoring import as_read, score_of


class Gate:
    """The gate of one exam. `before` and `after` are scores of the old and the new model on the held-out part."""

    def __init__(self, spec: GateSpec) -> None:
        self._spec, self._metric = spec, resolve(spec.metric)

    def score(self, seen: EvaluationRecord | None) -> float | None:
        """Of the model that gave the answers in `seen`; None in `seen`: the round has no held-out part."""
        if seen is None:
            message = "model_eval needs a held-out part of each round, and here is none: set train_ratio below 1"
            raise PluginError(f"{message}, and have more than one sample of each class in a round.", code="unfit-exam")
        return score_of(self._spec.metric, self._metric, as_read(self._metric, seen))[0]

    def decide(self, index: int, before: float | None, after: float | None) -> tuple[bool, tuple[float, float]]:
        """(whether the new model of round `index` stays, both scores)."""
        if before is None or after is None:
            raise PluginError(
                f"model_eval: metric '{self._spec.metric.name}' gave no number on round {index}.", code="invalid-result"
            )
        value = after - before if self._spec.mode == "relative" else after
        return bool(COMPARISONS[self._spec.operator](value, self._spec.threshold)), (before, after)
