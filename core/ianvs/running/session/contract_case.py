"""A case that its contract runs itself: its plugin runs in this process, its metrics in another, later."""

import dataclasses
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ianvs.base.package import own_name
from ianvs.config.contracts import Contract, ContractCase
from ianvs.processes.engines.engine import Reporter
from ianvs.running.loop import Interrupted
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.cases import own_hyperparameters
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.store import CaseStore


def run_contract_case(
    contract: Contract, request: CaseRequest, store: CaseStore, report: Reporter, memory: MemoryMeter
) -> dict[str, Any]:
    """Run what has not run; what is to be said of it in the result, beside what its metrics say."""
    case = _case(request, store)
    case.folder.mkdir(parents=True, exist_ok=True)
    report({"round": 0, "doing": "start"})
    memory.begin()
    with _as_it_was():
        contract.run(case, _Progress(report))
    return {"peak_memory_bytes": memory.peak_bytes()}


def score_contract_case(
    contract: Contract, request: CaseRequest, store: CaseStore, told: dict[str, Any]
) -> dict[str, Any]:
    """Score what was run; what belongs into the result. told: what `run_contract_case` said."""
    with _as_it_was():
        facts = dataclasses.asdict(contract.score(_case(request, store)))
    for last in facts["rounds"][-1:]:
        last["peak_memory_bytes"] = told["peak_memory_bytes"]
    named = ("warnings", "notes", "test_labels", "matrices", "metric", "R", "untrained")
    return {
        "bound": False,
        "basemodel": "",
        "measures": facts["measures"],
        "finished_at": told["finished_at"],
        "provenance": {**request.provenance, "threads": request.threads},
        "handed": {
            **{key: facts[key] for key in named},
            "contract": contract.name,
            "scores": {key: facts["scores"].get(spec.name) for spec, key in request.scores},
            "rounds": facts["rounds"],
            "dataset": request.testenv.dataset.name or "",
        },
    }


def _case(request: CaseRequest, store: CaseStore) -> ContractCase:
    given, kinds = request.case.hyperparameters, [module.type for module in request.algorithm.modules]
    return ContractCase(
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


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Context manager: the current folder, the path of imports, and modules of authors' files are put back: with
    `engine: inline` other cases follow in this process."""
    folder, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        os.chdir(folder)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file and not file.startswith((sys.prefix, sys.base_prefix)) and own_name(Path(file)) is None:
                del sys.modules[name]


class _Progress:
    """What is told in words, as the supervisor shows it. Raises Interrupted once the case is asked to stop."""

    def __init__(self, report: Reporter) -> None:
        self._report, self._round = report, 0

    def __call__(self, text: str) -> None:
        if self._report.stop_requested():
            raise Interrupted
        self._round += text.startswith("round ")
        self._report({"round": max(1, self._round), "doing": text})
