"""A case under `contract: ianvs`: the plugin runs in a process of its own, its metrics in another, this one in neither.

What an author's code says comes here as JSON only: numbers and texts.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, SupportsFloat

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure, RoundResult, Sealing
from ianvs.kubeedge.run import run
from ianvs.kubeedge.scores import score
from ianvs.kubeedge.storing import read_outcome
from ianvs.processes.engines.engine import Reporter
from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, keep_freed_memory, live, prctl
from ianvs.processes.sealing.peer import RemoteError
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.handed_work import metrics_of, work_of
from ianvs.running.session.remote import Ended
from ianvs.running.session.rounds import Interrupted
from ianvs.store import CaseStore

__all__ = ["run_handed"]

_MEASURES = {
    "uploaded_bytes": Measure("Bytes that clients sent to the server, over all rounds and clients."),
    "downloaded_bytes": Measure("Bytes that the server sent to clients, over all rounds and clients."),
    "edge_share": Measure("Share of samples that the edge model answered.", "last", higher_is_better=True),
}
"""What Ianvs's paradigms measure that becomes a column, as far as they do."""


def run_handed(request: CaseRequest, store: CaseStore, report: Reporter) -> dict[str, object]:
    """Run what has not run, score it anew, and say what belongs into the result."""
    algorithm, exam, case = request.algorithm, request.testenv, request.case
    folder = store.files(case.id)
    work = work_of(algorithm, exam, case.hyperparameters, case.seed, folder, request.working_directory)
    report({"round": 0, "doing": "start"})
    _, peak = _apart(lambda: run(work, _Progress(report)), report)
    outcome = read_outcome(work.folder)
    if outcome is None:
        raise PluginError("the plugin's process has ended without a result.")
    wanted = metrics_of(spec for spec, _ in request.scores)
    scored, _ = _apart(lambda: dataclasses.asdict(score(work, wanted)), report)
    values = scored["values"]
    rounds = _rounds(outcome, peak)
    return {
        "bound": False,
        "basemodel": "",
        "measures": {name: vars(measure) for name, measure in _MEASURES.items() if name in rounds[-1].measures},
        "sealing": vars(Sealing("handed")),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**request.provenance, "threads": request.threads},
        "handed": {
            "scores": {key: values.get(spec.name) for spec, key in request.scores},
            "warnings": list(scored["warnings"]),
            "notes": list(outcome["notes"]),
            "test_labels": outcome["handed_test_labels"],
            "matrices": scored["matrices"],
            "metric": exam.settings.model_eval.model_metric.name if exam.settings else "",
            "R": outcome["R"],
            "untrained": outcome["untrained"],
            "rounds": [vars(round_) for round_ in rounds],
            "dataset": request.testenv.dataset.name or "",
        },
    }


def _rounds(outcome: Mapping[str, Any], peak: int) -> list[RoundResult]:
    """What rounds cost: numbered ones in their order; all else, such as the last test, goes with the last of them.

    peak: most bytes of the process.
    """
    seconds, cpu = outcome["seconds"], outcome["cpu_seconds"]
    names = [name for name in seconds if name.isdigit()] or ["1"]
    first = max(0, len(names) - len(outcome["R"] or names))  # lifelong learning begins with a round 0, as we count
    groups = [names[:first], *([name] for name in names[first:])]
    groups[-1] = [*groups[-1], *(other for other in seconds if not other.isdigit())]
    found = []
    for index, group in enumerate(groups):
        walls, cpus = ([of.get(name, {}) for name in group] for of in (seconds, cpu))
        last = index == len(groups) - 1
        told = outcome["measures"] if last else {}
        found.append(
            RoundResult(
                index,
                group[0] if group else "",
                train_seconds=_sum(walls, "train"),
                eval_seconds=_sum(walls, ""),
                train_cpu_seconds=_sum(cpus, "train"),
                eval_cpu_seconds=_sum(cpus, ""),
                peak_memory_bytes=peak if last else None,
                measures={name: _total(value) for name, value in told.items() if name in _MEASURES},
            )
        )
    return found


def _total(value: SupportsFloat | list[SupportsFloat] | None) -> float:
    """Of a number, or of lists of them."""
    return math.fsum(map(_total, value)) if isinstance(value, list) else float(value or 0)


def _sum(phases: list[Mapping[str, float]], phase: str) -> float:
    """Of the training phase, or ("") of all others."""
    return math.fsum(v for one in phases for name, v in one.items() if (name == "train") == (phase == "train"))


class _Progress:
    """What a paradigm tells in words, as the supervisor shows it."""

    def __init__(self, report: Reporter) -> None:
        self._report, self._round = report, 0

    def __call__(self, text: str) -> None:
        self._round += text.startswith("round ")
        self._report({"round": max(1, self._round), "doing": text})


def _apart(task: Callable[[], object], report: Reporter) -> tuple[Any, int]:
    """What `task` returns in a fork of this process, by JSON, and the most bytes that it took.

    Raises its errors, and Interrupted if asked to stop.
    """
    if not hasattr(os, "fork"):
        raise PluginError("plugins under `contract: ianvs` run in a fork of this process: that needs Linux or macOS.")
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        live(lambda: _tell(task, writing))
    os.close(writing)
    said = bytearray()
    try:
        while True:
            if report.stop_requested():
                os.kill(pid, signal.SIGKILL)
                raise Interrupted
            if select.select([reading], [], [], 0.1)[0]:
                if not (piece := os.read(reading, 1 << 16)):
                    break
                said += piece
    finally:
        os.close(reading)
        _, status, used = os.wait4(pid, 0)
    if (code := os.waitstatus_to_exitcode(status)) != 0 or not said:
        raise Ended(code or 1)
    answer = json.loads(said)
    if "error" in answer:
        kind, message = answer["error"]
        raise PluginError(message) if kind == "PluginError" else RemoteError(kind, message)
    return answer["value"], 1024 * used.ru_maxrss


def _tell(task: Callable[[], object], writing: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the process that stores results hears the wish to stop
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    keep_freed_memory()
    try:
        said: dict[str, object] = {"value": task()}
    except Exception as error:
        traceback.print_exc()
        kind = "PluginError" if isinstance(error, PluginError) else type(error).__name__
        said = {"error": [kind, str(error)]}
    sys.stdout.flush()
    with os.fdopen(writing, "w") as pipe:
        json.dump(said, pipe)
