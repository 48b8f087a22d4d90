"""Shows the progress of a job: a live display in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.base.errors import counted_cases, one_line
from ianvs.base.secrets import without_secrets
from ianvs.base.types import REPEAT_ROLE, Failure, Status
from ianvs.base.visible_text import visible
from ianvs.exam.metrics.registry import metric_header
from ianvs.results.report.trials import drawn_text
from ianvs.results.report.values import differing_settings, method_name
from ianvs.running.planning.cases import PlannedAlgorithm, grid_axes
from ianvs.running.planning.plan import Plan, PlannedCase
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.studies import search_space
from ianvs.running.scheduler.case_loop import Listener
from ianvs.store import Study

if TYPE_CHECKING:
    from rich.progress import TaskID

_MINUTE = 60.0  # seconds between two lines about the same case


def default_listener(job: str = "") -> Listener:
    """Return lines for a notebook, where a long run would otherwise show nothing; nothing for a script."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return PlainProgress(sys.stdout, job) if hasattr(shell, "kernel") else Listener()


def describe(planned: PlannedCase) -> str:
    """Return a case in a few words: algorithm, what varies, seed."""
    varied = _varied(planned.algorithm)
    shown = without_secrets(planned.case.hyperparameters)
    choice = ", ".join(f"{name}={value}" for name, value in shown.items() if name in varied)
    again = " again" if planned.case.role == REPEAT_ROLE else ""
    name = method_name(planned.case.algorithm, planned.case.testenv, choice)
    return f"{name}, seed {planned.case.seed}{again}"


def waiting_text(reason: str) -> str:
    """Return the text for a waiting case, with the engine's reason."""
    return f"waits in the queue ({reason})"


def round_progress_text(progress: Mapping[str, object]) -> str:
    """Return the progress of a round and numbers of its learner, as a suffix: ", 35 %, loss 1.23"; or ""."""
    numbers = progress.get("numbers")
    parts = [f"{float(progress['fraction']):.0%}"] if "fraction" in progress else []  # type: ignore[arg-type]
    parts += (
        [f"{name.replace('_', ' ')} {value:.4g}" for name, value in numbers.items()]
        if isinstance(numbers, dict)
        else []
    )
    return "".join(f", {part}" for part in parts)


def _varied(algorithm: PlannedAlgorithm) -> set[str]:
    """Return hyperparameters that distinguish the algorithm's cases."""
    if algorithm.trial is not None:
        return set(search_space(algorithm.spec.modules))
    if algorithm.choices is None:
        return {name for name, values in grid_axes(algorithm.spec.modules) if len(values) > 1}
    return differing_settings(algorithm.choices)


class _Progress(Listener, AbstractContextManager["_Progress"]):
    """Messages common to the live display and to lines.

    _job: argument of `ianvs logs` for the job.
    """

    _job: str
    _to_do: int = 0
    _start: float

    def _show(self, line: str, colour: str = "") -> None:
        """Show a line. colour: "yellow" for a warning, "red" for a failure, "" for lines that `quiet` drops."""
        raise NotImplementedError

    def _ending(self, case: PlannedCase, status: Status, failure: Failure | None) -> str:
        until = case.algorithm.until
        ending: str = status if status == "finished" or until is None else f"paused after round {until}"
        if status == "finished" and case.action == "score":
            ending = "scored"
        if failure is not None:
            first_line = failure.message.splitlines()[0] if failure.message else ""
            more = f"`ianvs logs {case.case.id[:8]} {self._job}` shows more" if self._job else f"log: {failure.log}"
            ending = f"{status}, {failure.error}: {first_line} ({more})"
        return f"{describe(case)}: {ending}"

    def planned(self, plan: Plan, to_do: int, damaged: Sequence[str] = (), scored: int = 0) -> None:
        self._to_do, self._start = to_do, time.monotonic()
        for warning in plan.job.warnings:
            self._show(f"warning: {warning}", "yellow")
        if damaged:
            self._show(f"warning: {one_line(damaged, 5)} {CHANGED_MESSAGE}; made again", "yellow")
        total, name = len(plan), plan.job.name
        if plan.searches:
            listed = one_line(
                [f"{study.any_base.spec.name} ({study.left} trials)" for study in plan.studies if study.left]
            )
            going_on = f" for {listed}" if listed else ""
            self._show(f"{name}: a search{going_on}, and {to_do} of {total} other cases to do")
            return
        if not to_do:
            already = "the only case is" if total == 1 else f"all {total} cases are"
            self._show(f"{name}: {already} finished already")
            return
        reused = f", {total - to_do} finished already" if to_do < total else ""
        if scored == to_do:
            self._show(f"{name}: {counted_cases(scored)} to score from what is stored; nothing is trained")
            return
        alone = f"; {counted_cases(scored)} of these only to score" if scored else ""
        references = references_text(plan) if plan.references.algorithms else ""
        self._show(f"{name}: {to_do} of {counted_cases(total)} to do{reused}{alone}{references}")

    def notified(self, message: str) -> None:
        self._show(message)

    def more(self, to_do: int, studies: Sequence[Study] = ()) -> None:
        self._to_do += to_do
        for study in studies:
            self._show(_study_progress(study))

    def retried(self, case: PlannedCase, failure: Failure) -> None:
        self._show(f"{describe(case)}: {failure.error}, tried again", "yellow")

    def lost(self, case: PlannedCase, reason: str) -> None:
        self._show(f"{describe(case)}: {reason}; it goes on elsewhere", "yellow")

    def warned(self, case: PlannedCase, message: str) -> None:
        self._show(f"{describe(case)}: {message}", "yellow")

    def stopping(self, running: int) -> None:
        plural = "s" if running > 1 else ""
        later = f"stopping: {running} running case{plural} will end after this round; Ctrl-C again ends them now"
        self._show(later if running else "ending the running cases now", "yellow")


