"""The data type of segmentation: images with a mask each. Predictions are stored as counts, and as compressed masks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.labels import IGNORED
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType, one_for_each
from ianvs.exam.metrics.confusion import picture_confusion
from ianvs.exam.metrics.label_pictures import (
    EVERY,
    FIRST,
    LabelPictures,
    PackedPictures,
    PictureRows,
    compress_mask,
    pack_masks,
)
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.datasets.downloads.cityscapes import LABELS

SHOWN = 3  # samples of each test set whose predicted segmentation masks are kept for reports


class Segmentation(DataType):
    name: ClassVar[str] = "segmentation"
    batch_limit: ClassVar[int | None] = 64
    stores_truth: ClassVar[bool] = False
    own_extras: ClassVar[tuple[str, ...]] = (FIRST, EVERY)
    shows: ClassVar[str] = "label pictures"
    colours: ClassVar[Mapping[str, tuple[int, int, int]]] = LABELS.palette

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        members = np.zeros((len(labels), classes), dtype=bool)
        for row, mask in zip(members, labels, strict=True):
            row[:] = np.bincount(np.asarray(mask).ravel(), minlength=IGNORED + 1)[:classes] > 0
        return members

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...], background: int | None = None) -> NDArray[Any]:
        if background is None:
            return labels
        table = np.full(IGNORED + 1, background, dtype=np.uint8)
        table[[*classes, IGNORED]] = [*classes, IGNORED]
        limited: NDArray[np.uint8] = table[labels]
        return limited

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        shape = (len(part.positions), *part.samples.y.shape[1:])
        return lambda answers, where: _label_pictures(answers, shape, classes, where)

    def packed(self, answers: NDArray[np.uint8]) -> list[bytes]:
        return [compress_mask(picture) for picture in answers]

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        counts = np.zeros((classes, classes + 1), dtype=np.int64)
        first: NDArray[np.uint8] | None = None
        packed: list[bytes] = []
        shape: tuple[int, ...] = ()
        for piece, content in answers:
            shape = piece.samples.y.shape[1:]
            masks = PackedPictures(pack_masks(content, shape))[:]
            counts += picture_confusion(np.asarray(piece.samples.y[piece.positions]), masks, classes)
            first = masks[:SHOWN].copy() if first is None else first
            packed += content
        extras = {} if first is None else {FIRST: first}
        return Predictions(counts, {**extras, EVERY: pack_masks(packed, shape)})

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        return samples.y[positions[:SHOWN]]

    def shown(self, part: Part) -> NDArray[Any] | None:
        first = part.samples.x[part.positions[:SHOWN]]
        return first if part.transform is None else part.transform(first)

    def every_truth(self, samples: Samples, positions: NDArray[np.int64]) -> LabelPictures:
        return PictureRows(samples.y, positions)

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """Return the pixel accuracy of each image, without the pixels that have no class."""

        def score(wanted: NDArray[np.uint8], answer: NDArray[np.uint8]) -> float:
            labelled = wanted != IGNORED
            return float((wanted == answer)[labelled].mean()) if labelled.any() else 0.0

        return np.array([score(*map(np.asarray, pair)) for pair in zip(labels, answers, strict=True)])

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        packed = predictions.extras.get(EVERY)
        if packed is None or not isinstance(truth, LabelPictures):
            return replace(about, counts=predictions.labels)
        return replace(about, counts=predictions.labels, y_true=truth, y_pred=PackedPictures(packed))


def _label_pictures(answers: object, shape: tuple[int, ...], classes: int, where: str) -> NDArray[np.uint8] | Any:
    """Return uint8 class indices, or 255 where "ignore" is predicted; a tensor remains a tensor on its device."""
    wanted = f"class indices of shape {shape}, one for each pixel: 0 to {classes - 1}, or {IGNORED} for none"
    if answers is None:
        raise PluginError(f"{where} returned nothing. Return {wanted}.", code="invalid-result")
    if isinstance(answers, list | tuple) and len(answers) != shape[0]:
        answers = one_for_each(answers, shape[0], where)  # the error names the shapes of batches
    try:
        array = answers.detach() if hasattr(answers, "detach") else np.asarray(answers)
    except ValueError as error:
        raise PluginError(
            f"{where} returned images of different shapes ({error}). Return {wanted}.", code="invalid-result"
        ) from None
    kind = str(array.dtype).removeprefix("torch.")
    if array.ndim == 4 and array.shape[2:] == shape[1:]:
        raise PluginError(
            f"{where} returned scores {tuple(array.shape)}: return class indices, scores.argmax(1).",
            code="invalid-result",
        )
    if tuple(array.shape) != shape or not kind.startswith(("uint", "int", "bool")):
        raise PluginError(
            f"{where} returned {kind} of shape {tuple(array.shape)}. Return {wanted}.", code="invalid-result"
        )
    if shape[0] and (int(array.min()) < 0 or int(array.max()) >= classes):
        wrong = array[(array < 0) | ((array >= classes) & (array != IGNORED))]
        if len(wrong):
            raise PluginError(f"{where} returned class index {int(wrong[0])}. Return {wanted}.", code="invalid-result")
    if isinstance(array, np.ndarray):
        return array.astype(np.uint8, copy=False)
    import torch

    return array.to(torch.uint8)
