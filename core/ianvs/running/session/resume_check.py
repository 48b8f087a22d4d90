"""Checks which stored predictions of a case are missing or damaged, and scores complete ones."""

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.config.contracts import runner_of
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.scoring import score_case
from ianvs.running.session.contract_case import score_contract_case
from ianvs.store import CaseStore


def needs_evaluation(request: CaseRequest, store: CaseStore) -> bool:
    """Remove damaged files, and return whether rounds have to be run."""
    case = request.case
    if runner_of(request.algorithm) is not None:
        return store.evaluated_facts(case.id) is None
    if request.until is not None and store.is_complete_until(case.id, request.until):
        return False
    state = store.state(case.id, thoroughly=True)
    if state.status is None:  # nothing is stored
        store.begin(case, request.identity)
        return True
    if store.evaluated_facts(case.id) is not None and store.broken_round(case.id) is None:
        return False
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
        return False
    store.begin(case, request.identity)
    return True


def score_evaluated(request: CaseRequest, store: CaseStore) -> None:
    """Score stored predictions and, unless the case pauses, write the result. If a metric fails, the case fails."""
    runner, facts = runner_of(request.algorithm), store.evaluated_facts(request.case.id)
    if runner is not None:
        facts = score_contract_case(runner, request, store)
    else:
        score_case(request)
    if facts is not None:  # None: it pauses
        store.finish(request.case.id, facts)
