"""Warnings about what is accepted and has no effect, or is read otherwise than it looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ianvs.config.models import AlgorithmFile, JobFile, TestEnvFile
from ianvs.config.models.base import NoEffect, Section
from ianvs.config.models.samples import legacy_form
from ianvs.config.models.testenv import FileDataset
from ianvs.config.strict_yaml import Document, Steps
from ianvs.errors import Problem

__all__ = ["warnings_of"]


def warnings_of(model: JobFile | TestEnvFile | AlgorithmFile, document: Document, kind: str) -> Iterator[Problem]:
    """What the author of `document` should know about it."""
    for path, remark in _marked(model, (kind,)):
        yield Problem(f"'{path[-1]}' has no effect{f': {remark}' if remark else ' yet'}.", document.key_place(path))
    if isinstance(model, TestEnvFile):
        yield from _of_testenv(model, document)


def _marked(value: Any, path: Steps) -> Iterator[tuple[Steps, str]]:
    """Path and remark of each key that is given and marked as without effect."""
    if isinstance(value, Section):
        for key, field in type(value).model_fields.items():
            if key in value.model_fields_set:
                for mark in field.metadata:
                    if isinstance(mark, NoEffect):
                        yield (*path, key), mark.remark
                yield from _marked(getattr(value, key), (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marked(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _marked(item, (*path, key))


def _of_testenv(testenv: TestEnvFile, document: Document) -> Iterator[Problem]:
    if isinstance(testenv.metrics, dict):
        message = "metrics in groups are read as one list; the groups have no effect."
        yield Problem(message, document.key_place(("testenv", "metrics")))
    dataset = testenv.dataset
    if isinstance(dataset, FileDataset):
        for part, value in (("train", dataset.train_url), ("test", dataset.test_url)):
            paths = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
            forms = sorted({str(legacy_form(path)) for path in paths if path})
            if forms:
                read_as = " and ".join(f"{part}_{form}" for form in forms)
                message = f"'{part}_url' is an old name, read as {read_as} by its suffix. Write {read_as}."
                yield Problem(message, document.key_place(("testenv", "dataset", f"{part}_url")))
    if testenv.model_eval and testenv.model_eval.model_metric.mode not in (None, "none", "no-inference"):
        mode = testenv.model_eval.model_metric.mode
        path: Steps = ("testenv", "model_eval", "model_metric", "mode")
        yield Problem(f"mode '{mode}' has no effect yet; the metric is computed as ever.", document.key_place(path))
