"""Warnings about what is accepted and has no effect, or is read otherwise than it looks."""

from __future__ import annotations

from collections.abc import Iterator

from ianvs.config.models import TestEnvSpec
from ianvs.config.models.base import at
from ianvs.config.models.form import Spec
from ianvs.config.strict_yaml import Document, Steps
from ianvs.errors import Problem

__all__ = ["warnings_of"]


def warnings_of(model: Spec, document: Document, kind: str) -> Iterator[Problem]:
    """What the author of `document` should know about it."""
    for key, remark in model.without_effect.items():
        if key in at(document.data, kind):
            yield _no_effect(document, (kind, key), remark)
    if isinstance(model, TestEnvSpec):
        yield from _of_testenv(model, document)


def _no_effect(document: Document, path: Steps, remark: str) -> Problem:
    return Problem(f"'{path[-1]}' has no effect{f': {remark}' if remark else ' yet'}.", document.key_place(path))


def _of_testenv(testenv: TestEnvSpec, document: Document) -> Iterator[Problem]:
    top: Steps = ("testenv",)
    if isinstance(at(document.data, *top, "metrics"), dict):
        message = "metrics in groups are read as one list; the groups have no effect."
        yield Problem(message, document.key_place((*top, "metrics")))
    dataset = testenv.dataset
    if dataset.name is None and at(document.data, *top, "dataset", "download") is not None:
        yield _no_effect(document, (*top, "dataset", "download"), "only a built-in source ('name') downloads")
    for part, sources in (("train", dataset.train), ("test", dataset.test)):
        if dataset.name is None and at(document.data, *top, "dataset", f"{part}_url"):
            read_as = " and ".join(f"{part}_{form}" for form in sorted({source.form for source in sources}))
            message = f"'{part}_url' is an old name, read as {read_as} by its suffix. Write {read_as}."
            yield Problem(message, document.key_place((*top, "dataset", f"{part}_url")))
    path: Steps = (*top, "model_eval", "model_metric", "mode")
    if (mode := at(document.data, *path)) not in (None, "none", "no-inference"):
        yield Problem(f"mode '{mode}' has no effect yet; the metric is computed as ever.", document.key_place(path))
