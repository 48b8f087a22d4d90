"""Ianvs's `model_eval`: the model of a round replaces the one before only if it is better on the held-out part."""

from ianvs.base.errors import PluginError
from ianvs.config.models.testenv import COMPARISONS
from ianvs.config.spec import GateSpec
from ianvs.exam.metrics.registry import resolve
from ianvs.running.loop import Model
from ianvs.running.scoring import record_for_metric, score_of
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import DataFeed


class HeldOutGate:
    """The gate of one exam, by predictions for the held-out part of a round. Implements ianvs.running.loop.Gate.

    `before` and `after` are scores of the old and the new model.
    """

    def __init__(self, spec: GateSpec, examination: Examination, feed: DataFeed) -> None:
        self._spec, self._metric = spec, resolve(spec.metric)
        self._examination, self._feed = examination, feed

    def score(self, model: Model, step: int) -> float | None:
        if self._feed.valid(step) is None:
            message = "model_eval needs a held-out part of each round, and here is none: set train_ratio below 1"
            raise PluginError(f"{message}, and have more than one sample of each class in a round.", code="unfit-exam")
        answered = self._examination.held_out(model, step)
        return score_of(self._spec.metric, self._metric, record_for_metric(self._metric, answered))[0]

    def decide(self, step: int, before: float | None, after: float | None) -> tuple[bool, tuple[float, float]]:
        """Return (whether the new model of round `step` is adopted, both scores)."""
        if before is None or after is None:
            raise PluginError(
                f"model_eval: metric '{self._spec.metric.name}' gave no number on round {step}.", code="invalid-result"
            )
        value = after - before if self._spec.mode == "relative" else after
        return bool(COMPARISONS[self._spec.operator](value, self._spec.threshold)), (before, after)
