"""What is wrong with `rank.select`: nothing to choose on, or nothing left to report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ianvs.base.errors import Problem, closest
from ianvs.config.spec import JobSpec, SelectSpec
from ianvs.store import ExamRecord

__all__ = ["problems_of_select", "round_problems", "selection_problems"]


def selection_problems(job: JobSpec, levels: Mapping[str, str]) -> Iterator[Problem]:
    """levels: of metrics, by name."""
    yield from problems_of_select(job, levels, job.rank.select, job.rank.sort_by[0][0])


def problems_of_select(
    job: JobSpec, levels: Mapping[str, str], select: SelectSpec | None, metric: str
) -> Iterator[Problem]:
    """metric: by which the choice is made."""
    if select is None:
        return
    place = select.places.get("by", select.place)
    if select.by == "seeds" and len(job.seeds) < 2:
        yield Problem("`by: seeds` chooses on a half of the seeds, and the job has one. Give it more.", place)
    if select.by == "exam":
        names = [testenv.name for testenv in job.testenvs]
        if len(names) < 2:
            yield Problem("`by: exam` chooses on one testenv of the job and reports the others; it has one.", place)
        elif select.exam is not None and select.exam not in names:
            told = (
                f"'{select.exam}' is no testenv of the job.{closest(select.exam, names)} They are: {', '.join(names)}."
            )
            yield Problem(told, select.places.get("exam", place))
    metrics = (one for exam in job.testenvs for one in exam.metrics)
    if select.by == "first_rounds" and any(one.url and one.of and one.name == metric for one in metrics):
        told = f"`by: first_rounds` cuts score matrices, and '{metric}' of a `url` is computed of whole ones alone."
        yield Problem(f"{told} Sort by a score first, or bring it with a package.", place)
    if select.by == "validation" and levels.get(metric) not in (None, "score"):
        told = f"`by: validation` splits the samples of each test set, and '{metric}' is no score of samples."
        yield Problem(f"{told} Sort by a score first, or choose by first_rounds, seeds or exam.", place)


def round_problems(exam: ExamRecord, select: SelectSpec | None) -> Iterator[Problem]:
    """What of `by: first_rounds` doesn't fit an exam."""
    if select is None or select.by != "first_rounds" or select.rounds is None:
        return
    place = select.places.get("rounds", select.place)
    if len(exam.tests) != len(exam.rounds):
        told = f"needs a test set for each round, and this exam has {len(exam.rounds)} rounds and {len(exam.tests)}"
        yield Problem(f"`by: first_rounds` {told} test sets. Choose by seeds or validation.", select.place)
    elif select.rounds >= len(exam.rounds):
        told = f"{select.rounds} rounds to choose on leave none to report: the exam has {len(exam.rounds)}."
        yield Problem(f"{told} Take fewer.", place)
