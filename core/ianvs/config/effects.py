"""Warnings about what is accepted and has no effect, or is read otherwise than it looks."""

from __future__ import annotations

from collections.abc import Iterator

from ianvs.config.models import TestEnvSpec
from ianvs.config.models.base import at
from ianvs.config.models.form import Spec
from ianvs.config.strict_yaml import Document
from ianvs.errors import Problem

__all__ = ["warnings_of"]


def warnings_of(model: Spec, document: Document, kind: str) -> Iterator[Problem]:
    """What the author of `document` should know about it."""
    for key, remark in model.without_effect.items():
        if key in at(document.data, kind):
            message = f"'{key}' has no effect{f': {remark}' if remark else ' yet'}."
            yield Problem(message, document.key_place((kind, key)))
    if not isinstance(model, TestEnvSpec):
        return
    if isinstance(at(document.data, kind, "metrics"), dict):
        message = "metrics in groups are read as one list; the groups have no effect."
        yield Problem(message, document.key_place((kind, "metrics")))
    dataset = model.dataset
    if dataset.name is None and at(document.data, kind, "dataset", "download") is not None:
        message = "'download' has no effect: only a built-in source ('name') downloads."
        yield Problem(message, document.key_place((kind, "dataset", "download")))
    for part, sources in (("train", dataset.train), ("test", dataset.test)):
        if dataset.name is None and at(document.data, kind, "dataset", f"{part}_url"):
            read_as = " and ".join(f"{part}_{form}" for form in sorted({source.form for source in sources}))
            message = f"'{part}_url' is an old name, read as {read_as} by its suffix. Write {read_as}."
            yield Problem(message, document.key_place((kind, "dataset", f"{part}_url")))
    path = (kind, "model_eval", "model_metric", "mode")
    if (mode := at(document.data, *path)) not in (None, "none", "no-inference"):
        yield Problem(f"mode '{mode}' has no effect yet; the metric is computed as ever.", document.key_place(path))
