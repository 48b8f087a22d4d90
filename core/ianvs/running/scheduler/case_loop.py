"""The loop over cases: submits them, handles their events, enforces limits, and retries killed ones."""

import os
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.types import Failure, FailureKind, Status
from ianvs.config.spec import ResourcesSpec
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Engine, Event, Task
from ianvs.processes.process_end import signal_name
from ianvs.running.planning.case_request import (
    ANSWERED,
    RUN_CASE,
    TRAINED,
    UNANSWERED,
    UNWRITABLE,
    case_request,
    files_of,
)
from ianvs.running.planning.plan import Plan, PlannedCase
from ianvs.running.planning.source_snapshot import store_sources
from ianvs.running.scheduler.kill_reason import oom_kills, why_killed
from ianvs.running.scheduler.scorer import Scorer
from ianvs.running.scheduler.slots import Slot, Slots
from ianvs.store import QUEUE_SECONDS, JobStore, Study

_TICK = 0.5  # seconds between checks of limits without events
_SHORT_TICK = 0.05  # seconds, while something other than the engine has to be polled
MAX_LOSSES = 5  # of a case without a complete round in between


class Listener:
    """Receives the events of a run. This one ignores them; subclasses display some."""

    def planned(self, plan: Plan, to_do: int, damaged: Sequence[str] = (), scored: int = 0) -> None:
        """to_do: number of cases. scored: of these, those to be scored only."""

    def notified(self, message: str) -> None: ...
    def preparing(self, subject: str, fraction: float) -> None: ...
    def reading_progress(self, subject: str, message: str) -> None: ...
    def more(self, to_do: int, studies: Sequence[Study] = ()) -> None: ...
    def queued(self, case: PlannedCase, reason: str) -> None: ...
    def started(self, case: PlannedCase) -> None: ...
    def progressed(self, case: PlannedCase, payload: object) -> None: ...
    def ended(self, case: PlannedCase, status: Status, failure: Failure | None) -> None: ...
    def retried(self, case: PlannedCase, failure: Failure) -> None: ...
    def lost(self, case: PlannedCase, reason: str) -> None: ...
    def warned(self, case: PlannedCase, message: str) -> None: ...
    def stopping(self, running: int) -> None: ...


@dataclass
class _Running:
    planned: PlannedCase
    slot: Slot
    begun: bool = False
    scoring: bool = False  # its predictions are complete and are being scored
    result: object = None  # its return value
    unwritable: bool = False  # it reported that its results can't be stored
    lost: str = ""  # the reason, if its machine was lost
    clocks: dict[str, float] = field(default_factory=dict)  # start of the case and of its current round
    round: int = 0
    overrun: str = ""  # description of an exceeded limit
    cancelled_at: float = 0.0  # when it was asked to stop
    forced: bool = False


