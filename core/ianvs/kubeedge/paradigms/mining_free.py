"""The mode mining-free of joint inference: a drafter at the edge proposes, a verifier in the cloud checks."""

from collections.abc import Mapping
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import accepts
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.paradigms.exchange import Exchange, costs
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.datasources import BaseDataSource

MODE = "mining-free"
METHODS = {
    "drafter": ("inference", "start_session", "step", "close_session"),
    "verifier": ("inference", "start_session", "verify", "close_session"),
}
"""Required methods of the modules of this mode."""


def lacking_methods(type_: str, thing: object) -> str:
    """Return the missing methods of a drafter or verifier, or its class, in one sentence; "" for anything else."""
    lacking = [name for name in METHODS.get(type_, ()) if not hasattr(thing, name)]
    return f"a {type_} needs the methods {', '.join(lacking)} for the mode {MODE}. Add them." if lacking else ""


def mining_free(case: Case, data: BaseDataSource) -> Outcome:
    """Return the result of each item: [False, the result, the drafter's, the verifier's], the last two of one model
    alone.
    """
    drafter, verifier = case.required_modules(*METHODS)
    for type_, thing in (("drafter", drafter), ("verifier", verifier)):
        if lacking := lacking_methods(type_, thing):
            raise PluginError(lacking, code="broken-contract")
        if hasattr(thing, "load"):
            with case.calling(type_, "load"):
                thing.load()
    exchanges = [Exchange(case, drafter, verifier, tuple(METHODS)) for _ in data.x]
    mode = getattr(drafter, "inference_mode", "collaboration")
    results = [_answer(item, exchange, mode) for item, exchange in zip(data.x, exchanges, strict=True)]
    rounds = [exchange.rounds for exchange in exchanges]
    measures: dict[str, object] = {"cloud_rounds": [len(some) for some in rounds]}
    measures |= costs(case.work.exam, [exchange.edge_calls for exchange in exchanges], rounds)
    return Outcome(result=results, measures=measures)


def _answer(item: Any, exchange: Exchange, inference_mode: str) -> list[object]:
    if inference_mode == "cloud-only":
        alone = exchange.cloud("inference", **_taken(exchange.cloud_model.inference, data=item))
        return [False, alone, None, alone]
    if inference_mode == "edge-only":
        alone = exchange.edge("inference", **_taken(exchange.edge_model.inference, data=item))
        return [False, alone, alone, None]
    drafter, verifier = exchange.edge_model, exchange.cloud_model
    draft = exchange.edge_uncounted("start_session", **_taken(drafter.start_session, data=item))
    check = exchange.cloud_uncounted("start_session", **_taken(verifier.start_session, data=item, draft_session=draft))
    is_mapping = isinstance(draft, Mapping)
    request = draft.get("request") if is_mapping else None
    if request is None:
        request = item if isinstance(item, Mapping) else {"query": item}
    result = feedback = None
    try:
        while True:
            proposal = exchange.edge("step", draft, **_taken(drafter.step, feedback=feedback))
            verdict = exchange.cloud_uncounted("verify", check, **_taken(verifier.verify, draft_output=proposal)) or {}
            exchange.sent(proposal, verdict)
            result = verdict.get("result") if verdict.get("result") is not None else result
            feedback = verdict.get("feedback")
            if is_mapping:
                draft["_pending_feedback"] = feedback
            if not verdict.get("progress", True):
                raise PluginError("verify() says that nothing was gained in this round: progress is false.")
            if verdict.get("stop", False):
                break
    finally:
        closed = exchange.edge_uncounted("close_session", draft, **_taken(drafter.close_session, request=request))
        exchange.cloud_uncounted("close_session", check, **_taken(verifier.close_session, request=request))
    result = closed if result is None else result
    if result is None:
        raise PluginError("verify() stopped without a result, and close_session() of the drafter returned none.")
    return [False, result, None, None]


def _taken(method: Any, **keywords: object) -> dict[str, object]:
    """Return those of the keywords, and of Ianvs's additional ones, that a method accepts."""
    return {name: value for name, value in {**keywords, "mining_mode": MODE}.items() if accepts(method, name)}
