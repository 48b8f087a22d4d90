"""Case directories: `<workspace>/cases/<id>/`.

case.json           what determines the result, and the test case in words
rounds/<k>/         round.json, predictions.npz, model/ (of the last complete round only); appears as a whole
scores/<key>.json   one metric on every (round, test set); added without running again
rungs/<k>/          the same of the first k rounds, where a search looked at the case
result.json         status, failure, when, with which software; there when the case ended. Of a finished case also what
                    case.json, round.json and scores held, unless that is much; see ianvs.store.at_rest
answers.zip         of a finished case, predictions.npz of all rounds, unless they are large
similarities.npz    of replies to what was expected, once a report has computed them
log.txt             everything that the plugin printed, and tracebacks
files/              the plugin's own place
stream-<k>.journal  first answers to the stream of a round that is under way, in an exam that asks before it tells

Every json file carries its digest; round.json those of the files beside it and of the round before, result.json of a
finished case those of all the others. What does not fit is not believed: see `state` and `complete_rounds`.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import ArrayLike, NDArray

from ianvs.base.digests import CHANGED, content, differs, holds, noted
from ianvs.base.errors import DamagedError
from ianvs.base.secrets import without_secrets
from ianvs.base.types import Asked, Failure, Predictions, RoundResult, Status, TestCase
from ianvs.store.answer_files import read_extras, read_predictions, read_stream, write_predictions
from ianvs.store.at_rest import ANSWERS, UNKNOWN, AtRest, Known, NotedFiles, files_of, known_of, pack
from ianvs.store.files import replace_folder, write_atomic, write_note
from ianvs.store.keys import digest
from ianvs.store.round_files import (
    RoundFolder,
    StoredModule,
    round_result,
    stored_modules,
)
from ianvs.store.sealed import as_record, checked, read_sealed, remove, write_sealed
from ianvs.store.stored_score import LEFT_OUT, StoredScore, numbers, packed, parts_of, stored_score

SIMILARITIES = "similarities.npz"


@dataclass(frozen=True)
class CaseState:
    """status: None: nothing is known of the case.

    damaged: files of a case that has ended that are gone or not as they were stored, relative to its folder; it then is
    unfinished. rounds: how many a finished case has, the untrained model's included. scores: keys of those that it has.
    result: content of result.json, where it can be believed.
    """

    status: Status | None
    damaged: tuple[str, ...] = ()
    rounds: int = 0
    scores: frozenset[str] = frozenset()
    result: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    known: Known = field(default=UNKNOWN, repr=False, compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether all that was answered can be believed: what is lacking can be computed from it."""
        return not any(name in ("result.json", ANSWERS) or name.startswith("rounds/") for name in self.damaged)


