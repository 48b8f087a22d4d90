"""Runs cases of other plugin APIs: their contract runs the case with this store and returns the result."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from ianvs.base.package import own_name
from ianvs.config.contracts import Contract, ContractCase
from ianvs.plugins.authors_files import is_installed
from ianvs.processes.engines.engine import Reporter
from ianvs.processes.engines.forked import keep_freed_memory
from ianvs.running.loop import CaseInterruptedError
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.cases import own_hyperparameters
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.store import CaseStore


def run_contract_case(
    contract: Contract, request: CaseRequest, store: CaseStore, report: Reporter, memory: MemoryMeter
) -> None:
    """Run or continue the case, and store that it can be scored."""
    id_, case = request.case.id, _case(request, store)
    state = store.state(id_, thoroughly=True)
    if state.status is None or state.damaged:
        store.reset(id_)
    store.begin(request.case, request.identity)
    case.folder.mkdir(parents=True, exist_ok=True)
    report({"round": 0, "doing": "start"})
    keep_freed_memory()
    memory.begin()
    with _restored_environment():
        contract.run(case, _Progress(report))
    finished_at = datetime.now(UTC).isoformat(timespec="seconds")
    store.store_evaluated(id_, {"peak_memory_bytes": memory.peak_bytes(), "finished_at": finished_at})


def score_contract_case(contract: Contract, request: CaseRequest, store: CaseStore) -> dict[str, object]:
    """Score a case whose rounds are complete.

    Returns:
        The facts for its result.
    """
    facts = store.evaluated_facts(request.case.id) or {}
    with _restored_environment():
        result = asdict(contract.score(_case(request, store)))
    for last in result["rounds"][-1:]:
        last["peak_memory_bytes"] = facts["peak_memory_bytes"]
    named = ("warnings", "notes", "test_labels", "matrices", "metric", "R", "parts", "untrained", "rounds", "dataset")
    reported = {
        **{key: result[key] for key in (*named, "trained")},
        "contract": contract.name,
        "scores": {key: result["scores"].get(spec.name) for spec, key in request.scores},
    }
    if result["dataset"] is None:
        reported["dataset"] = request.testenv.dataset.name or ""
    provenance = {**request.provenance, "threads": request.threads}
    finished = {"measures": result["measures"], "finished_at": facts["finished_at"], "provenance": provenance}
    return {"bound": False, "basemodel": "", **finished, "handed": reported}


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
def _restored_environment() -> Iterator[None]:
    """Context manager: restore the working directory, the environment, sys.path and the modules of plugins afterwards,
    because other cases follow in this process with `engine: inline`."""
    folder, path, modules, environment = Path.cwd(), list(sys.path), set(sys.modules), dict(os.environ)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file and not is_installed(Path(file)) and own_name(Path(file)) is None:
                del sys.modules[name]


class _Progress:
    """Reports progress as text to the supervisor. Raises CaseInterruptedError after a request to stop."""

    def __init__(self, report: Reporter) -> None:
        self._report, self._round = report, 0

    def __call__(self, text: str) -> None:
        if self._report.stop_requested():
            raise CaseInterruptedError
        self._round += text.startswith("round ")
        self._report({"round": max(1, self._round), "doing": text})
