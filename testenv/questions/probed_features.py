"""Features for a linear probe: they measure the representation independently of the last layer."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.exam.questions import EvaluationTask, TaskContext, on_host

ITERATIONS = 1000


class LinearProbe(EvaluationTask):
    name: ClassVar[str] = "linear_probe"
    method: ClassVar[str] = "features"
    extras: ClassVar[tuple[str, ...]] = ("probe",)
    wanted: ClassVar[str] = "(N, D), the features behind its answers"
    fits: ClassVar[bool] = True
    of_classes: ClassVar[bool] = True

    def checked(self, answers: object, samples: int, classes: int, caller: str) -> NDArray[np.float32]:
        array = np.asarray(on_host(answers), dtype=np.float32)
        if array.ndim != 2 or len(array) != samples:
            raise PluginError(
                f"{caller} returned shape {array.shape}: return (N, D), N = {samples}.", code="invalid-result"
            )
        if not np.isfinite(array).all():
            raise PluginError(f"{caller} returned numbers that are infinite or nan.", code="invalid-result")
        return array

    def stored_answers(self, features: NDArray[Any], about: TaskContext) -> dict[str, NDArray[Any]]:
        assert about.fitted is not None and about.labels is not None, "it fits"
        return {"probe": probed_labels(about.fitted, about.labels, features, about.count)}


def probed_labels(
    fitted_on: NDArray[np.float32], labels: NDArray[np.int64], features: NDArray[np.float32], classes: int
) -> NDArray[Any]:
    """Return the labels of a test set (N,) as predicted by a probe; the learner's weights are not changed.

    The probe is multinomial logistic regression (L2, C = 1) on standardised features, fitted for each test set on the
    training samples of its round, also for future rounds (Davari et al. 2022, arXiv 2203.13381, section 3). fitted_on:
    (M, D) features of samples with `labels` (M,). features: (N, D). classes: number of classes of the exam.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    dtype = np.min_scalar_type(max(classes - 1, 1))
    if len(np.unique(labels)) == 1:  # there is only one class
        return np.full(len(features), labels[0], dtype=dtype)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
    probe.fit(fitted_on, labels)
    predicted: NDArray[Any] = probe.predict(features).astype(dtype)
    return predicted
