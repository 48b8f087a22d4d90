"""Has the model of a session answer test sets, and keeps what metrics and reports will want of its answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.errors import PluginError
from ianvs.kinds import KINDS
from ianvs.metrics.metric import EvaluationRecord
from ianvs.paradigms import Paradigm
from ianvs.scenarios.exam import Exam, TestSet
from ianvs.scenarios.parts import Part
from ianvs.scenarios.views import TestView
from ianvs.session.modules import Modules
from ianvs.session.probe import probed_labels
from ianvs.session.session import CaseSession
from ianvs.types import Asked, Predictions

__all__ = ["Evaluation"]


class Evaluation:
    """The model of `session` before the test sets of an exam.

    probe: whether features are examined too. every: whether all answers are kept, also where the kind of data would
    keep less.
    """

    def __init__(self, exam: Exam, paradigm: Paradigm, session: CaseSession, *, probe: bool, every: bool) -> None:
        self._exam, self._paradigm, self._session = exam, paradigm, session
        self._probe, self._every = probe, every
        self._kind = KINDS[exam.dataset.kind]

    def predictions(self, taught: int, samples: int | None = None) -> dict[Asked, Predictions]:
        """Answers to all test sets after round `taught`; within a stream, after so many `samples`.

        An exam that asks ahead leaves out the test sets of rounds that the model was taught.
        """
        found: dict[Asked, Predictions] = {}
        only_future = self._exam.rules.asked == "future"
        asked = [(j, test) for j, test in enumerate(self._exam.tests) if not (only_future and j < taught)]
        with self._session.examining(), self._saved(taught) as folder:
            saved = self._session.modules.save(Path(folder)) if folder else None
            for j, test in asked:
                part = Part(self._exam.dataset.test, test.test, test.transform)
                context = self._context(j, test.classes)
                with (
                    nullcontext() if test.adapt is None else self._session.as_copy(self._adapted(test, saved, context))
                ):
                    said = self._answers(part, f"test set {test.name}", context, self._every)
                found[Asked(j, samples)] = said
            if self._probe and samples is None:
                for j, test in asked:
                    labels = probed_labels(self._session, self._exam, j, self._context(j, test.classes))
                    said = found[Asked(j)]
                    found[Asked(j)] = replace(said, extras={**said.extras, "probe": labels})
        return found

    def held_out(self, index: int, positions: NDArray[np.int64], every: bool) -> EvaluationRecord:
        """What the model answers to the part at `positions` that is held out of the training of round `index`.

        every: whether all answers are asked for, also where the kind of data would keep less.
        """
        dataset, round_ = self._exam.dataset, self._exam.rounds[index - 1]
        context = self._context(index - 1, round_.classes) | self._session.round_context(index)
        part = Part(dataset.train, positions, round_.transform)
        with self._session.examining(counts=False):
            said = self._answers(part, f"the held-out part of round {index}", context, every)
        earlier = tuple(sorted({label for before in self._exam.rounds[: index - 1] for label in before.classes}))
        about = EvaluationRecord(dataset.classes, labels=round_.classes, earlier=earlier)
        truth = self._kind.every_truth(dataset.train, positions) if every else None
        return self._kind.record(about, self._kind.truth(dataset.train, positions), said, truth)

    def _saved(self, taught: int) -> AbstractContextManager[str | None]:
        """A folder for the present model, of which copies are adapted; None where there is nothing to copy yet."""
        copied = any(test.adapt is not None for test in self._exam.tests)
        return tempfile.TemporaryDirectory(prefix="ianvs-") if copied and taught else nullcontext()

    def _adapted(self, test: TestSet, saved: list[Any] | None, context: Mapping[str, Any]) -> Modules:
        """Copies of the modules, which have learned from the labelled samples of `test` as they themselves have not."""
        session = self._session
        session.seeds.start(f"adapt to {test.name}")
        copies = session.modules.copied(saved)
        with session.as_copy(copies), session.examining(counts=False):
            for data in session.adaptation(test, context):
                self._paradigm.adapt(data, session)
        return copies

    def _context(self, j: int, classes: tuple[int, ...]) -> dict[str, Any]:
        """What is told with test set j: the task's identity and its classes where the rules show them."""
        rules = self._exam.rules
        if not rules.task_in_testing:
            return {}
        return {"task": j, "task_classes": classes} if rules.output_space == "task" else {"task": j}

    def _answers(self, asked: Part, name: str, context: Mapping[str, Any], every: bool) -> Predictions:
        classes = len(self._exam.dataset.classes)
        extras: dict[str, list[NDArray[Any]]] = {}
        kept = self._kind.kept(self._pieces(asked, name, context, extras), classes, every)
        if taken := extras.keys() & {*kept.extras, "probe"}:
            raise PluginError(f"{self._paradigm.name}.predict() returned an extra '{min(taken)}', a name of ours.")
        told = {name: np.concatenate(values) for name, values in extras.items()}
        return replace(kept, extras={**kept.extras, **told})

    def _pieces(
        self, asked: Part, name: str, context: Mapping[str, Any], extras: dict[str, list[NDArray[Any]]]
    ) -> Iterator[tuple[Part, Any]]:
        """(samples, checked answers) of a part, as many at a time as are asked at once; `extras` gathers theirs."""
        classes, count = len(self._exam.dataset.classes), len(asked.positions)
        size = self._kind.at_once or max(1, count)
        for start in range(0, max(1, count), size):
            piece = replace(asked, positions=asked.positions[start : start + size])
            check = self._kind.checker(piece, classes)
            data = TestView(piece, name=name)
            said: object = self._paradigm.predict(data, context, self._session)
            data.close()
            if not isinstance(said, Predictions):
                found = type(said).__name__
                raise PluginError(f"{self._paradigm.name}.predict() returned {found}: return Predictions(labels).")
            for extra, values in said.extras.items():
                array = np.asarray(values)
                if not extra.isidentifier() or array.dtype == object or array.shape[:1] != (len(piece.positions),):
                    shape = f"{array.dtype} {array.shape}"
                    raise PluginError(f"the extra '{extra}' of predict() is {shape}: return a number for each sample.")
                extras.setdefault(extra, []).append(array)
            yield piece, check(said.labels, self._session.who)
