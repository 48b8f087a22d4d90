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
from typing import Any

from ianvs.config.models.kubeedge import KUBEEDGE_FORMULAS
from ianvs.config.spec import ModelEval, TestEnvSpec
from ianvs.engines.engine import Reporter
from ianvs.engines.forked import PARENT_DEATH_SIGNAL, live, prctl
from ianvs.errors import IanvsError, PluginError
from ianvs.kubeedge.run import run
from ianvs.kubeedge.scores import score
from ianvs.kubeedge.storing import read_outcome
from ianvs.kubeedge.work import Metric, Module, Work
from ianvs.planning.case_request import CaseRequest
from ianvs.planning.cases import own_hyperparameters
from ianvs.sealing.peer import RemoteError
from ianvs.session.remote import Ended
from ianvs.session.rounds import Interrupted
from ianvs.store import CaseStore
from ianvs.types import Measure, RoundResult, Sealing

__all__ = ["run_handed"]

_MEASURES = {
    "uploaded_bytes": Measure("Bytes that clients sent to the server, over all rounds and clients."),
    "downloaded_bytes": Measure("Bytes that the server sent to clients, over all rounds and clients."),
    "edge_share": Measure("Share of samples that the edge model answered.", "last", higher_is_better=True),
}
"""What Ianvs's paradigms measure that becomes a column, as far as they do."""


def run_handed(request: CaseRequest, store: CaseStore, report: Reporter) -> dict[str, object]:
    """Run what has not run, score it anew, and say what belongs into the result."""
    work = _work(request, store)
    report({"round": 0, "doing": "start"})
    _, peak = _apart(lambda: run(work, _Progress(report)), report)
    outcome = read_outcome(work.folder)
    if outcome is None:
        raise PluginError("the plugin's process has ended without a result.")
    asked = [spec for spec, _ in request.scores if spec.name not in KUBEEDGE_FORMULAS]  # they come with the others
    wanted = [Metric(spec.name, str(spec.url) if spec.url else None) for spec in asked]
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
            "R": outcome["R"],
            "untrained": outcome["untrained"],
            "rounds": [vars(round_) for round_ in rounds],
            "dataset": request.testenv.dataset.name or "",
        },
    }


def _work(request: CaseRequest, store: CaseStore) -> Work:
    algorithm, exam = request.algorithm, request.testenv
    settings, kinds = algorithm.settings, [module.type for module in algorithm.modules]
    if settings is None or exam.settings is None:
        raise IanvsError(f"{algorithm.name} is not under `contract: ianvs`")
    chosen = request.case.hyperparameters
    data_setting = settings.data_setting(algorithm.paradigm.name)
    return Work(
        paradigm=algorithm.paradigm.name,
        folder=str(store.files(request.case.id)),
        modules=tuple(
            Module(module.type, module.name, module.url, own_hyperparameters(chosen, module.type, kinds))
            for module in algorithm.modules
        ),
        train=_first(exam, "train"),
        test=_first(exam, "test"),
        label=exam.dataset.label,
        initial_model_url=settings.initial_model_url,
        data_setting={} if data_setting is None else _plain(data_setting),
        testenv={**_plain(exam.settings), "model_eval": _model_eval(exam.settings.model_eval)},
        mode=settings.mode or None,
        quantization_type=settings.quantization_type or None,
        llama_quantize_path=settings.llama_quantize_path or None,
        cwd=None if request.working_directory is None else str(request.working_directory),
        sys_path=() if request.working_directory is None else (str(request.working_directory),),
        packages=tuple((package.name, str(package.url or "")) for package in settings.third_party_packages),
        seed=request.case.seed,
    )


def _first(exam: TestEnvSpec, part: str) -> str | None:
    sources = getattr(exam.dataset, part)
    return str(sources[0].path) if sources else None


def _plain(settings: Any) -> dict[str, Any]:
    """A mapping of the settings, as Ianvs's files have it."""
    names = (each.name for each in dataclasses.fields(settings) if each.name not in ("place", "places"))
    return {name: getattr(settings, name) for name in names}


def _model_eval(told: ModelEval) -> dict[str, Any]:
    metric = told.model_metric
    url = "" if metric.url is None else str(metric.url)
    named = {"name": metric.name, "url": url, "mode": metric.mode}
    return {"model_metric": named, "threshold": told.threshold, "operator": told.operator}


def _rounds(outcome: Mapping[str, Any], peak: int) -> list[RoundResult]:
    """What rounds cost: numbered ones in their order; all else, such as the last test, goes with the last of them.

    peak: most bytes of the process.
    """
    seconds, cpu = outcome["seconds"], outcome["cpu_seconds"]
    names = [name for name in seconds if name.isdigit()] or ["1"]
    found = [RoundResult(0, "")]
    for index, name in enumerate(names, 1):
        taken = [name] if index < len(names) else [name, *(other for other in seconds if not other.isdigit())]
        spent = [of.get(one, {}) for of in (seconds, cpu) for one in taken]
        half = len(taken)
        told = outcome["measures"] if index == len(names) else {}
        found.append(
            RoundResult(
                index,
                name,
                train_seconds=_sum(spent[:half], "train"),
                eval_seconds=_sum(spent[:half], ""),
                train_cpu_seconds=_sum(spent[half:], "train"),
                eval_cpu_seconds=_sum(spent[half:], ""),
                peak_memory_bytes=peak if index == len(names) else None,
                measures={name: _total(value) for name, value in told.items() if name in _MEASURES},
            )
        )
    return found


def _total(value: Any) -> float:
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
    try:
        said: dict[str, object] = {"value": task()}
    except Exception as error:
        traceback.print_exc()
        kind = "PluginError" if isinstance(error, PluginError) else type(error).__name__
        said = {"error": [kind, str(error)]}
    sys.stdout.flush()
    with os.fdopen(writing, "w") as pipe:
        json.dump(said, pipe)
