"""The exam's budget: measured limits on what a learner may use in a round."""

from collections.abc import Sequence

from ianvs.base.errors import ExamRuleError
from ianvs.base.types import RoundResult
from ianvs.config.spec import BudgetSpec


def over_budget(budget: BudgetSpec | None, result: RoundResult) -> tuple[str, ...]:
    """Return messages on the quantities of `result` that are over the budget."""
    if budget is None:
        return ()
    measured = (
        ("memory_samples", result.memory_samples, budget.memory_samples),
        ("memory_bytes", result.memory_bytes, budget.memory_bytes),
        ("passes", result.passes, budget.passes),
        ("round_seconds", round(result.train_seconds, 3), budget.round_seconds),
        ("stream_seconds", round(result.answer_seconds + result.feedback_seconds, 3), budget.stream_seconds),
        ("tokens", result.measures.get("tokens"), budget.tokens),
        ("calls", result.measures.get("calls"), budget.calls),
    )
    return tuple(
        f"{name} {used:g} in round {result.index}, the budget is {limit:g}"
        for name, used, limit in measured
        if used is not None and limit is not None and used > limit
    )


def unmeasured_budget_text(budget: BudgetSpec | None, rounds: Sequence[RoundResult]) -> tuple[str, ...]:
    """Return messages on the parts of the budget that were not measured."""
    if budget is None or not rounds:
        return ()
    sentences = []
    no_samples = all(round_.memory_samples is None for round_ in rounds)
    # Measured for sandboxes in any case.
    no_bytes = no_samples and all(round_.memory_bytes is None for round_ in rounds)
    if (budget.memory_samples is not None and no_samples) or (budget.memory_bytes is not None and no_bytes):
        sentences.append("it declares no `memory`, so that the budget of memory was not measured")
    for name in ("tokens", "calls"):
        if getattr(budget, name) is not None and all(name not in round_.measures for round_ in rounds):
            sentences.append(f"it counts no {name}, so that their budget was not measured")
    return tuple(sentences)


def check_budget(budget: BudgetSpec | None, result: RoundResult) -> None:
    """Raise ExamRuleError if a round is over the budget and the testenv makes that an error."""
    if budget is not None and budget.over == "fail" and (over := over_budget(budget, result)):
        raise ExamRuleError(
            f"over the budget of the exam: {'; '.join(over)}. "
            "With `over: mark` in the testenv's budget, the row is marked instead.",
            code="broken-rule",
        )
