"""The interface of a data type."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.former_names import former_names
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.metrics.label_pictures import LabelPictures
from ianvs.exam.metrics.metric import EvaluationRecord

LONGEST_ANSWER = 100_000
"""Maximum length of a stored answer, in characters."""


@former_names(told="training_labels", kept="stored_predictions")
class DataType:
    """A type of labels: how they are read, shown to learners, checked, stored, and passed to metrics.

    Labels are the column `y` of Samples: numbers, (N, ...), or (N,) objects that JSON can represent, such as mappings
    of lists. The base class is for labels that are one number or one object each.

    Attributes:
        name: The name for `data_type` in a dataset.
        batch_limit: Samples of one predict() call, which limits its memory; None: a whole test set.
        probes: Whether a linear probe can be fitted to the labels.
        stores_truth: Whether all true labels are stored with the exam. Otherwise a metric that reads them needs the
            data.
        several_labels: Whether a sample may have several classes. A table has them in one cell, or a column per class.
        own_extras: Names of what it stores besides the predictions.
        shows: What reports draw: "label pictures", "replies", "boxes", or "": nothing.
        colours: Classes that always have the same colour (red, green, blue).
    """

    name: ClassVar[str]
    batch_limit: ClassVar[int | None] = None
    probes: ClassVar[bool] = False
    stores_truth: ClassVar[bool] = True
    several_labels: ClassVar[bool] = False
    own_extras: ClassVar[tuple[str, ...]] = ("probe",)
    shows: ClassVar[str] = ""
    colours: ClassVar[Mapping[str, tuple[int, int, int]]] = {}

    # --- labels -------------------------------------------------------------------------------------------------

    def read(self, given: Any, classes: tuple[str, ...] | None) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Convert what an author's function returned as y.

        Args:
            given: The returned value.
            classes: Names of the classes, if given; None: they are derived from the labels.

        Returns:
            (labels for the column `y`, names of the classes).

        Raises:
            ValueError: A label is wrong. The message names the sample and the remedy.
        """
        raise ValueError(f"{self.name} data are known by the form of their labels. Take `data_type` out.")

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_] | None:
        """Return (N, C), which classes each label has, if it may have several; None: it has one, or none."""
        return None

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...], background: int | None = None) -> NDArray[Any]:
        """Restrict labels to some classes. It is only called where `membership` returns an array.

        Args:
            labels: As `training_labels` returns them.
            classes: The classes that are taught.
            background: For masks, the class of all other pixels.
        """
        return labels

    def training_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return labels as learners see them: numbers, what JSON can represent, or mappings of arrays.

        Arrays are transferred many times as fast. All mappings have the same names, and the arrays of one name differ
        only in length.
        """
        return labels

    def resized(self, labels: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[Any]:
        """Return the labels of images after `image_size`. factors: (N, 2) by which height and width have grown."""
        return labels

    def warnings(self, labels: NDArray[Any], sizes: NDArray[np.int64]) -> Iterable[tuple[int, str]]:
        """Find labels that look wrong; a run continues.

        Args:
            labels: (N,) or (N, ...), as the column `y` holds them.
            sizes: (N, 2) height and width of the images, in pixels.

        Returns:
            (position of the sample, a sentence with the remedy) of each warning.
        """
        return ()

    def perfect(self, labels: NDArray[Any]) -> Any:
        """Return predictions that are all correct."""
        return labels.tolist() if labels.dtype == object else labels

    # --- predictions --------------------------------------------------------------------------------------------

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        """Return a function that checks predictions for `part` and converts them to the form that `packed` takes.

        The function is made before a learner gets the samples, since it may change them. Its result is numbers, or a
        list of mappings of arrays or of what JSON can represent. The default accepts anything, one for each sample.

        Args:
            part: The samples.
            classes: Number of classes of the exam.
            unseen: Whether -1, "unseen", is a valid prediction. It never is where samples have no class each.

        Returns:
            A function of the predictions and the name of the method that made them. It raises PluginError.
        """
        count = len(part.positions)
        return lambda answers, where: one_for_each(answers, count, where)

    def shortened(self, answers: Any) -> tuple[Any, int]:
        """Return (checked predictions with strings cut to LONGEST_ANSWER, how many were cut)."""
        return answers, 0

    def packed(self, answers: Any) -> Any:
        """Return the checked predictions for a part of a test set in the form that `stored_predictions` takes."""
        return answers

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        """Return what is stored of the predictions for a test set; by default all of them, as one part.

        Args:
            answers: (samples, packed predictions) of each part.
            classes: Number of classes of the exam.
        """
        [(_, labels)] = answers
        return Predictions(labels)

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return the true labels as they are stored with the exam."""
        return samples.y[positions]

    def shown(self, part: Part) -> NDArray[Any] | None:
        """Return what to store of the inputs for reports, such as a few images; None: nothing."""
        return None

    def columns(self, shown: NDArray[Any] | None) -> Mapping[str, Any]:
        """Return columns that metrics may name, made of what `shown` returned."""
        return {}

    def drawn(self, picture: NDArray[np.uint8], label: Any, palette: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return (H, W, 3), an image with its boxes drawn.

        Args:
            picture: (H, W, 3) the image.
            label: A label or a prediction.
            palette: (C, 3) the colours of the classes.
        """
        return picture

    def every_truth(self, samples: Samples, positions: NDArray[np.int64]) -> LabelPictures | None:
        """Return all true labels where `truth` returns only some of them and a metric reads all; else None."""
        return None

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        """Return `about` with what metrics read of the predictions and the true labels.

        Args:
            about: The record so far.
            truth: The stored true labels, or all of them.
            predictions: What `stored_predictions` returned.
        """
        return replace(about, y_true=truth, y_pred=predictions.labels, probe=predictions.extras.get("probe"))

    # --- single predictions, in prequential exams ------------------------------------------------------------------

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """Return (N,) the score of each checked prediction, 0 to 1.

        Raises:
            PluginError: This type has no score for single predictions.
        """
        raise PluginError(
            f"single predictions for {self.name} data have no score. Name a metric for them: `prequential: "
            "{score: ...}` in the testenv.",
            code="missing-key",
        )

    def answer_names(self, answers: Any) -> list[Any] | None:
        """Return (N,) names of labels or checked predictions: equal for equal ones. None: they have no names."""
        return None

    def in_words(self, label: Any, classes: tuple[str, ...]) -> str:
        """Return a label as text for readers."""
        return str(label)

    def misfit(self, metric: str, error: Exception) -> str:
        """Return the message for a metric that fails on perfect predictions."""
        reason = str(error).removesuffix(".")
        return f"{reason}. This was found with perfect answers to {self.name} data, before anything ran."


def one_for_each(
    answers: object, expected: int, where: str, remedy: str = "return one prediction for each"
) -> NDArray[Any]:
    """Convert predictions to an array with one entry for each sample.

    Args:
        answers: What a plugin returned.
        expected: Number of samples.
        where: The method that returned it, for messages.
        remedy: What to return, for messages.

    Raises:
        PluginError: There are more or fewer.
    """
    if answers is None:
        raise PluginError(f"{where} returned nothing for {expected} samples: {remedy}.", code="invalid-result")
    array = as_array(answers, expected, where, remedy)
    if array.ndim == 0 or len(array) != expected:
        shape = _batches(answers, expected) or (f"shape {array.shape}" if array.ndim else type(answers).__name__)
        raise PluginError(f"{where} returned {shape} for {expected} samples: {remedy}.", code="invalid-result")
    return array


def as_array(answers: object, expected: int, where: str, remedy: str) -> NDArray[Any]:
    """Convert predictions to an array.

    Args:
        answers: An array, a tensor on any device, or a list of numbers, arrays or tensors.
        expected: Number of samples.
        where: The method that returned them, for messages.
        remedy: What to return, for messages.

    Returns:
        The array, of any shape.

    Raises:
        PluginError: The parts have different shapes, as a list of batches has.
    """
    try:
        if isinstance(answers, list | tuple) and any(hasattr(answer, "detach") for answer in answers):
            return np.asarray([_without_device(answer) for answer in answers])
        return np.asarray(_without_device(answers))
    except (ValueError, TypeError, RuntimeError) as error:
        description = _batches(answers, expected) or f"{type(answers).__name__} that is no array ({error})"
        raise PluginError(
            f"{where} returned {description} for {expected} samples: {remedy}.", code="invalid-result"
        ) from None


def _without_device(answer: Any) -> Any:
    if not hasattr(answer, "detach"):
        return answer
    tensor = answer.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def _batches(answers: object, expected: int) -> str:
    """Describe a list of arrays, with the remedy if these are batches; "" for anything else."""
    if not isinstance(answers, list | tuple) or not answers:
        return ""
    shapes = [tuple(getattr(part, "shape", ())) for part in answers]
    if not all(shapes):
        return ""
    several = ", ".join(map(str, shapes[:4])) + (", ..." if len(shapes) > 4 else "")
    described = f"a {type(answers).__name__} of {len(answers)} arrays with the shapes {several}"
    if sum(shape[0] for shape in shapes) != expected:
        return described
    join = "torch.cat" if any(hasattr(part, "detach") for part in answers) else "np.concatenate"
    return f"{described}, which are batches ({join}(predictions) joins them)"