class DataProgress(Listener):
    """Shows only messages on the preparation of data."""

    def reading_progress(self, subject: str, message: str) -> None:
        print(f"preparing {subject}: {message}", file=sys.stderr, flush=True)


class PlainProgress(_Progress):
    """A line for each case that ends, with the number of remaining ones and an estimate of the remaining time.

    quiet: only warnings and failures. verbose: each start of a case and each of its rounds.
    """

    def __init__(self, stream: TextIO = sys.stderr, job: str = "", quiet: bool = False, verbose: bool = False) -> None:
        self._job, self._stream, self._quiet, self._verbose = job, stream, quiet, verbose
        self._rounds: dict[str, tuple[object, object]] = {}
        self._reported_at: dict[str, float] = {}  # time of the last line about a case, due or printed
        self._reasons: set[str] = set()  # reasons of waiting cases
        self._done = 0

    def __exit__(self, *_: object) -> None: ...

    def preparing(self, subject: str, fraction: float) -> None:
        if fraction == 0.0:
            self._show(f"preparing {subject}")

    def reading_progress(self, subject: str, message: str) -> None:
        self._show(f"preparing {subject}: {message}")

    def queued(self, case: PlannedCase, reason: str) -> None:
        if self._verbose or reason not in self._reasons:  # the first of many that wait for the same reason
            self._reasons.add(reason)
            self._show(f"{describe(case)}: {waiting_text(reason)}")

    def started(self, case: PlannedCase) -> None:
        if self._verbose:
            self._show(f"{case.case.id[:8]} begins: {describe(case)} ({case.reason})")

    def progressed(self, case: PlannedCase, payload: object) -> None:
        if self._verbose and isinstance(payload, dict):
            now = payload.get("round", 0), payload.get("doing", "train")
            if self._rounds.get(case.case.id) != now:
                self._rounds[case.case.id] = now
                self._show(f"{case.case.id[:8]} round {now[0]}: {now[1]}")
        moment = time.monotonic()
        late = moment >= self._reported_at.setdefault(case.case.id, moment) + _MINUTE
        if late and isinstance(payload, dict) and "numbers" in payload:
            self._reported_at[case.case.id] = moment
            self._show(
                f"{describe(case)}: round {payload['round']} of {payload['rounds']}{round_progress_text(payload)}"
            )

    def ended(self, case: PlannedCase, status: Status, failure: Failure | None) -> None:
        self._done += 1
        ending, left = self._ending(case, status, failure), _left(self._start, self._done, self._to_do)
        self._show(f"[{self._done}/{self._to_do}] {ending}{left}", "" if failure is None else "red")

    def _show(self, line: str, colour: str = "") -> None:
        if colour or not self._quiet:
            print(visible(line), file=self._stream, flush=True)