class CaseStore:
    """Reads and writes case directories below a workspace. A directory has one writer at a time: hold its `lock`."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.root = workspace / "cases"
        self._root = str(self.root)
        self._at_rest = AtRest(self._root)

    def folder(self, case_id: str) -> Path:
        return self.root / case_id

    def log(self, case_id: str) -> Path:
        return self.folder(case_id) / "log.txt"

    def files(self, case_id: str) -> Path:
        return self.folder(case_id) / "files"

    def lock(self, case_id: str) -> FileLock:
        """The right to write. It goes with the process that holds it, however that ends."""
        folder = self.root / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(str(folder / f"{case_id}.lock"))

    # --- identity -----------------------------------------------------------------------------------------------

    def begin(self, case: TestCase, identity: Mapping[str, object]) -> None:
        """Make the directory and remember the case under its name, so that a later plan can say what changed.

        A failure of an earlier try, and what it left half-written, are forgotten.
        """
        remove(self.folder(case.id) / "result.json")
        self._remove_half_written(case.id)
        self.name(case, identity)
        write_atomic(self.root / ".names" / name_key(case), case.id.encode())

    def name(self, case: TestCase, identity: Mapping[str, object]) -> None:
        """Say in case.json what the case is."""
        facts = {**vars(case), "hyperparameters": without_secrets(case.hyperparameters)}
        self._write(case.id, "case.json", {"case": facts, "identity": dict(identity)})

    def identity(self, case_id: str) -> dict[str, Any] | None:
        """None: nothing is known of the case. Raises DamagedError."""
        found = self._read(case_id, "case.json")
        return None if found is None else found["identity"]

    def exam_id(self, case_id: str, known: Known = UNKNOWN) -> str:
        """ "" where none is known. known: of its state, which saves time. Raises DamagedError."""
        return known.exam_id or str((self.identity(case_id) or {}).get("exam_id", ""))

    def predecessor(self, case: TestCase) -> str | None:
        """Id under which the same algorithm, hyperparameters and seed ran last, if it was another one."""
        found = _read_id(self.root / ".names" / name_key(case))
        return found if found != case.id else None

    def case(self, case_id: str) -> TestCase | None:
        """None: nothing is known of it. Raises DamagedError."""
        found = self._read(case_id, "case.json")
        if found is None:
            return None
        modules = tuple(tuple(module) for module in found["case"]["modules"])
        return as_record(TestCase, {**found["case"], "modules": modules}, self.folder(case_id) / "case.json")

    # --- rounds -------------------------------------------------------------------------------------------------

    def round_folder(self, case_id: str, index: int) -> Path:
        return self.root / f"{case_id}/rounds/{index}"

    def model_folder(self, case_id: str, index: int) -> Path:
        """What was saved after round `index`, if it is still kept."""
        return self.round_folder(case_id, index) / "model"

    def scratch(self, case_id: str) -> Path:
        """A place for what is under way; it does not outlive the process that holds the lock."""
        return self.folder(case_id) / ".scratch"

    @contextmanager
    def new_round(self, case_id: str, index: int) -> Iterator[RoundFolder]:
        """A folder to fill, which becomes round `index` as a whole; then the model of the round before is let go."""
        for name in ("scores", SIMILARITIES, _ANSWERED):  # they were of other rounds
            remove(self.folder(case_id) / name)
        before = self._read_round(case_id, index - 1) if index else None
        with replace_folder(self.round_folder(case_id, index)) as folder:
            (folder / "model").mkdir()
            yield RoundFolder(folder, f"{case_id}/{_round_name(index)}", before["digest"] if before else "")
        if index:
            remove(self.round_folder(case_id, index - 1) / "model")

    def complete_rounds(
        self, case_id: str, *, thoroughly: bool = False, known: Known = UNKNOWN
    ) -> tuple[RoundResult, ...]:
        """Results of rounds 0, 1, ... up to the first that is missing or can't be believed.

        thoroughly: predictions are read, too, not only looked at. known: of its state, which saves time.
        """
        stored: Iterable[Mapping[str, Any]] | None = known.rounds
        if stored is None:
            stored = self._complete(case_id, thoroughly=thoroughly, files=known.files)
        return tuple(round_result(one, self._path(case_id, _round_name(index))) for index, one in enumerate(stored))

    def has_come_to(self, case_id: str, until: int | None) -> bool:
        """Whether it has the rounds after which it is to pause, however far it went since. None: it is not to."""
        return until is not None and len(self.complete_rounds(case_id)) > until

    def broken_round(self, case_id: str) -> int | None:
        """The first round that is there and can't be believed."""
        index = sum(1 for _ in self._complete(case_id, thoroughly=True))
        return index if self.round_folder(case_id, index).exists() else None

    def _complete(
        self, case_id: str, *, thoroughly: bool = False, files: NotedFiles = UNKNOWN.files
    ) -> Iterator[dict[str, Any]]:
        """[k] what is stored of round k, and stands on the rounds before."""
        before, index = "", 0
        with suppress(DamagedError):
            while (found := self._read_round(case_id, index, files)) is not None and found["after"] == before:
                name, answers = f"rounds/{index}/predictions.npz", found["files"]["predictions.npz"]
                looked_at = not thoroughly and files.get(name) == answers
                if not looked_at and self._answers_differ(case_id, name, answers, thoroughly):
                    return
                yield found
                before, index = found["digest"], index + 1

    def _answers_differ(self, case_id: str, name: str, before: Sequence[int | str], thoroughly: bool) -> bool:
        if not differs(self._path(case_id, name), before, thoroughly=thoroughly):
            return False
        packed = self._at_rest.result(case_id).get("answers")
        if packed is None or thoroughly:
            found = self._at_rest.answers(case_id, name) if packed else None
            return found is None or not holds(found, before)
        return differs(self._path(case_id, ANSWERS), packed)

    def _read_round(self, case_id: str, index: int, files: NotedFiles = UNKNOWN.files) -> dict[str, Any] | None:
        return self._read(case_id, _round_name(index), files)

    def modules(self, case_id: str, index: int) -> tuple[StoredModule, ...] | None:
        """The modules after round `index`; None if they are no longer kept. Raises DamagedError."""
        folder = self.round_folder(case_id, index)
        stored = self._read_round(case_id, index)
        if stored is None or not (folder / "model").is_dir():
            return None
        for name in stored["files"]:
            if name.startswith("model/"):
                checked(folder / name, stored, name)
        return self.module_names(case_id, index)

    def module_names(self, case_id: str, index: int) -> tuple[StoredModule, ...]:
        """The modules after round `index`, whether or not what they saved is still kept. Raises DamagedError."""
        stored = self._read_round(case_id, index)
        return () if stored is None else stored_modules(stored, self.round_folder(case_id, index))

    def predictions(self, case_id: str, index: int) -> dict[Asked, Predictions]:
        """What was answered in and after round `index`; a test set that could not be predicted is missing.

        Raises DamagedError where they are not those that were stored.
        """
        return read_predictions(self._checked_predictions(case_id, index))

    def stream(self, case_id: str, index: int) -> dict[str, NDArray[Any]]:
        """What was answered in the stream of round `index` before it was told, (n,) each by name; empty: nothing was.

        Raises DamagedError.
        """
        return read_stream(self._checked_predictions(case_id, index))

    def journal(self, case_id: str, index: int) -> Path:
        """Of the first answers in round `index`: it outlives the process that writes it."""
        return self.folder(case_id) / f"stream-{index}.journal"

    def extras(self, case_id: str, index: int) -> set[str]:
        """Names of what is stored beside the labels after round `index`."""
        return read_extras(self._checked_predictions(case_id, index))

    def similarities(self, case_id: str) -> dict[Asked, NDArray[np.float64]] | None:
        """What `keep_similarities` kept; None where that is nothing, or damaged."""
        try:
            found = read_predictions(self.folder(case_id) / SIMILARITIES)
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return {asked: one.labels for asked, one in found.items()}

    def keep_similarities(self, case_id: str, found: Mapping[Asked, NDArray[np.float64]]) -> None:
        """Of replies to what was expected, by (test set, round). For reports; who may not write computes them anew."""
        stream = io.BytesIO()
        write_predictions(stream, {asked: Predictions(rows) for asked, rows in found.items()})
        with suppress(OSError):
            write_atomic(self.folder(case_id) / SIMILARITIES, stream.getvalue())

    def _checked_predictions(self, case_id: str, index: int) -> Path | io.BytesIO:
        path, stored = self.round_folder(case_id, index) / "predictions.npz", self._read_round(case_id, index)
        packed = None if path.exists() else self._at_rest.answers(case_id, f"rounds/{index}/{path.name}")
        if packed is None:
            return checked(path, stored)
        if stored is None or not holds(packed, stored["files"][path.name]):
            raise DamagedError(self.folder(case_id) / ANSWERS, CHANGED)
        return io.BytesIO(packed)

    def sweep(self, case_id: str) -> None:
        """Remove what a process that was killed left half-written, unless another process is at work there."""
        try:
            with self.lock(case_id).acquire(timeout=0):
                self._remove_half_written(case_id)
        except (Timeout, OSError):
            return

    def _remove_half_written(self, case_id: str) -> None:
        folder = self.folder(case_id)
        for pattern in ("running.json", ".*", "rounds/.*", "rounds/*/.*", "scores/.*"):
            for path in folder.glob(pattern):
                remove(path)

    def reset(self, case_id: str, *, first_answers_count: bool = False) -> None:
        """Drop all rounds and scores: the case starts over. Its log stays.

        first_answers_count: so do the journals: who starts over was told what it will be asked again.
        """
        for path in () if first_answers_count else self.folder(case_id).glob("stream-*.journal"):
            remove(path)
        # The plugin's own place is emptied and stays: it is the current folder of its process.
        inside = self.files(case_id).iterdir() if self.files(case_id).is_dir() else ()
        for name in ("rounds", "scores", "rungs", SIMILARITIES, ANSWERS, _ANSWERED, "result.json"):
            remove(self.folder(case_id) / name)
        for path in inside:
            remove(path)

    # --- scores -------------------------------------------------------------------------------------------------

    def has_score(self, case_id: str, key: str, after: int | None = None) -> bool:
        """Whether it is there and can be believed. after: of its first rounds, so many; None: of all that it has."""
        try:
            return self.score(case_id, key, after) is not None
        except DamagedError:
            return False

    def write_score(
        self,
        case_id: str,
        key: str,
        values: ArrayLike,
        details: Sequence[Sequence[Mapping[str, float | None] | None]],
        between: Mapping[int, ArrayLike] | None = None,
        about: Mapping[str, str] | None = None,
        left_out: ArrayLike | None = None,
        left_out_in_rounds: ArrayLike | None = None,
        after: int | None = None,
    ) -> None:
        """values[k][j], nan where there is none; details[k][j] a mapping of parts where the metric has them.

        between: [j] scores by the number of samples that had arrived, of examinations between the ends of rounds.
        about: what the score was computed with, such as the revision of an encoder. left_out: [g][j] scores after the
        last round without the g-th group of samples, left_out_in_rounds: [g][k][j] after every round. after: of the
        first rounds, so many; None: of all.
        """
        if after is None:
            self.unpack(case_id)
        within = {n: numbers(row) for n, row in (between or {}).items()}
        told = {"values": numbers(values), "details": parts_of(details), "between": within, "about": dict(about or {})}
        without = zip(LEFT_OUT, (left_out, left_out_in_rounds), strict=True)
        told |= {name: packed(values) for name, values in without if values is not None and np.size(values)}
        self._write(case_id, _score_name(key, after), told)

    def score(self, case_id: str, key: str, after: int | None = None, known: Known = UNKNOWN) -> StoredScore | None:
        """As it was written. known: of its state, which saves time. Raises DamagedError."""
        name = _score_name(key, after)
        found = known.scores.get(name) or self._read(case_id, name, known.files)
        return None if found is None else stored_score(found)

    # --- while it runs ------------------------------------------------------------------------------------------

    def note_running(self, case_id: str, facts: Mapping[str, object]) -> None:
        """Say to other processes what the case is doing: round, rounds, doing, since (seconds since the epoch), pid."""
        write_note(self.folder(case_id) / "running.json", facts)

    def running(self, case_id: str) -> dict[str, Any] | None:
        """What the case is doing right now; None when no process holds its lock."""
        try:
            found: dict[str, Any] = json.loads(content(self.folder(case_id) / "running.json") or b"")
        except (ValueError, DamagedError):
            return None
        try:
            with self.lock(case_id).acquire(timeout=0):
                return None
        except Timeout:
            return found

    # --- answered ---------------------------------------------------------------------------------------------------

    def note_answered(self, case_id: str, facts: Mapping[str, object]) -> None:
        """All is answered; what `finish` will be told once it is scored."""
        self._write(case_id, _ANSWERED, facts)

    def answered(self, case_id: str) -> dict[str, Any] | None:
        """What `note_answered` was told; None: something has to be answered yet."""
        try:
            found = self._read(case_id, _ANSWERED)
        except DamagedError:
            return None
        return None if found is None else {name: value for name, value in found.items() if name != "digest"}

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self, case_id: str, facts: Mapping[str, object]) -> None:
        """The case ended well. `facts`: bound, finished_at, provenance."""
        self.unpack(case_id)
        folder = self.folder(case_id)
        records = {"case.json": self._read(case_id, "case.json")}
        files = {}
        for index, stored in enumerate(self._complete(case_id)):
            records[_round_name(index)] = stored
            files[f"rounds/{index}/predictions.npz"] = stored["files"]["predictions.npz"]
        for path in sorted(folder.glob("scores/*.json")):
            with suppress(DamagedError):
                records[f"scores/{path.name}"] = self._read(case_id, f"scores/{path.name}")
        files |= {name: noted(folder / name) for name in records}
        told = {"status": "finished", "failure": None, **facts, "files": files}
        whole = {name: record for name, record in records.items() if record is not None}
        if not pack(folder, f"{case_id}/result.json", told, whole):
            self._write(case_id, "result.json", told)
        for name in ("running.json", _ANSWERED):
            (folder / name).unlink(missing_ok=True)

    def unpack(self, case_id: str) -> None:
        """Give a case at rest its files back, as far as they can be believed: something is to be done to it."""
        folder, stored = self.folder(case_id), None
        for name in self._at_rest.names(case_id):
            with suppress(DamagedError):
                record = self._at_rest.record(case_id, name) or {}
                write_atomic(folder / name, (json.dumps(record, indent=1) + "\n").encode())
                answers = f"{name.removesuffix('round.json')}predictions.npz"
                if name.startswith("rounds/") and (found := self._at_rest.answers(case_id, answers)) is not None:
                    write_atomic(folder / answers, found)
        if self._at_rest.names(case_id):
            with suppress(DamagedError):
                stored = self.result(case_id)
            if stored is None:
                remove(folder / "result.json")
            else:
                self._write(case_id, "result.json", {name: stored[name] for name in stored if name not in _PACKED})
            remove(folder / ANSWERS)

    def facts(self, case_id: str) -> dict[str, object]:
        """What `finish` was told, and the status."""
        ours = ("files", "digest", *_PACKED)
        return {name: value for name, value in (self.result(case_id) or {}).items() if name not in ours}

    def drop(self, case_id: str, damaged: Iterable[str]) -> None:
        """Remove files that can't be believed. Not those of rounds: what stands on them has to go with them."""
        folder = self.folder(case_id)
        gone = [name for name in ("rounds", "scores") if not (folder / name).is_dir()]
        for name in (*gone, *(name for name in damaged if not name.startswith("rounds/"))):
            remove(folder / name)

    def fail(self, case_id: str, failure: Failure) -> None:
        log = None if failure.log is None else str(failure.log)
        self.unpack(case_id)  # its rounds are as good as before
        self._write(case_id, "result.json", {"status": "failed", "failure": {**vars(failure), "log": log}})

    def result(self, case_id: str) -> dict[str, Any] | None:
        """Content of result.json, or None: the case has not ended. Raises DamagedError."""
        return self._read(case_id, "result.json")

    def state(self, case_id: str, *, thoroughly: bool = False, known: bool = False) -> CaseState:
        """How the case stands, and whether all of it is as it was stored.

        thoroughly: files are read, not only looked at; see differs (base/digests.py). known: with what that saves who
        reads on. Raises IanvsError for what may not be read.
        """
        try:
            found = self.result(case_id)
        except DamagedError:
            return CaseState("unfinished", ("result.json",))
        if found is None:
            return CaseState("unfinished" if (self.folder(case_id) / "case.json").exists() else None)
        if found["status"] != "finished":
            return CaseState(found["status"], result=found)
        files = found["files"]
        damaged = tuple(
            name
            for name, before in files_of(found).items()
            if differs(self._path(case_id, name), before, thoroughly=thoroughly)
        )
        rounds = sum(name.endswith("/round.json") for name in files)
        scores = frozenset(name[7:-5] for name in files if name.startswith("scores/"))
        scores |= frozenset(found.get("handed", {}).get("scores", ()))
        state = CaseState("unfinished" if damaged else "finished", damaged, rounds, scores, found)
        return self.with_known(case_id, state) if known else state

    def with_known(self, case_id: str, state: CaseState) -> CaseState:
        """The case's `state`, of a finished one with what saves who reads on."""
        if state.status != "finished" or state.result is None:
            return state
        return replace(state, known=known_of(state.result))

    def status(self, case_id: str) -> Status | None:
        """None: nothing is known of the case."""
        return self.state(case_id).status

    def failure(self, case_id: str) -> Failure | None:
        return self.failure_in(self.result(case_id), case_id)

    def failure_in(self, result: Mapping[str, Any] | None, case_id: str) -> Failure | None:
        """What `result`, the content of result.json, says of it."""
        if result is None or result["failure"] is None:
            return None
        stored = result["failure"]
        log = None if stored["log"] is None else self.workspace / stored["log"]  # kept relative: workspaces are moved
        return as_record(Failure, {**stored, "log": log}, self.folder(case_id) / "result.json")

    def _path(self, case_id: str, name: str) -> str:
        """Of a file of a case. A report asks for tens of thousands: as a Path each takes longer than to look at it."""
        return f"{self._root}/{case_id}/{name}"

    def _read(self, case_id: str, name: str, files: NotedFiles = UNKNOWN.files) -> dict[str, Any] | None:
        found = read_sealed(self._path(case_id, name), f"{case_id}/{name}", files.get(name))
        return self._at_rest.record(case_id, name) if found is None and name != "result.json" else found

    def _write(self, case_id: str, name: str, value: Mapping[str, object]) -> None:
        write_sealed(self.folder(case_id) / name, f"{case_id}/{name}", value)


_ANSWERED = "answered.json"
_PACKED = ("seal", "records", "answers")  # of a result.json at rest


def _round_name(index: int) -> str:
    return f"rounds/{index}/round.json"


def _score_name(key: str, after: int | None) -> str:
    return f"scores/{key}.json" if after is None else f"rungs/{after}/{key}.json"


def _read_id(path: Path) -> str | None:
    """The id of a case that a small file names; None if there is none. It is a hint, and may be anything."""
    try:
        found = path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return found if found.isalnum() and found.isascii() else None


def name_key(case: TestCase) -> str:
    """File name under which a case is remembered whatever its plugin's source and its exam say."""
    told = filter(None, [case.role, case.testenv])
    return digest([case.algorithm, case.modules, dict(case.hyperparameters), case.seed, *told])
