"""What a learner is asked beside labels, and what is made of it: features, scores of all classes, replies shown.

Features are for a linear probe. Scores are given to samples in an order that tells nothing, by a learner that is not
told the task; the keeper looks among the classes of the test set that each sample is of. The true replies are shown to
who answers after everything else was asked, and what it makes of them token by token (teacher forcing) is taken on
trust but for its form. A learner that learns while it is tested would be shown them itself, and is not asked.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError

PROBED = 20_000  # samples that a probe is fitted on, the first of them where there are more
ITERATIONS = 1000


def checked_answers(method: str, found: object, samples: int, classes: int, who: str) -> NDArray[Any]:
    """What a learner gave when it was asked by `method`. Raises PluginError."""
    if method == "scores":
        return checked_scores(found, samples, classes, who)
    return (checked_forced if method == METHOD else checked_features)(found, samples, who)


def checked_features(found: object, samples: int, who: str) -> NDArray[np.float32]:
    """(samples, D) what a learner gave. Raises PluginError."""
    array = np.asarray(_on_host(found), dtype=np.float32)
    if array.ndim != 2 or len(array) != samples:
        raise PluginError(f"{who} returned shape {array.shape}: return (N, D), N = {samples}.")
    if not np.isfinite(array).all():
        raise PluginError(f"{who} returned numbers that are infinite or nan.")
    return array


def _on_host(found: Any) -> Any:
    return found.detach().cpu().numpy() if hasattr(found, "detach") else found


def probed_labels(
    fitted_on: NDArray[np.float32], labels: NDArray[np.int64], asked: NDArray[np.float32], classes: int
) -> NDArray[Any]:
    """(N,) labels of a test set as a probe predicts them; the learner's weights stay as they are.

    The probe is multinomial logistic regression (L2, C = 1) on standardised features, fitted for each test set on the
    training samples of its round, also of rounds to come (Davari et al. 2022, arXiv 2203.13381, section 3).
    fitted_on: (M, D) features of samples with `labels` (M,). asked: (N, D). classes: how many the exam has.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kept = np.min_scalar_type(max(classes - 1, 1))
    if len(np.unique(labels)) == 1:  # nothing to tell apart
        return np.full(len(asked), labels[0], dtype=kept)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
    probe.fit(fitted_on, labels)
    predicted: NDArray[Any] = probe.predict(asked).astype(kept)
    return predicted


TASK_LABELS = "task_labels"
"""The extra that they are stored under."""


def why_unscored(plugin: object) -> str:
    """Why a base model has no scores that its answers are made from; "" where it has.

    Scores that it inherits beside a predict() of its own are another model's.
    """
    kind = type(plugin)
    if not callable(getattr(plugin, "scores", None)):
        return f"{kind.__name__} has no scores(data, **context)"
    places = {name: next((i for i, one in enumerate(kind.__mro__) if name in vars(one)), -1) for name in _METHODS}
    if places["predict"] < places["scores"]:
        return f"{kind.__name__} has a predict() of its own, and the scores() of another class"
    return ""


_METHODS = ("predict", "scores")


def checked_scores(found: object, samples: int, classes: int, who: str) -> NDArray[np.float32]:
    """(samples, classes) what a learner gave. Raises PluginError."""
    array = np.asarray(_on_host(found))
    if array.shape != (samples, classes) or array.dtype.kind not in "iuf":
        form = f"{array.dtype} {array.shape}"
        raise PluginError(f"{who} returned {form}: return ({samples}, {classes}) numbers, one for each class.")
    scores = array.astype(np.float32)
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise PluginError(f"{who} returned nan or infinity: the higher a score the likelier, -inf for never.")
    return scores


def labels_within(scores: NDArray[np.float32], classes: Sequence[int]) -> NDArray[np.int64]:
    """(N,) the likeliest of `classes`, of equal ones the first by index; -1 where all of them are ruled out."""
    among = np.sort(np.asarray(classes, dtype=np.int64))
    chosen = scores[:, among]
    return np.where(np.isneginf(chosen).all(axis=1), -1, among[chosen.argmax(axis=1)])


METHOD = "teacher_forced"
"""Of a base model: teacher_forced(data, **context), (N, 3); `data.y` has the true replies."""
FORCED = ("right_tokens", "tokens", "log_likelihood")
"""The extras that its columns are stored under."""


def checked_forced(found: object, samples: int, who: str) -> NDArray[np.float64]:
    """(samples, 3) what a learner gave. Raises PluginError."""
    wanted = f"return ({samples}, 3) numbers: for each conversation right tokens, tokens, log-likelihood"
    found = _on_host(found)
    try:
        array = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PluginError(f"{who} returned {type(found).__name__} ({error}): {wanted}.") from None
    if array.shape != (samples, len(FORCED)):
        raise PluginError(f"{who} returned shape {array.shape}: {wanted}.")
    right, tokens, likelihood = array.T
    counts = array[:, :2]
    wrong = ~np.isfinite(counts).all(axis=1) | (counts != np.floor(counts)).any(axis=1) | (right < 0) | (right > tokens)
    wrong |= np.isnan(likelihood) | (likelihood > 0)
    if wrong.any():
        row = [float(value) for value in array[int(np.flatnonzero(wrong)[0])]]
        form = (
            "whole numbers of which the first is not larger, and the natural log of a probability, which is at most 0"
        )
        raise PluginError(f"{who} returned {row} for a conversation: {wanted}; {form}.")
    return array


def forced_extras(array: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The columns by name, counts as whole numbers."""
    right, tokens, likelihood = array.T
    return dict(zip(FORCED, (right.astype(np.int64), tokens.astype(np.int64), likelihood.copy()), strict=True))