class LiveProgress(_Progress):
    """A bar over the cases, and a line for each running case with its round."""

    def __init__(self, stream: TextIO = sys.stderr, job: str = "") -> None:
        from rich import progress
        from rich.console import Console

        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[note]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=stream),
            transient=True,
        )
        self._job = job
        self._all: TaskID | None = None
        self._data: TaskID | None = None
        self._rows: dict[str, TaskID] = {}
        self._numbers: dict[str, dict[str, float]] = {}  # numbers that learners reported in the present round

    def __enter__(self) -> LiveProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def planned(self, plan: Plan, to_do: int, damaged: Sequence[str] = (), scored: int = 0) -> None:
        if self._data is not None:
            self._progress.remove_task(self._data)
        super().planned(plan, to_do, damaged, scored)
        if to_do:
            self._all = self._progress.add_task("cases", total=to_do, note="")

    def preparing(self, subject: str, fraction: float) -> None:
        if self._data is None:
            self._data = self._progress.add_task(f"preparing {subject}", total=100, note="%")
        self._progress.update(self._data, completed=round(100 * fraction))

    def reading_progress(self, subject: str, message: str) -> None:
        if not message.endswith(" left"):  # otherwise it changes too soon
            self._show(f"preparing {subject}: {message}")
        else:
            if self._data is None:
                self.preparing(subject, 0.0)
            assert self._data is not None
            self._progress.update(self._data, note=f"%, {message}")

    def more(self, to_do: int, studies: Sequence[Study] = ()) -> None:
        super().more(to_do, studies)
        if self._all is None:
            self._all = self._progress.add_task("cases", total=0, note="")
        self._progress.update(self._all, total=self._to_do)

    def queued(self, case: PlannedCase, reason: str) -> None:
        self._row(case, waiting_text(reason))

    def started(self, case: PlannedCase) -> None:
        self._row(case, "starting")

    def _row(self, case: PlannedCase, note: str) -> None:
        if (row := self._rows.get(case.case.id)) is not None:
            self._progress.update(row, note=note)
        else:
            self._rows[case.case.id] = self._progress.add_task(f"  {describe(case)}", total=None, note=note)

    def progressed(self, case: PlannedCase, payload: object) -> None:
        row = self._rows.get(case.case.id)
        if row is None or not isinstance(payload, dict):
            return
        round_, rounds = payload.get("round", 0), payload.get("rounds")  # not every message has a count
        done = float(payload.get("fraction") or 0.0)
        note = f"round {round_}, {payload.get('doing', 'train')}" if round_ else "untrained model"
        numbers = self._numbers[case.case.id] = {} if "doing" in payload else self._numbers.get(case.case.id, {})
        numbers |= payload.get("numbers", {})
        note += round_progress_text({"numbers": numbers})
        self._progress.update(row, total=rounds, completed=max(0, round_ - 1) + done, note=note)

    def ended(self, case: PlannedCase, status: Status, failure: Failure | None) -> None:
        self._remove(case)
        if self._all is not None:
            self._progress.advance(self._all)
        if failure is not None or (status != "finished" and case.algorithm.until is None):
            self._show(self._ending(case, status, failure), "red")

    def _remove(self, case: PlannedCase) -> None:
        row = self._rows.pop(case.case.id, None)
        if row is not None:
            self._progress.remove_task(row)

    def retried(self, case: PlannedCase, failure: Failure) -> None:
        self._remove(case)
        super().retried(case, failure)

    def lost(self, case: PlannedCase, reason: str) -> None:
        self._remove(case)
        super().lost(case, reason)

    def _show(self, line: str, colour: str = "") -> None:
        self._progress.console.print(visible(line), style=colour or None, highlight=False, markup=False)


def references_text(plan: Plan) -> str:
    """Explain why there are cases that the job does not list: metrics compare with them."""
    metrics: dict[str, dict[str, None]] = {}
    for exam in plan.job.testenvs:
        for spec in exam.metrics:
            for need in set(metric_header(spec).needs) & {*ROLES}:
                metrics.setdefault(need, {})[spec.name] = None
    counts = Counter(case.role for case, _ in plan.cases() if case.role in metrics) if metrics else {}
    parts = [
        f"{count} {role} reference run{'s' * (count > 1)} for {', '.join(metrics[role])}"
        for role, count in counts.items()
    ]
    return f"; among them {' and '.join(parts)}" if parts else ""


def _study_progress(study: Study) -> str:
    """Describe the trials of a search so far, and the best one."""
    trials = f"search for {method_name(study.algorithm, study.testenv)}: {len(study.trials)} trials"
    best = study.best()
    if best is None:
        return trials
    return f"{trials}, so far the best {study.metric} {best.value:.4g} after round {best.reached} ({drawn_text(best)})"


def _left(start: float, done: int, to_do: int) -> str:
    if done >= to_do:
        return ""
    seconds = (time.monotonic() - start) / done * (to_do - done)
    return f" (about {seconds:.0f} s left)" if seconds < 120 else f" (about {seconds / 60:.0f} min left)"
