"""Checks which stored predictions of a case are missing or damaged, and scores complete ones."""

from typing import Literal

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.config.contracts import runner_of
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.scoring import score_case
from ianvs.running.session.contract_case import score_contract_case
from ianvs.store import CaseStore


def missing_rounds(request: CaseRequest, store: CaseStore) -> Literal["all", "some", ""]:
    """Remove damaged files, and return which rounds have to be run; "all" if nothing of the case is stored."""
    case = request.case
    if runner_of(request.algorithm) is not None:
        return "some" if store.evaluated_facts(case.id) is None else ""
    if request.until is not None and store.is_complete_until(case.id, request.until):
        return ""
    state = store.state(case.id, thoroughly=True)
    if state.status is None:
        return "all" if store.begin(case, request.identity) else "some"
    if store.evaluated_facts(case.id) is not None and store.broken_round(case.id) is None:
        return ""
    if store.is_earlier(case.id):
        print("an earlier version of ianvs stored this case, which can be read and not continued; it starts over")
        store.reset(case.id)
        state = store.state(case.id, thoroughly=True)
    for name in state.damaged:
        print(f"cases/{case.id}/{name} {CHANGED_MESSAGE}; it is made again")
    if state.damaged:
        store.remove_damaged(case.id, state.damaged)
    if state.status == "finished" or (state.damaged and state.is_whole):
        store.write_case(case, request.identity)
        store.store_evaluated(case.id, store.facts(case.id))
        return ""
    store.begin(case, request.identity)
    return "some"


def score_evaluated(request: CaseRequest, store: CaseStore) -> None:
    """Score stored predictions and, unless the case pauses, write the result. If a metric fails, the case fails."""
    runner, facts = runner_of(request.algorithm), store.evaluated_facts(request.case.id)
    if runner is not None:
        facts = score_contract_case(runner, request, store)
    else:
        score_case(request)
    if facts is not None:  # None: it pauses
        store.finish(request.case.id, facts)
