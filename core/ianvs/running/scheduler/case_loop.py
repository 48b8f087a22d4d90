"""The loop over cases: submits them, follows them, ends those that overrun, tries killed ones again."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.types import Failure, FailureKind, Status
from ianvs.config.spec import JobSpec, LimitsSpec, ResourcesSpec
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Engine, Event, Files, Task
from ianvs.running.planning.case_request import ANSWERED, RUN_CASE, TRAINED, UNANSWERED, UNWRITABLE, CaseRequest
from ianvs.running.planning.plan import Plan, PlannedCase
from ianvs.running.scheduler.killed import oom_kills, signal_name, why_killed
from ianvs.running.scheduler.scorer import Scorer
from ianvs.running.scheduler.slots import Sharing, Slot, Slots
from ianvs.store import QUEUE_SECONDS, CaseStore, CodeStore, ExamStore, JobStore, Study

_TICK = 0.5  # seconds between looks at the clock while nothing happens
_SHORT_TICK = 0.05  # seconds, while something may happen of which the engine tells nothing
MOST_LOSSES = 5  # of a case, without a complete round between them


class Listener:
    """Is told what happens. This one shows nothing; others show some of it."""

    def planned(self, plan: Plan, to_do: int, damaged: Sequence[str] = ()) -> None: ...
    def noticed(self, message: str) -> None: ...
    def preparing(self, subject: str, fraction: float) -> None: ...
    def said_of(self, subject: str, message: str) -> None: ...
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
    scoring: bool = False  # its answers are complete; the scorer has it
    result: object = None  # what it has returned
    unwritable: bool = False  # it has said that its results can't be stored
    lost: str = ""  # why, where it was its machine that ended
    clocks: dict[str, float] = field(default_factory=dict)  # when the case, and its present round, began
    round: int = 0
    overrun: str = ""  # which limit, in words
    cancelled_at: float = 0.0  # when it was asked to stop
    forced: bool = False


class CaseLoop:
    """Runs every case of the plan that has something to do. Nothing of a finished case is kept in memory.

    slots: the places of those whose algorithms ask for the same resources, in the order in which they may choose.
    request: makes what a process needs to know of a case. scorer: None where cases are scored by the engine, too.
    trains_first: train all cases before one of them is evaluated.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        slots: Mapping[ResourcesSpec | None, Slots],
        listener: Listener,
        request: Callable[[PlannedCase], CaseRequest],
        scorer: Scorer | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        trains_first: bool = False,
    ) -> None:
        self._engine, self._plan, self._slots, self._listener = engine, plan, slots, listener
        sharing = (slot.sharing for slot in slots.values() if slot.sharing is not None)
        self._sharing = next(sharing, Sharing(engine.gpus, {}))  # the latter nobody asks
        self._request, self._scorer, self._clock = request, scorer, clock
        self._trains_first = trains_first  # until all are trained
        self._trained: list[PlannedCase] = []  # that wait until all others are
        self._running: dict[str, _Running] = {}
        self._again: dict[ResourcesSpec | None, deque[PlannedCase]] = {kind: deque() for kind in slots}
        self._attempts: Counter[str] = Counter()  # by id of the case
        self._losses: dict[str, tuple[int, int]] = {}  # by id: rounds that were complete, how often it was lost since
        self._waiting: dict[str, str] = {}  # by id: why the engine has not begun it
        self._noted: tuple[object, float] = None, 0.0  # what of that other processes were told, and when
        self._alone: set[str] = set()  # ids of cases that take a card for themselves
        self.ran = self.failed = 0
        self.interrupted = False
        self._stopping = self._disk_told = False
        self._unstorable = ""  # why nothing more can be stored
        self._oom_kills = oom_kills() if plan.job.engine.name == "local" else None  # of a node nothing is known here

    @property
    def _job(self) -> JobSpec:
        return self._plan.job

    def go(self) -> None:
        """Until everything is done, or was told to stop and has ended.

        Raises IanvsError when results can't be stored: whatever would run after that would be lost, too.
        """
        fresh = {kind: (case for case in self._plan.taking(kind) if case.runs) for kind in self._slots}
        more = True
        while more:
            try:
                for kind, again in self._again.items():
                    while not self._stopping and (planned := again.popleft() if again else next(fresh[kind], None)):
                        if (slot := self._place(planned, kind)) is None:
                            again.appendleft(planned)
                            break
                        self._submit(planned, slot)
                if self._trained and not (self._running or self._stopping or any(self._again.values())):
                    self._evaluate_all()
                more = bool(self._running) or (not self._stopping and any(self._again.values()))
                for event in self._events() if more else ():
                    self._follow(event)
                self._note_waiting()
                self._check_limits()
            except KeyboardInterrupt:
                self.interrupted = True
                self._stop()
        self._waiting.clear()
        self._note_waiting()
        if self._unstorable:
            raise IanvsError(self._unstorable, code="unwritable-file")

    def _evaluate_all(self) -> None:
        """All cases are trained, or have failed: from now on they are evaluated."""
        self._trains_first = False
        for planned in self._trained:
            self._again[planned.algorithm.spec.resources].append(planned)
        self._trained.clear()

    # --- one case -----------------------------------------------------------------------------------------------

    def _place(self, planned: PlannedCase, kind: ResourcesSpec | None) -> Slot | None:
        """Where it may run now; None while it has to wait."""
        if planned.case.id in self._running:
            return None  # the same case under another name of its algorithm: it will find itself done
        slot = self._slots[kind].take(alone=planned.case.id in self._alone, wanted=kind)
        lacks = "" if slot is not None or kind is None else self._slots[kind].lacks(kind)
        if lacks and planned.case.id not in self._waiting:  # something which others need less of
            self._waits(planned, lacks)
        return slot

    def _submit(self, planned: PlannedCase, slot: Slot) -> None:
        running = self._running[planned.case.id] = _Running(planned, slot)
        self._attempts[planned.case.id] += 1
        self._sharing.started(slot.gpu, planned.case.id)
        if planned.action == "score" and self._scorer is not None:
            self._score(running, self._scorer)
        else:
            self._run(running)

    def _run(self, running: _Running) -> None:
        case, slot, planned = running.planned.case, running.slot, running.planned
        running.scoring, running.result = False, None
        shown = slot.gpu is not None or slot.hidden or self._job.device == "cpu"
        request, log = self._request(planned), self._plan.store.log(case.id)
        if self._trains_first:
            request = replace(request, phases=("train",))
        environment, wanted = slot.environment if shown else {}, planned.algorithm.spec.resources
        files = _files_of(request)
        self._engine.submit(Task(case.id, RUN_CASE, request, log, environment, files, request.secrets, wanted))

    def _score(self, running: _Running, scorer: Scorer) -> None:
        running.scoring, running.result = True, None
        running.clocks.clear()
        scorer.submit(self._request(running.planned))

    def _goes_on(self, running: _Running, code: int) -> bool:
        """Whether the case is not over, which has ended with `code`: who has answered is scored."""
        if code != 0 or self._stopping or self._scorer is None:
            return False
        if running.result == ANSWERED:
            self._score(running, self._scorer)
        elif running.result == UNANSWERED:
            self._run(running)
        else:
            return False
        return True

    def _events(self) -> list[Event]:
        if self._scorer is None:
            return self._engine.events(_TICK)
        return self._scorer.events(self._engine.events(_SHORT_TICK if self._scorer.must_be_asked else _TICK))

    def _follow(self, event: Event) -> None:
        running = self._running.get(event.key)
        if running is None:
            return
        if event.kind == "queued":
            self._waits(running.planned, str(event.payload))
        elif event.kind == "started":
            self._waiting.pop(event.key, None)
            if not running.begun:  # an engine may have to start it twice
                self._listener.started(running.planned)
            running.begun = True
            if running.scoring:
                running.clocks["case"] = self._clock()
        elif event.kind == "progress":
            self._note(running, event.payload)
            running.unwritable |= event.payload == UNWRITABLE
            if isinstance(event.payload, dict) and "warning" in event.payload:
                self._listener.warned(running.planned, event.payload["warning"])
            if isinstance(event.payload, dict) and "disk" in event.payload and not self._disk_told:
                self._disk_told = True
                self._listener.noticed(event.payload["disk"])
            self._listener.progressed(running.planned, event.payload)
        elif event.kind == "result":
            running.result = event.payload
        elif event.kind == "lost":
            running.lost = str(event.payload)
        elif event.kind == "ended" and not self._goes_on(running, event.payload):
            del self._running[event.key]
            self._waiting.pop(event.key, None)
            self._slots[running.planned.algorithm.spec.resources].give(running.slot)
            self._sharing.ended(running.slot.gpu, event.key)
            if running.result == TRAINED and event.payload == 0:
                self._attempts.pop(event.key, None)
                self._trained.append(running.planned)
                self._listener.queued(running.planned, "trained; it is evaluated when all cases are trained")
            else:
                self._end(running, event.payload)

    def _waits(self, planned: PlannedCase, reason: str) -> None:
        self._waiting[planned.case.id] = reason
        self._listener.queued(planned, reason)

    def _note_waiting(self) -> None:
        """Tell other processes what waits, again and again: a note that is old is of a run that was killed."""
        before, at = self._noted
        if self._waiting != before or (before and self._clock() - at >= QUEUE_SECONDS / 4):
            self._noted = dict(self._waiting), self._clock()
            JobStore(self._plan.store.workspace, self._job.name).note_queue(self._waiting)

    def _note(self, running: _Running, payload: object) -> None:
        """Start the clocks: the case's when it says that it is ready, a round's when it says that it begins."""
        if not isinstance(payload, dict):
            return
        now = self._clock()
        running.clocks.setdefault("case", now)
        if payload.get("round", 0) != running.round:
            peak = payload.get("peak_gpu_bytes") if running.round else None
            self._sharing.round_began(running.slot.gpu, running.planned.case.id, now, peak)
            running.round = payload["round"]
            running.clocks["round"] = now

    def _end(self, running: _Running, code: int) -> None:
        planned, store = running.planned, self._plan.store
        status = store.status(planned.case.id)
        failure: Failure | None = store.failure(planned.case.id) if status == "failed" else None
        until = planned.algorithm.until if status == "unfinished" and code == 0 else None
        paused = until is not None and store.has_come_to(planned.case.id, until)
        if status == "finished" or paused:
            pass
        elif running.overrun:
            failure = self._failure(planned, "timeout", "TimeLimit", running.overrun)
        elif running.lost and not self._stopping:
            if self._goes_on_elsewhere(planned, running.lost):
                return
            reason = f"{running.lost}; it was lost {MOST_LOSSES} times without completing a round"
            failure = self._failure(planned, "lost", "Lost", reason)
        elif code == EXIT_INTERRUPTED or (self._stopping and (code < 0 or running.result == ANSWERED)):
            self._listener.ended(planned, "unfinished", None)
            return
        elif failure is None:
            failure = self._ended_early(running, code)
        store.remove_partial_files(planned.case.id)
        if failure is not None and self._worth_another_try(running, failure):
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
            self._unstorable = (
                f"the run has stopped: {shown_path(self._job.workspace)} can't be written, or its disk is full. "
                "What is complete is stored. Make room, or choose another folder with --workspace, and run it again."
            )
        if (self._job.fail_fast or self._unstorable) and not self._stopping:
            self._stop()

    def _goes_on_elsewhere(self, planned: PlannedCase, reason: str) -> bool:
        """Submit again what was lost, which costs no retry, unless it never comes further than it was before."""
        id_, store = planned.case.id, self._plan.store
        done = len(store.trained_rounds(id_)) + len(store.complete_rounds(id_))
        before, times = self._losses.get(id_, (-1, 0))
        self._losses[id_] = done, times + 1 if done == before else 1
        self._attempts[id_] -= 1
        if self._losses[id_][1] >= MOST_LOSSES:
            return False
        self._plan.store.remove_partial_files(id_)
        self._again[planned.algorithm.spec.resources].appendleft(planned)
        self._listener.lost(planned, reason)
        return True

    def _worth_another_try(self, running: _Running, failure: Failure) -> bool:
        """One more try for what was killed or lost, and alone on its card for what found it too small to share."""
        planned = running.planned
        crowded = failure.kind == "memory" and running.slot.gpu is not None and not running.slot.alone
        killed = failure.kind == "killed" and self._attempts[planned.case.id] <= self._job.retries
        if self._stopping or not (killed or crowded):
            return False
        if crowded:
            self._alone.add(planned.case.id)
            self._sharing.crowded(running.slot.gpu)
        self._again[planned.algorithm.spec.resources].appendleft(planned)
        self._listener.retried(planned, failure)
        return True

    def _ended_early(self, running: _Running, code: int) -> Failure:
        planned = running.planned
        if running.unwritable:
            reason = "its results can't be stored: the disk is full, or the workspace can't be written"
            return self._failure(planned, "exception", "OSError", reason)
        after = "; what the case has answered is stored" if running.scoring else ""
        if code < 0:
            return self._failure(planned, "killed", signal_name(code), self._why_killed(running, -code) + after)
        reason = f"the process of {'its scores' if running.scoring else 'the case'} ended by itself{after}"
        return self._failure(planned, "exception", f"exit status {code}", reason)

    def _why_killed(self, running: _Running, number: int) -> str:
        return why_killed(number, "a metric" if running.scoring else "the plugin", self._oom_kills)

    def _failure(self, planned: PlannedCase, kind: FailureKind, error: str, message: str) -> Failure:
        """The failure, stored if the disk takes it: what can't be stored is at least shown."""
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
        limits, now = self._job.limits, self._clock()
        for key, running in self._running.items():
            if not running.overrun and (overrun := _overrun(limits, running, now)):
                running.overrun, running.cancelled_at = overrun, now
                self._cancel(key, running)
            elif running.overrun and not running.forced and now - running.cancelled_at > limits.grace_seconds:
                running.forced = True
                self._cancel(key, running, force=True)

    def _cancel(self, key: str, running: _Running, *, force: bool = False) -> None:
        if running.scoring and self._scorer is not None:
            self._scorer.cancel(key, force=force)
        else:
            self._engine.cancel(key, force=force)

    def _stop(self) -> None:
        """The first time, as by Ctrl-C, lets running cases end their round; the second ends them now."""
        for key, running in self._running.items():
            self._cancel(key, running, force=self._stopping)
        if self._running:
            self._listener.stopping(0 if self._stopping else len(self._running))
        self._stopping = True


def _files_of(request: CaseRequest) -> Files:
    """What running, resuming or scoring the case reads and leaves in its workspace."""
    workspace, case = request.workspace, request.case.id
    store = CaseStore(workspace)
    return Files(
        root=workspace,
        reads=(
            ExamStore(workspace).folder(request.exam_id),
            *(CodeStore(workspace).folder(snapshot.key) for snapshot in request.code),
        ),
        writes=(store.folder(case),),
        notes=(store.root / ".names",),
        lock=Path(store.lock(case).lock_file),
    )


def _overrun(limits: LimitsSpec, running: _Running, now: float) -> str:
    """Which limit the case is over, in words; "" for none."""
    for name, limit in (("case", limits.case_seconds), ("round", limits.round_seconds)):
        began = running.clocks.get(name)
        if limit is not None and began is not None and now - began > limit:
            subject = (
                f"round {running.round}" if name == "round" else "scoring the case" if running.scoring else "the case"
            )
            return f"{subject} took longer than limits.{name}_seconds: {limit:g}"
    return ""
