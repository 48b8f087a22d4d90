"""What plugins may name, as far as the rules of the exam show it (ianvs.plugins.contract.CONTEXT)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ianvs.engines.engine import Reporter
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios.exam import Exam
from ianvs.seeding import generator
from ianvs.session.feed import Chunk, DataFeed
from ianvs.session.learner_calls import LearnerCalls

__all__ = ["ContextBuilder"]


class ContextBuilder:
    """The context of each call in one case."""

    def __init__(
        self, request: CaseRequest, exam: Exam, feed: DataFeed, device: str, folder: Path, report: Reporter
    ) -> None:
        self._case, self._exam, self._feed = request.case, exam, feed
        self._device, self._folder, self._report = device, folder, report
        budget = None if request.case.role else request.testenv.budget
        limits = (exam.rules.passes, None if budget is None else budget.passes)
        self._passes = min((limit for limit in limits if limit is not None), default=None)

    def after_round(self, index: int, learner: LearnerCalls) -> dict[str, Any]:
        """In or after round `index`; 0 is before the first one."""
        rules, rounds = self._exam.rules, self._exam.rounds
        if not rules.boundaries and not self._case.role and not learner.sees_past_rounds:
            return self.after_chunk(self._feed.last_chunk(index))
        seen = sorted({c for round_ in rounds[:index] for c in round_.classes})
        new = tuple(rounds[index - 1].classes) if index else ()
        context = self._always(index, tuple(seen), new)
        if rules.task_in_training and index:
            context["task"] = index - 1
            if rules.output_space == "task":
                context["task_classes"] = new
        if not rules.training_labels:
            context["pretraining"] = True
        return context

    def after_chunk(self, chunk: Chunk | None) -> dict[str, Any]:
        """In a stream, where `round` counts chunks and the classes are those that it has shown."""
        if chunk is None:
            return self._always(0, (), ())
        return self._always(chunk.number, chunk.seen, chunk.new)

    def by_reference(self, index: int, learner: LearnerCalls) -> dict[str, Any]:
        """For a model that is trained once, on round `index` alone or on all rounds up to it as if they were one."""
        alone = self._case.role == "single_task"
        context = self.after_round(index, learner)
        classes = tuple(self._exam.rounds[index - 1].classes) if alone else context["classes_seen"]
        context |= {"round": 1, "passes": None, "classes_seen": tuple(sorted(classes)), "new_classes": classes}
        if not alone:  # it is of no single task
            context = {name: value for name, value in context.items() if name not in ("task", "task_classes")}
        return context

    def _always(self, number: int, seen: tuple[int, ...], new: tuple[int, ...]) -> dict[str, Any]:
        classes = self._exam.dataset.classes
        return {
            "classes": classes,
            "classes_seen": seen,
            "new_classes": new,
            "num_classes": len(classes),
            "device": self._device,
            "seed": self._case.seed,
            "round": number,
            "generator": generator(self._case.seed, number, "plugin"),
            "folder": self._folder,
            "passes": self._passes,
            "progress": lambda fraction: self._progress(number, fraction),
        }

    def _progress(self, number: int, fraction: float) -> None:
        if not self._feed.streams:  # the chunks of a stream are too short to tell how far each is
            self._report({"round": number, "rounds": len(self._exam.rounds), "fraction": fraction})
