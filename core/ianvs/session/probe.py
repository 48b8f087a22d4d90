"""What a linear classifier can still read from a learner's features: forgetting in the representation itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ianvs.errors import PluginError
from ianvs.kinds import KINDS
from ianvs.scenarios.exam import Exam
from ianvs.scenarios.parts import Part
from ianvs.scenarios.views import TestView

if TYPE_CHECKING:
    from ianvs.session.session import CaseSession

__all__ = ["probed_labels"]

MOST = 20_000  # samples that a probe is fitted on, the first of them where there are more
ITERATIONS = 1000


def probed_labels(session: CaseSession, exam: Exam, j: int, context: Mapping[str, object]) -> NDArray[Any]:
    """(N,) labels of test set j as a probe predicts them; the learner's weights stay as they are.

    The probe is multinomial logistic regression (L2, C = 1) on standardised features, fitted for each test set on the
    training samples of its round, also of rounds to come (Davari et al. 2022, arXiv 2203.13381, section 3). context:
    what the learner is told with test set j. Raises PluginError where test sets don't belong to rounds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(exam.tests) != len(exam.rounds) or not KINDS[exam.dataset.kind].probes:
        raise PluginError("`linear_probe: true` needs one test set of classes for each round.")
    part, test = session.feeder.probed(j + 1), exam.tests[j]
    part = replace(part, positions=part.positions[:MOST])
    labels = np.asarray(part.samples.y[part.positions])
    fitted_on = _features(session, part, f"round {j + 1}", context)
    asked = _features(session, Part(exam.dataset.test, test.test, test.transform), test.name, context)
    kept = np.min_scalar_type(max(len(exam.dataset.classes) - 1, 1))
    if len(np.unique(labels)) == 1:  # nothing to tell apart
        return np.full(len(asked), labels[0], dtype=kept)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
    probe.fit(fitted_on, labels)
    predicted: NDArray[Any] = probe.predict(asked).astype(kept)
    return predicted


def _features(session: CaseSession, part: Part, name: str, context: Mapping[str, object]) -> NDArray[np.float32]:
    """(N, D) what the base model's features() says of all samples of `part`, checked."""
    learner = session.module("basemodel")
    if not callable(getattr(learner.plugin, "features", None)):
        raise PluginError(
            f"`linear_probe: true` asks for the features behind {learner.name}'s answers, and it has no method "
            "features(data, **context) that returns an (N, D) array."
        )
    data = TestView(part, name=f"the features of {name}")
    try:
        found = session.call(learner, "features", data, **context)
    finally:
        data.close()
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    array = np.asarray(found, dtype=np.float32)
    count = len(part.positions)
    if array.ndim != 2 or len(array) != count:
        raise PluginError(f"{learner.name}.features() returned shape {array.shape}: return (N, D), N = {count}.")
    if not np.isfinite(array).all():
        raise PluginError(f"{learner.name}.features() returned numbers that are infinite or nan.")
    return array
