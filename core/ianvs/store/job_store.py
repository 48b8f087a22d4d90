"""Stores records of a job, `<workspace>/<job name>/job.json`, and of its searches, `search/<key>.json`.

The drawn trials of a search and their values are stored, so that a killed search continues with the same trials.
"""

import csv
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ianvs.base.errors import DamagedError
from ianvs.base.former_names import former_names
from ianvs.base.secrets import HIDDEN, without_secrets
from ianvs.store.checksummed_json import as_record, read_checksummed, remove, write_checksummed
from ianvs.store.files import write_note
from ianvs.store.keys import canonical

_NAME = "job.json"  # the name in its checksum, since a workspace's folder may be renamed
_BEGUN = "begun.json"  # cases of a run that is running, or was killed
_QUEUE = "queue.json"
_ACCEPTED = "accepted.json"  # finished cases of an earlier source that count as this job's
_STORED_NAMES = {"search_settings": "how", "values_description": "seen", "next_rung": "goal"}
QUEUE_SECONDS = 120.0  # seconds after which a note on waiting cases is ignored; a run renews it sooner


class JobStore:
    """`<workspace>/<job name>/`: the job's record, and the reports below rank/."""

    def __init__(self, workspace: Path, name: str) -> None:
        self.folder = workspace / name
        self.path = self.folder / "job.json"

    def write(self, record: dict[str, object]) -> None:
        """Store the record, unless only its provenance differs from the stored one."""
        try:
            before = self.read()
        except DamagedError:
            before = None
        if before is None or canonical({**before, "provenance": 0}) != canonical({**record, "provenance": 0}):
            write_checksummed(self.path, _NAME, record)
        remove(self.folder / _BEGUN)

    def begin(self, ids: Iterable[str]) -> None:
        """Store the ids of a run's cases before the first of them runs; later, `write` does. None of them waits yet."""
        remove(self.folder / _QUEUE)  # of a killed run
        write_checksummed(self.folder / _BEGUN, _BEGUN, {"cases": list(ids)})

    def accept(self, ids: Mapping[str, str]) -> None:
        """Let these finished cases stand for cases of the job from now on.

        ids: {id of the job's case: id of the finished case}.
        """
        if ids:
            write_checksummed(self.folder / _ACCEPTED, _ACCEPTED, {"cases": {**self.accepted(), **ids}})

    def accepted(self) -> dict[str, str]:
        """Return {id of a case of the job: id of the finished one that replaces it}. Raises DamagedError."""
        stored = read_checksummed(self.folder / _ACCEPTED, _ACCEPTED) or {}
        return dict(stored.get("cases", {}))

    def note_queue(self, waiting: Mapping[str, str]) -> None:
        """Publish waiting cases with the reasons, by id, to other processes; errors are ignored."""
        path = self.folder / _QUEUE
        with suppress(OSError):
            if not waiting:
                path.unlink(missing_ok=True)
                return
            write_note(path, {"at": time.time(), "cases": dict(waiting)})

    def queue(self) -> Mapping[str, str]:
        """Return waiting cases and the reasons, as published by a running job; {} if it does not run."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads((self.folder / _QUEUE).read_text())
            if time.time() - stored["at"] < QUEUE_SECONDS:
                return {str(key): str(reason) for key, reason in stored["cases"].items()}
        return {}

    def ids(self) -> set[str]:
        """Return ids of the cases of the last or current run. Raises DamagedError."""
        begun = read_checksummed(self.folder / _BEGUN, _BEGUN) or {}
        return {case["id"] for case in (self.read() or {}).get("cases", ())}.union(begun.get("cases", ()))

    @staticmethod
    def case_ids(workspace: Path) -> set[str]:
        """Return ids of the cases of all jobs in `workspace`, including those of current runs. Raises DamagedError."""
        ids = {case["id"] for name in JobStore.names(workspace) for case in _read(workspace, name).get("cases", ())}
        begun = (read_checksummed(path, _BEGUN) or {} for path in workspace.glob(f"*/{_BEGUN}"))
        return ids.union(*(record["cases"] for record in begun))

    def read(self) -> dict[str, Any] | None:
        """Return the record; None: there is none. Raises DamagedError."""
        return read_checksummed(self.path, _NAME)

    @staticmethod
    def names(workspace: Path) -> Iterator[str]:
        """Yield names of the jobs that ran in `workspace`."""
        for path in sorted(workspace.glob("*/job.json")):
            yield path.parent.name


def _read(workspace: Path, name: str) -> Mapping[str, Any]:
    return JobStore(workspace, name).read() or {}


@dataclass(frozen=True)
class Axis:
    """A searched hyperparameter. low, high: of a range; choices: of a choice."""

    name: str
    kind: str  # as in the file: uniform, log_uniform, int, choice
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()


@former_names(goal="next_rung")
@dataclass(frozen=True)
class Trial:
    """A trial.

    Attributes:
        drawn: The values of searched hyperparameters.
        next_rung: The rung up to which it is trained next.
        values: Its value after each rung so far; None: it failed there.
    """

    number: int  # from 1
    drawn: Mapping[str, Any]
    next_rung: int
    values: Mapping[int, float | None]

    @property
    def waits(self) -> bool:
        """Whether it has not reached its next rung, as far as is known."""
        return not self.failed and self.next_rung not in self.values

    @property
    def failed(self) -> bool:
        return None in self.values.values()

    @property
    def reached(self) -> int:
        """The last rung with a value; 0: none."""
        return max((round_ for round_, value in self.values.items() if value is not None), default=0)

    @property
    def value(self) -> float | None:
        """The value after the last rung that it reached, unless it failed after that."""
        return None if self.failed or not self.reached else self.values[self.reached]


@former_names(said="note", how="search_settings", seen="values_description")
@dataclass(frozen=True)
class Study:
    """A search of one algorithm in one exam.

    Attributes:
        rungs: Rounds after which trials are compared; the last one is the last round that the search may use.
        rounds: Of the exam.
        winner: Number of the best trial; None: the search continues, or all failed.
        ended: Whether no further trials will run.
        importance: Share of each hyperparameter in the differences of trials.
    """

    key: str
    algorithm: str
    testenv: str
    search_settings: Mapping[str, Any]
    metric: str
    higher_is_better: bool
    values_description: str
    seeds: tuple[int, ...]
    rungs: tuple[int, ...]
    rounds: int
    axes: tuple[Axis, ...]
    trials: tuple[Trial, ...] = ()
    ended: bool = False
    winner: int | None = None
    importance: Mapping[str, float] | None = None
    note: str = ""  # why it ended before all its trials

    def best(self) -> Trial | None:
        """Return the best of the trials with the most rounds; among equals the first."""
        scored = [trial for trial in self.trials if trial.value is not None]
        far = [trial for trial in scored if trial.reached == max(each.reached for each in scored)]
        sign = 1 if self.higher_is_better else -1
        return max(far, key=lambda trial: (sign * (trial.value or 0.0), -trial.number)) if far else None

    @property
    def rounds_trained(self) -> int:
        """The rounds trained by all trials on all seeds, without those of failed trials."""
        return len(self.seeds) * sum(trial.reached for trial in self.trials)

    @property
    def rounds_of_all(self) -> int:
        """The rounds that all trials would have trained without early stopping."""
        return len(self.seeds) * len(self.trials) * self.rounds


class StudyStore:
    """Studies of a job."""

    def __init__(self, workspace: Path, job: str) -> None:
        self.folder = JobStore(workspace, job).folder / "search"

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def read(self, key: str, choices: Mapping[str, Sequence[Any]] = MappingProxyType({})) -> Study | None:
        """Return a study; None: it has not begun. Raises DamagedError.

        choices: of hyperparameters, to restore secret ones, which are stored as *** and a number.
        """
        path = self.path(key)
        stored = read_checksummed(path, f"search/{key}.json")
        if stored is None:
            return None
        trials = (
            {**entry, "values": {int(round_): value for round_, value in entry["values"].items()}}
            for entry in stored["trials"]
        )
        axes = ({**entry, "choices": tuple(entry["choices"])} for entry in stored["axes"])
        lists = {name: tuple(stored[name]) for name in ("seeds", "rungs")}
        parts = {
            "trials": tuple(as_record(Trial, entry, path) for entry in trials),
            "axes": tuple(as_record(Axis, entry, path) for entry in axes),
        }
        study = as_record(Study, {**stored, **lists, **parts}, path)
        secrets = {
            name: {hidden: choice for choice, hidden in _secrets(name, values)} for name, values in choices.items()
        }
        return _with(study, lambda name, value: secrets.get(name, {}).get(str(value), value))

    def write(self, study: Study) -> None:
        secrets = {axis.name: _secrets(axis.name, axis.choices) for axis in study.axes}
        study = _with(study, lambda name, value: next((shown for each, shown in secrets[name] if each == value), value))
        trials = [_with_stored_names(vars(trial)) for trial in study.trials]
        parts = {"trials": trials, "axes": [vars(axis) for axis in study.axes]}
        record = _with_stored_names({**vars(study), **parts})
        write_checksummed(self.path(study.key), f"search/{study.key}.json", record)

    def forget(self, key: str, numbers: Collection[int]) -> None:
        """Delete the values of these trials, which are then computed again; later trials stay."""
        study = self.read(key)
        if study is not None:
            first = study.rungs[0]
            trials = (
                replace(trial, values={}, next_rung=first) if trial.number in numbers else trial
                for trial in study.trials
            )
            self.write(replace(study, trials=tuple(trials), ended=False, winner=None, importance=None, note=""))

    def begun(self, keys: Collection[str]) -> Iterator[Study]:
        """Yield those of `keys` that have started."""
        for key in keys:
            study = self.read(key)
            if study is not None:
                yield study


def _with_stored_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record by their names in its file."""
    return {_STORED_NAMES.get(name, name): value for name, value in fields.items()}


