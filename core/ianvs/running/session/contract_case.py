"""A case that its contract runs itself: the plugin in a process of its own, its metrics in another, this in neither.

What an author's code says comes here as JSON only: numbers and texts.
"""

import dataclasses
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.base.types import Sealing
from ianvs.config.contracts import Contract, ContractCase
from ianvs.processes.engines.engine import Reporter
from ianvs.processes.engines.forked import CHILD_SUBREAPER, PARENT_DEATH_SIGNAL, keep_freed_memory, live, prctl
from ianvs.processes.sealing.peer import RemoteError
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.cases import own_hyperparameters
from ianvs.running.session.remote import Ended
from ianvs.running.session.rounds import Interrupted
from ianvs.store import CaseStore


def run_contract_case(
    contract: Contract, request: CaseRequest, store: CaseStore, report: Reporter
) -> dict[str, object]:
    """Run what has not run, score it anew, and say what belongs into the result."""
    if not hasattr(os, "fork"):
        where = f"plugins under `contract: {contract.name}` run in a fork of this process"
        raise PluginError(f"{where}: that needs Linux or macOS.", code="unsupported-by-contract")
    given, kinds = request.case.hyperparameters, [module.type for module in request.algorithm.modules]
    case = ContractCase(
        request.algorithm,
        request.testenv,
        {kind: own_hyperparameters(given, kind, kinds) for kind in kinds},
        request.case.seed,
        tuple(spec for spec, _ in request.scores),
        store.files(request.case.id),
        request.workspace / "cache",
        request.working_directory,
        request.workspace / request.job / request.algorithm.name.replace("/", "_"),
    )
    case.folder.mkdir(parents=True, exist_ok=True)
    report({"round": 0, "doing": "start"})
    _, peak = _apart(lambda: contract.run(case, _Progress(report)), report)
    facts, _ = _apart(lambda: dataclasses.asdict(contract.score(case)), report)
    for last in facts["rounds"][-1:]:
        last["peak_memory_bytes"] = peak
    return {
        "bound": False,
        "basemodel": "",
        "measures": facts["measures"],
        "sealing": vars(Sealing("handed")),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**request.provenance, "threads": request.threads},
        "handed": {
            **{key: facts[key] for key in ("warnings", "notes", "test_labels", "matrices", "metric", "R", "untrained")},
            "contract": contract.name,
            "scores": {key: facts["scores"].get(spec.name) for spec, key in request.scores},
            "rounds": facts["rounds"],
            "dataset": request.testenv.dataset.name or "",
        },
    }


class _Progress:
    """What is told in words, as the supervisor shows it."""

    def __init__(self, report: Reporter) -> None:
        self._report, self._round = report, 0

    def __call__(self, text: str) -> None:
        self._round += text.startswith("round ")
        self._report({"round": max(1, self._round), "doing": text})


def _apart(task: Callable[[], object], report: Reporter) -> tuple[Any, int]:
    """What `task` returns in a fork of this process, by JSON, and the most bytes that it took.

    Raises its errors, and Interrupted if asked to stop.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        live(lambda: _tell(task, writing))
    os.close(writing)
    received = bytearray()
    try:
        while True:
            if report.stop_requested():
                os.kill(pid, signal.SIGKILL)
                raise Interrupted
            if select.select([reading], [], [], 0.1)[0]:
                if not (piece := os.read(reading, 1 << 16)):
                    break
                received += piece
    finally:
        os.close(reading)
        _, status, used = os.wait4(pid, 0)
    if (code := os.waitstatus_to_exitcode(status)) != 0 or not received:
        raise Ended(code or 1)
    answer = json.loads(received)
    if "error" in answer:
        kind, message = answer["error"]
        raise PluginError(message, code="failed-plugin") if kind == "PluginError" else RemoteError(kind, message)
    return answer["value"], 1024 * used.ru_maxrss


def _tell(task: Callable[[], object], writing: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the process that stores results hears the wish to stop
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    prctl(CHILD_SUBREAPER, 1)  # the time of what outlives its parent counts, too
    keep_freed_memory()
    try:
        answer: dict[str, object] = {"value": task()}
    except Exception as error:
        traceback.print_exc()
        kind = "PluginError" if isinstance(error, PluginError) else type(error).__name__
        answer = {"error": [kind, str(error)]}
    sys.stdout.flush()
    with os.fdopen(writing, "w") as pipe:
        json.dump(answer, pipe)