class CaseLoop:
    """Runs every case of the plan that is not finished. Finished cases are not kept in memory.

    slots: the slots by required resources, in the order of scheduling.
    scorer: None if cases are scored by the engine, too.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        slots: Mapping[ResourcesSpec | None, Slots],
        listener: Listener,
        provenance: Mapping[str, object],
        scorer: Scorer | None,
    ) -> None:
        self._engine, self._plan, self._slots, self._listener = engine, plan, slots, listener
        self._job, self._scorer, code = plan.job, scorer, store_sources(plan)
        self._sharing = next((slot.sharing for slot in slots.values() if slot.sharing is not None), None)
        self._request = partial(case_request, plan, provenance=provenance, code=code, apart=engine.isolates)
        # True until all are trained, if they are evaluated after that.
        self._trains_first = plan.job.sandboxed and plan.job.examine == "after all cases"
        self._trained: list[PlannedCase] = []  # trained cases that wait for the others
        self._running: dict[str, _Running] = {}
        self._again: dict[ResourcesSpec | None, deque[PlannedCase]] = {kind: deque() for kind in slots}
        self._attempts: Counter[str] = Counter()  # by case id
        self._losses: dict[str, tuple[int, int]] = {}  # by case id: (complete rounds, losses since)
        self._waiting: dict[str, str] = {}  # by case id: why the engine has not started it
        self._last_status: tuple[dict[str, str], float] = {}, 0.0  # last published status and its time
        self._alone: set[str] = set()  # ids of cases that need a GPU alone
        self.ran = self.failed = 0
        self.interrupted = False
        self._stopping = self._disk_told = False
        self._storage_error = ""  # why results can't be stored any more
        self._oom_kills = oom_kills() if plan.job.engine.name == "local" else None  # unknown for other machines

    def run(self) -> None:
        """Run until all cases have ended, or until a requested stop.

        Raises IanvsError if results can't be stored, since further cases would be lost, too.
        """
        fresh = {kind: iter(self._plan) for kind in self._slots}
        limited = self._job.limits.case_seconds is not None or self._job.limits.round_seconds is not None
        more = True
        while more:
            try:
                for kind, again in self._again.items():
                    others = (case for case in fresh[kind] if case.runs and case.algorithm.spec.resources == kind)
                    while not self._stopping and (planned := again.popleft() if again else next(others, None)):
                        if not self._start(planned, self._slots[kind]):
                            again.appendleft(planned)
                            break
                if self._trained and not (self._running or self._stopping or any(self._again.values())):
                    self._evaluate_all()
                more = bool(self._running) or (not self._stopping and any(self._again.values()))
                for event in self._events() if more else ():
                    self._handle_event(event)
                if self._waiting or self._last_status[0]:
                    self._note_waiting()
                if limited:
                    self._check_limits()
            except KeyboardInterrupt:
                self.interrupted = True
                self._stop()
        if self._last_status[0]:
            self._waiting.clear()
            self._note_waiting()
        if self._storage_error:
            raise IanvsError(self._storage_error, code="unwritable-file")

    def _evaluate_all(self) -> None:
        """Start the evaluation of all cases, after they were trained or have failed."""
        self._trains_first = False
        for planned in self._trained:
            self._again[planned.algorithm.spec.resources].append(planned)
        self._trained.clear()

    # --- one case -----------------------------------------------------------------------------------------------

    def _start(self, planned: PlannedCase, slots: Slots) -> bool:
        """Start a case, unless it has to wait. Returns whether it was started."""
        id_, wanted = planned.case.id, planned.algorithm.spec.resources
        if id_ in self._running:
            return False  # the same case under another name of its algorithm is running
        slot = slots.take(alone=id_ in self._alone, wanted=wanted)
        if slot is None:
            lacks = "" if wanted is None else slots.missing_resources(wanted)
            if lacks and id_ not in self._waiting:  # waits for resources, not only for its turn
                self._set_waiting(planned, lacks)
            return False
        running = self._running[id_] = _Running(planned, slot)
        self._attempts[id_] += 1
        if self._sharing is not None:
            self._sharing.started(slot.gpu, id_)
        self._submit(running, scores=planned.action == "score" and self._scorer is not None)
        return True

    def _submit(self, running: _Running, *, scores: bool) -> None:
        """Have a case run by the engine, or what it has answered scored by the scorer."""
        case, slot, planned = running.planned.case, running.slot, running.planned
        running.scoring, running.result = scores, None
        request, log = self._request(case=case, algorithm=planned.algorithm), self._plan.store.log(case.id)
        if scores and self._scorer is not None:
            running.clocks.clear()
            self._scorer.submit(request)
            return
        shown = slot.gpu is not None or slot.hidden or self._job.device == "cpu"
        if self._trains_first:
            request = replace(request, phases=("train",))
        environment, wanted = slot.environment if shown else {}, planned.algorithm.spec.resources
        files = files_of(request) if self._engine.elsewhere else None
        self._engine.submit(Task(case.id, RUN_CASE, request, log, environment, files, request.secrets, wanted))

    def _continues(self, running: _Running, code: int) -> bool:
        """Return whether a case that ended with `code` continues, for example with scoring."""
        if code != 0 or self._stopping or self._scorer is None:
            return False
        if running.result not in (ANSWERED, UNANSWERED):
            return False
        self._submit(running, scores=running.result == ANSWERED)
        return True

    def _events(self) -> list[Event]:
        if self._scorer is None or not self._scorer.started:
            return self._engine.events(_TICK)
        return self._scorer.events(self._engine.events(_SHORT_TICK if self._scorer.needs_polling else _TICK))

    def _handle_event(self, event: Event) -> None:
        running = self._running.get(event.key)
        if running is None:
            return
        if event.kind == "queued":
            self._set_waiting(running.planned, str(event.payload))
        elif event.kind == "started":
            self._waiting.pop(event.key, None)
            if not running.begun:  # an engine may start a case twice
                self._listener.started(running.planned)
            running.begun = True
            if running.scoring:
                running.clocks["case"] = time.monotonic()
        elif event.kind == "progress":
            if isinstance(event.payload, dict):
                self._handle_report(running, event.payload)
            self._listener.progressed(running.planned, event.payload)
        elif event.kind == "result":
            running.result = event.payload
        elif event.kind == "lost":
            running.lost = str(event.payload)
        elif event.kind == "ended" and not self._continues(running, event.payload):
            del self._running[event.key]
            self._waiting.pop(event.key, None)
            self._slots[running.planned.algorithm.spec.resources].give(running.slot)
            if self._sharing is not None:
                self._sharing.ended(running.slot.gpu, event.key)
            if running.result == TRAINED and event.payload == 0:
                self._attempts.pop(event.key, None)
                self._trained.append(running.planned)
                self._listener.queued(running.planned, "trained; it is evaluated when all cases are trained")
            else:
                self._end(running, event.payload)

    def _set_waiting(self, planned: PlannedCase, reason: str) -> None:
        self._waiting[planned.case.id] = reason
        self._listener.queued(planned, reason)

    def _note_waiting(self) -> None:
        """Publish waiting cases repeatedly, since an old status belongs to a killed run."""
        before, at = self._last_status
        if self._waiting != before or time.monotonic() - at >= QUEUE_SECONDS / 4:
            self._last_status = dict(self._waiting), time.monotonic()
            JobStore(self._plan.store.workspace, self._job.name).note_queue(self._waiting)

    def _handle_report(self, running: _Running, report: dict[str, Any]) -> None:
        """Handle what a case reports. Its clock starts when it is ready, and that of a round when it begins."""
        now = time.monotonic()
        running.clocks.setdefault("case", now)
        if report.get("round", 0) != running.round:
            peak = report.get("peak_gpu_bytes") if running.round else None
            if self._sharing is not None:
                self._sharing.round_began(running.slot.gpu, running.planned.case.id, now, peak)
            running.round = report["round"]
            running.clocks["round"] = now
        running.unwritable |= report == UNWRITABLE
        if "warning" in report:
            self._listener.warned(running.planned, report["warning"])
        if "disk" in report and not self._disk_told:
            self._disk_told = True
            self._listener.notified(report["disk"])

    def _end(self, running: _Running, code: int) -> None:
        planned, store = running.planned, self._plan.store
        status = store.status(planned.case.id)
        failure: Failure | None = store.failure(planned.case.id) if status == "failed" else None
        until = planned.algorithm.until if status == "unfinished" and code == 0 else None
        paused = until is not None and store.is_complete_until(planned.case.id, until)
        if status == "finished" or paused:
            pass
        elif running.overrun:
            failure = self._failure(planned, "timeout", "TimeLimit", running.overrun)
        elif running.lost and not self._stopping:
            if self._resubmit_lost(planned, running.lost):
                return
            reason = f"{running.lost}; it was lost {MAX_LOSSES} times without completing a round"
            failure = self._failure(planned, "lost", "Lost", reason)
        elif code == EXIT_INTERRUPTED or (self._stopping and (code < 0 or running.result == ANSWERED)):
            self._listener.ended(planned, "unfinished", None)
            return
        elif failure is None:
            failure = self._early_failure(running, code)
        store.remove_partial_files(planned.case.id)
        if failure is not None and self._is_retried(running, failure):
            return
        self._attempts.pop(planned.case.id, None)
        self._losses.pop(planned.case.id, None)
        self._alone.discard(planned.case.id)
        self.ran += 1
        if failure is None:
            self._listener.ended(planned, "unfinished" if paused else "finished", None)
            return
        self.failed += 1
        self._listener.ended(planned, "failed", failure)
        if running.unwritable:
            self._storage_error = (
                f"the run has stopped: {shown_path(self._job.workspace)} can't be written, or its disk is full. "
                "What is complete is stored. Make room, or choose another folder with --workspace, and run it again."
            )
        if (self._job.fail_fast or self._storage_error) and not self._stopping:
            self._stop()

    def _resubmit_lost(self, planned: PlannedCase, reason: str) -> bool:
        """Submit a lost case again without counting a retry, unless it makes no progress."""
        id_, store = planned.case.id, self._plan.store
        done = len(store.trained_rounds(id_)) + len(store.complete_rounds(id_))
        before, times = self._losses.get(id_, (-1, 0))
        self._losses[id_] = done, times + 1 if done == before else 1
        self._attempts[id_] -= 1
        if self._losses[id_][1] >= MAX_LOSSES:
            return False
        store.remove_partial_files(id_)
        self._again[planned.algorithm.spec.resources].appendleft(planned)
        self._listener.lost(planned, reason)
        return True

    def _is_retried(self, running: _Running, failure: Failure) -> bool:
        """Return whether to run a killed case again, or one that ran out of memory on a shared GPU, then alone."""
        planned = running.planned
        crowded = failure.kind == "memory" and running.slot.gpu is not None and not running.slot.alone
        killed = failure.kind == "killed" and self._attempts[planned.case.id] <= self._job.retries
        if self._stopping or not (killed or crowded):
            return False
        if crowded:
            self._alone.add(planned.case.id)
            if self._sharing is not None:
                self._sharing.out_of_memory(running.slot.gpu)
        self._again[planned.algorithm.spec.resources].appendleft(planned)
        self._listener.retried(planned, failure)
        return True

    def _early_failure(self, running: _Running, code: int) -> Failure:
        planned = running.planned
        if running.unwritable:
            reason = "its results can't be stored: the disk is full, or the workspace can't be written"
            return self._failure(planned, "exception", "OSError", reason)
        metrics = [f"{spec.name} ({spec.url.name})" for spec, _ in planned.algorithm.scores if spec.url is not None]
        after = f"; metrics of the exam's own: {', '.join(metrics)}" if metrics else ""
        after = f"{after}; what the case has answered is stored" if running.scoring else ""
        if code < 0:
            why = why_killed(-code, "a metric" if running.scoring else "the plugin", self._oom_kills)
            return self._failure(planned, "killed", signal_name(-code), why + after)
        reason = f"the process of {'its scores' if running.scoring else 'the case'} ended by itself{after}"
        return self._failure(planned, "exception", f"exit status {code}", reason)

    def _failure(self, planned: PlannedCase, kind: FailureKind, error: str, message: str) -> Failure:
        """Create a failure, and store it if possible."""
        store = self._plan.store
        log = Path(os.path.relpath(store.log(planned.case.id), store.workspace))
        failure = Failure(kind, error, message, log)
        try:
            store.fail(planned.case.id, failure)
        except OSError:
            return Failure(kind, error, f"{message} (this could not be stored either)", log)
        return failure

    # --- limits and interruptions -------------------------------------------------------------------------------

    def _check_limits(self) -> None:
        limits, now = self._job.limits, time.monotonic()
        for key, running in self._running.items():
            if running.overrun:
                if not running.forced and now - running.cancelled_at > limits.grace_seconds:
                    running.forced = True
                    self._cancel(key, running, force=True)
                continue
            for name, limit in (("round", limits.round_seconds), ("case", limits.case_seconds)):
                if limit is not None and now - running.clocks.get(name, now) > limit:
                    subject = "scoring the case" if running.scoring else "the case"
                    subject = f"round {running.round}" if name == "round" else subject
                    running.overrun = f"{subject} took longer than limits.{name}_seconds: {limit:g}"
            if running.overrun:
                running.cancelled_at = now
                self._cancel(key, running)

    def _cancel(self, key: str, running: _Running, *, force: bool = False) -> None:
        if running.scoring and self._scorer is not None:
            self._scorer.cancel(key, force=force)
        else:
            self._engine.cancel(key, force=force)

    def _stop(self) -> None:
        """Stop the run. The first call (Ctrl-C) lets running cases finish their round, the second kills them."""
        for key, running in self._running.items():
            self._cancel(key, running, force=self._stopping)
        if self._running:
            self._listener.stopping(0 if self._stopping else len(self._running))
        self._stopping = True