def _secrets(name: str, choices: Sequence[Any]) -> list[tuple[Any, str]]:
    """Return (choice, its stored substitute) of a hyperparameter's secret choices."""
    numbered = enumerate(choices, 1)
    return [
        (choice, f"{HIDDEN} {number}")
        for number, choice in numbered
        if without_secrets({name: choice}) != {name: choice}
    ]


def _with(study: Study, value_of: Callable[[str, Any], Any]) -> Study:
    """Return `study` with other values of hyperparameters. value_of: by the name and the former value."""
    axes = (replace(axis, choices=tuple(value_of(axis.name, choice) for choice in axis.choices)) for axis in study.axes)
    trials = (
        replace(trial, drawn={name: value_of(name, value) for name, value in trial.drawn.items()})
        for trial in study.trials
    )
    return replace(study, axes=tuple(axes), trials=tuple(trials))


def foreign_tables(folder: Path) -> dict[Path, list[dict[str, str]]]:
    """Return tables of another program in a job's rank/, with their rows. Tables of ianvs have a column Seeds."""
    tables = {}
    for path in (folder / "rank" / name for name in ("all_rank.csv", "selected_rank.csv")):
        with suppress(OSError, UnicodeDecodeError, csv.Error), path.open(newline="") as stream:
            table = csv.reader(stream)
            titles = next(table, [])
            at = next((place for place, title in enumerate(titles) if title.casefold() == "seeds"), None)
            rows = [row for row in table if row and (at is None or len(row) <= at or not row[at])]
            if rows or at is None:
                tables[path] = [dict(zip_longest(titles, row[: len(titles)], fillvalue="")) for row in rows]
    return tables


def report_folder(folder: Path) -> Path:
    """Return the folder of a job's reports: rank/, unless another program has written there."""
    return folder / ("leaderboard" if foreign_tables(folder) else "rank")
