"""The contract of a data type."""

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
"""Characters of a text that are kept of one answer."""


@former_names(told="training_labels", kept="stored_predictions")
class DataType:
    """What labels of one type are: how they are read, taught, answered, checked, kept, and seen by metrics.

    Labels lie in the column `y` of Samples: numbers, (N, ...), or (N,) objects that JSON can hold, such as mappings of
    lists. The base class is of labels that are one number or one object each.

    name: what `data_type` in a dataset calls it. batch_limit: samples that are asked in one call, which bounds the
    memory that it takes; None: all of a test set. probes: whether a linear probe can be fitted to the labels.
    stores_truth: whether all true labels are stored with the exam; else a metric that reads them needs the data.
    several_labels: whether a sample may be of several classes: a table has them in one cell or a column for each class.
    own_extras: names of what it keeps beside the answers. shows: what reports draw of it, "label pictures", "replies"
    or "boxes"; "" is nothing. colours: red, green, blue, of classes that are always drawn in one.
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
        """(labels as the column `y` holds them, names of the classes) of what an author's function returned as y.

        classes: the names that are given; None: they are found in the labels. Raises ValueError, in words that name
        the sample and the remedy.
        """
        raise ValueError(f"{self.name} data are known by the form of their labels. Take `data_type` out.")

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_] | None:
        """(N, C) which classes each label is about, where it may be several; None: it is of one, or of none."""
        return None

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...], background: int | None = None) -> NDArray[Any]:
        """What is left of `training_labels` when only `classes` are taught; only where `membership` says something.

        background: of masks, the class that all other pixels get.
        """
        return labels

    def training_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels as they travel and a learner sees them: numbers, what JSON can hold, or mappings of arrays.

        Arrays travel many times as fast. All have the same names, and those of a name differ in their length alone.
        """
        return labels

    def resized(self, labels: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[Any]:
        """Labels of picture files after `image_size`. factors: (N, 2) by which height and width have grown."""
        return labels

    def warnings(self, labels: NDArray[Any], sizes: NDArray[np.int64]) -> Iterable[tuple[int, str]]:
        """Find what looks wrong in labels beside their pictures; a run goes on.

        Args:
            labels: (N,) or (N, ...), as the column `y` holds them.
            sizes: (N, 2) height and width of the pictures, in pixels.

        Returns:
            (position of the sample, a sentence with the remedy) of each warning.
        """
        return ()

    def perfect(self, labels: NDArray[Any]) -> Any:
        """The answers of who makes no mistake."""
        return labels.tolist() if labels.dtype == object else labels

    # --- answers ------------------------------------------------------------------------------------------------

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        """What turns answers to `part` into the form that `packed` takes, or raises PluginError.

        What comes out is numbers, or a list of mappings of arrays or of what JSON can hold; it is checked on arrival.
        It is made before a learner gets the samples, which it may change, and called with the answers and with what
        errors call who gave them. classes: how many the exam has. unseen: whether -1 is an answer, "unseen"; to samples
        that have no class each it never is. Where nothing else is said, an answer is anything, one for each sample.
        """
        count = len(part.positions)
        return lambda answers, where: one_for_each(answers, count, where)

    def shortened(self, answers: Any) -> tuple[Any, int]:
        """(checked answers with no text longer than LONGEST_ANSWER, how many were)."""
        return answers, 0

    def packed(self, answers: Any) -> Any:
        """Checked answers to a piece of a test set, in the form that `stored_predictions` takes."""
        return answers

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        """What is stored of the checked and packed answers to a test set, which come a piece at a time.

        Every label as it was answered, where nothing else is said; such a test set comes in one piece.
        """
        [(_, labels)] = answers
        return Predictions(labels)

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        """The true labels as they are stored with the exam."""
        return samples.y[positions]

    def shown(self, part: Part) -> NDArray[Any] | None:
        """What to keep of the inputs for reports, such as a few pictures; None where there is nothing to show."""
        return None

    def columns(self, shown: NDArray[Any] | None) -> Mapping[str, Any]:
        """Columns that metrics may name, made of what `shown` kept."""
        return {}

    def drawn(self, picture: NDArray[np.uint8], label: Any, palette: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(H, W, 3) a picture with a label or an answer, of a type that `shows` boxes. palette: colours of classes."""
        return picture

    def every_truth(self, samples: Samples, positions: NDArray[np.int64]) -> LabelPictures | None:
        """All true labels, where `truth` keeps only some of them and a metric reads all; else None."""
        return None

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        """`about`, with its classes and what metrics see in `predictions` and `truth`, the stored or every one."""
        return replace(about, y_true=truth, y_pred=predictions.labels, probe=predictions.extras.get("probe"))

    # --- single answers, in exams that ask before they tell ------------------------------------------------------

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """(N,) what each checked answer is worth, 0 to 1. Raises PluginError where nothing says that."""
        raise PluginError(
            f"nothing says what a single answer to {self.name} data is worth. Name a metric that does: `prequential: "
            "{score: ...}` in the testenv.",
            code="missing-key",
        )

    def answer_names(self, answers: Any) -> list[Any] | None:
        """(N,) what labels or checked answers are called: the same name, the same answer. None: they have no names."""
        return None

    def in_words(self, label: Any, classes: tuple[str, ...]) -> str:
        """A label as a reader understands it."""
        return str(label)

    def misfit(self, metric: str, error: Exception) -> str:
        """What to say of a metric that fails on perfect answers."""
        reason = str(error).removesuffix(".")
        return f"{reason}. This was found with perfect answers to {self.name} data, before anything ran."


def one_for_each(
    answers: object, expected: int, where: str, remedy: str = "return one prediction for each"
) -> NDArray[Any]:
    """`answers` as an array, an entry for each of `expected` samples. Raises PluginError, which ends in `remedy`."""
    if answers is None:
        raise PluginError(f"{where} returned nothing for {expected} samples: {remedy}.", code="invalid-result")
    array = as_array(answers, expected, where, remedy)
    if array.ndim == 0 or len(array) != expected:
        shape = _batches(answers, expected) or (f"shape {array.shape}" if array.ndim else type(answers).__name__)
        raise PluginError(f"{where} returned {shape} for {expected} samples: {remedy}.", code="invalid-result")
    return array


def as_array(answers: object, expected: int, where: str, remedy: str) -> NDArray[Any]:
    """Make an array of what was answered: an array, a tensor on any device, or a list of numbers, arrays or tensors.

    Args:
        answers: Of the plugin.
        expected: How many samples were asked.
        where: Who answered, for messages.
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
    """A list of arrays in words, with the remedy where these are batches; "" for anything else."""
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
