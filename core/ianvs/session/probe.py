"""What a linear classifier can still read from a learner's features: forgetting in the representation itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.errors import PluginError
from ianvs.scenarios.exam import Exam
from ianvs.scenarios.parts import Part
from ianvs.scenarios.views import TestView
from ianvs.session.feed import DataFeed
from ianvs.session.learner_calls import LearnerCalls

__all__ = ["probe_predictions"]

MOST = 20_000  # samples that a probe is fitted on, the first of them where there are more
ITERATIONS = 1000


def probe_predictions(
    learner: LearnerCalls, exam: Exam, feed: DataFeed, told: Callable[[int], Mapping[str, Any]]
) -> dict[str, NDArray[Any]]:
    """{"probe_<j>": (N,) labels of test set j as a probe predicts them}; the learner's weights stay as they are.

    The probe is multinomial logistic regression (L2, C = 1) on standardised features, fitted for each test set on the
    training samples of its round, also of rounds to come (Davari et al. 2022, arXiv 2203.13381, section 3). told: what
    the learner is told with test set j. Raises PluginError where test sets don't belong to rounds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(exam.tests) != len(exam.rounds) or exam.dataset.kind != "classification":
        raise PluginError("`linear_probe: true` needs one test set of classes for each round.")
    found: dict[str, NDArray[Any]] = {}
    for j, test in enumerate(exam.tests):
        part = feed.probed(j + 1)
        part = Part(part.samples, part.positions[:MOST], part.transform)
        labels = np.asarray(part.samples.y[part.positions])
        fitted_on = _features(learner, part, f"round {j + 1}", told(j))
        asked = _features(learner, Part(exam.dataset.test, test.test, test.transform), test.name, told(j))
        kept = np.min_scalar_type(max(len(exam.dataset.classes) - 1, 1))
        if len(np.unique(labels)) == 1:  # nothing to tell apart
            found[f"probe_{j}"] = np.full(len(asked), labels[0], dtype=kept)
            continue
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
        probe.fit(fitted_on, labels)
        found[f"probe_{j}"] = probe.predict(asked).astype(kept)
    return found


def _features(learner: LearnerCalls, part: Part, name: str, context: Mapping[str, Any]) -> NDArray[np.float32]:
    data = TestView(part, name=f"the features of {name}")
    try:
        return learner.features(data, context)
    finally:
        data.close()
