"""Rounds of any scenario as a stream."""

from collections.abc import Iterator
from dataclasses import replace

from ianvs.exam.scenarios.exam import Exam, Stream


def as_stream(exam: Exam, batch: int, eval_every: int | None, *, shuffled: bool) -> Exam:
    """Return the same data in chunks of `batch` samples, without information on tasks and on the ends of rounds."""
    rules = replace(exam.rules, boundaries=False, task_in_training=False)
    return replace(exam, rules=rules, stream=Stream(batch, eval_every, shuffled=shuffled))


def too_often(batch: int, eval_every: int | None) -> Iterator[tuple[str, str]]:
    """Yield (option, message) if examinations would have to happen within a chunk, which is impossible."""
    if eval_every is not None and eval_every < batch:
        message = f"`eval_every: {eval_every}` is less than `batch: {batch}`, and a chunk is served as a whole"
        yield "eval_every", f"{message}. Set `eval_every` to {batch} or more, or a smaller `batch`."


def stream_option_errors(batch: int | None, eval_every: int | None) -> Iterator[tuple[str, str]]:
    """Yield (option, message) for wrong options of a scenario that is a stream only if `batch` is given."""
    if eval_every is not None and batch is None:
        yield "eval_every", "`eval_every` is for a stream; set `batch` too, the samples in a chunk."
    if batch is not None:
        yield from too_often(batch, eval_every)
