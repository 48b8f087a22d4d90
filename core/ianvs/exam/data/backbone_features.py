"""Features of a frozen backbone instead of images: computed once, cached, and shared by all cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, PluginError, ValidationError, code_of
from ianvs.config.spec import BackboneSpec, DatasetSpec
from ianvs.exam.data.cache import Progress, cached_arrays, slice_of
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.fingerprint import digest_of, file_digests

if TYPE_CHECKING:
    import torch

    from ianvs.authoring import TorchLearner
    from ianvs.plugins.contract import TestData

FORMAT = 2  # part of every key: raise it when a network's features change
PICTURES = ("network", "picture_size", "interpolation", "crop", "scale")  # further settings that affect features
PART = 256  # images between two progress reports


def check_backbone(spec: DatasetSpec, backbone: BackboneSpec) -> list[ValidationError]:
    """Check the names and weights of `backbone`, without images."""
    try:
        learner = _learner(backbone)
        learner.backbone_choice.check(backbone.network)
        if backbone.picture_size is not None:
            size = backbone.picture_size
            learner.check_exam(kind="classification", shape=(size, size, 3), num_classes=2)
    except PluginError as error:
        return [ValidationError.from_exception(error, backbone.place or spec.place, "invalid-option")]
    return []


def features_fingerprint(before: str, backbone: BackboneSpec, cache_dir: Path) -> str:
    """Return the fingerprint of features from that of the images, `before`. Weight files count by their content."""
    from ianvs.authoring.preprocessing import published
    from ianvs.authoring.weight_files import find_weights

    weights = backbone.weights
    try:
        file = None if weights is None else find_weights(weights)
    except PluginError as error:
        raise DataError(str(error), code=code_of(error, "missing-file")) from error
    content = weights if file is None else file_digests([str(file)], cache_dir)[0]
    chosen = {name: value for name in PICTURES if (value := getattr(backbone, name)) is not None}
    published_options = {} if weights is None else published(backbone.network, weights, backbone.download)
    return digest_of({"format": FORMAT, "pictures": before, "weights": content, **published_options, **chosen})


def compute_features(
    dataset: Dataset, spec: DatasetSpec, chosen: BackboneSpec, cache_dir: Path, progress: Progress | None = None
) -> Dataset:
    """Return the dataset with memory-mapped features (N, D) float32 of the backbone as samples.

    Raises DataError if the samples are not images with classes, or the network can't process them.
    """
    x = dataset.train.x
    pictures = x.ndim == 4 and (x.dtype == np.uint8 or (x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1))
    if dataset.kind != "classification" or not pictures:
        raise DataError(
            "`backbone` in a dataset is for images that have a class; these samples are something else.",
            code="unfit-key",
        )
    key = features_fingerprint(dataset.fingerprint, chosen, cache_dir)

    def make() -> dict[str, NDArray[Any]]:
        try:
            learner = _learner(chosen)
            learner.check_exam(kind="classification", shape=dataset.train.x.shape[1:], num_classes=2)
            train = _features(learner, dataset.train.x, slice_of(progress, 0.0, 0.8))
            return {"train": train, "test": _features(learner, dataset.test.x, slice_of(progress, 0.8, 1.0))}
        except PluginError as error:
            raise DataError(f"backbone: {error}", code=code_of(error, "invalid-option")) from error

    features = cached_arrays(cache_dir, f"features-{key[:32]}", make)
    return replace(
        dataset,
        train=replace(dataset.train, x=features["train"]),
        test=replace(dataset.test, x=features["test"]),
        name=f"{dataset.name}, features of {chosen.network}",
        fingerprint=key,
        layout="",
    )


def _learner(chosen: BackboneSpec) -> TorchLearner:
    from ianvs.authoring import TorchLearner

    names = (*PICTURES, "weights", "download")
    return TorchLearner(frozen=True, **{name: getattr(chosen, name) for name in names})


def _features(learner: TorchLearner, x: NDArray[Any], progress: Progress | None) -> NDArray[np.float32]:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = []
    for start in range(0, len(x), PART):
        pictures = cast("TestData", _Pictures(np.ascontiguousarray(x[start : start + PART])))
        parts.append(learner.features(pictures, num_classes=2, device=device, seed=0))
        if progress is not None:
            progress(min(1.0, (start + PART) / len(x)))
    features: NDArray[np.float32] = np.concatenate(parts).astype(np.float32, copy=False)
    return features


class _Pictures:
    """(N, height, width, channels) uint8 images in the form that a learner gets."""

    def __init__(self, x: NDArray[Any]) -> None:
        self.x = x

    def tensors(self, device: str = "cpu") -> torch.Tensor:
        import torch

        return torch.from_numpy(self.x).permute(0, 3, 1, 2).to(device)
