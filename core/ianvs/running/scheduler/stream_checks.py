"""Checks of prequential exams."""

from collections.abc import Iterator

from ianvs.base.errors import ValidationError
from ianvs.config.spec import AlgorithmSpec, JobSpec, TestEnvSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.running.scheduler.checks import Preflight

_TOLD = {
    "correctness": "whether an answer was right",
    "score": "what an answer is worth",
    "text": "a text about an answer",
}


def prequential_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check the prequential exams of a job."""
    job = preflight.job
    for exam in job.testenvs:
        if exam.prequential is None:
            continue
        if job.generation.engine == "server":
            reason = "`generation: {engine: server}` writes replies of exams, and `prequential` asks the learner itself"
            place = exam.places.get("prequential", exam.place)
            yield ValidationError(f"{reason}. Take one of them out.", place, code="conflicting-keys")
        yield from _feedback_problems(preflight, exam)
        yield from _metric_problems(preflight, exam)


def cost_warnings(job: JobSpec) -> Iterator[ValidationError]:
    """Find costs of streams in a job without a prequential exam."""
    for algorithm in job.algorithms:
        if algorithm.stream_cost != 1:
            reason = "'stream_cost' has no effect: no testenv of the job is `prequential`."
            place = algorithm.places.get("stream_cost", algorithm.place)
            yield ValidationError(reason, place, warning=True, code="no-effect")


def _feedback_problems(preflight: Preflight, exam: TestEnvSpec) -> Iterator[ValidationError]:
    assert exam.prequential is not None
    if exam.prequential.feedback == "label":
        return
    for algorithm in preflight.job.algorithms:
        facts = preflight.inspector.paradigm(algorithm)
        if not facts.receives_feedback and not facts.reference:
            reason = f"{_learner_name(algorithm)} learns by train(), which takes labels; this exam tells only"
            remedy = "Give it feedback(told, **context), and `paradigm_type: testtimelearning`."
            yield ValidationError(
                f"{reason} {_TOLD[exam.prequential.feedback]}. {remedy}",
                algorithm.paradigm.place,
                code="unfit-paradigm",
            )


def _metric_problems(preflight: Preflight, exam: TestEnvSpec) -> Iterator[ValidationError]:
    assert exam.prequential is not None
    answers = [(spec, preflight.inspector.metric(spec)) for spec in exam.metrics]
    both = [(spec, answer) for spec, answer in answers if isinstance(answer, Metric)]
    shifts = exam.prequential.near_future
    for spec, metric in both:
        base, _, shift = metric.name.partition("@")
        if base == "near_future_accuracy" and not (shifts if not shift else int(shift) in shifts):
            wanted = f"[{', '.join(map(str, [*shifts, *([int(shift)] if shift else [0])]))}]"
            reason = f"{metric.name} needs copies that are asked ahead. Write `near_future: {wanted}` in `prequential`."
            yield ValidationError(reason, spec.place, code="unrequested-scores")
        if metric.name == "stability_gain" and not exam.prequential.second_pass:
            yield ValidationError(
                "stability_gain needs `second_pass: true` in `prequential`.", spec.place, code="unrequested-scores"
            )
    first = preflight.job.rank.sort_by[0][0]
    if first == "online_accuracy" and all(metric.level in ("stream", "system") for _, metric in both):
        reason = (
            "online_accuracy alone ranks a learner that forgets everything above one that doesn't, where what comes"
        )
        remedy = "Add a score of the test sets, such as accuracy, to the metrics."
        yield ValidationError(
            f"{reason} next is like what came last. {remedy}",
            preflight.job.place,
            warning=True,
            code="doubtful-ranking",
        )


def _learner_name(algorithm: AlgorithmSpec) -> str:
    return next((module.name for module in algorithm.modules if module.type == "basemodel"), algorithm.name)
