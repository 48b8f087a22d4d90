"""Case directories: `<workspace>/cases/<id>/`.

case.json           what determines the result, and the test case in words
rounds/<k>/         round.json, predictions.npz, and model/ of the last complete round; appears atomically
rounds.json         once the case has finished: every round.json, in one file
predictions.zip     once the case has finished: every rounds/<k>/predictions.npz
scores.json         metrics on every (round, test set), also of the first rounds only; recomputed if it is damaged
result.json         how the case ended: status, failure, time, software
similarities.npz    of replies to the expected ones, once a report has computed them
log.txt             everything that the plugin printed, and tracebacks
files/              the plugin's current folder
stream-<k>.journal  first predictions of the stream of an unfinished round, in a prequential exam

Each file is written under a temporary name and renamed. JSON files begin with a checksum of their content and have
their name in it; round.json has the checksums of predictions.npz and of the files of the model.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from filelock import Timeout

from ianvs.base.digests import CHANGED_MESSAGE, file_state, read_bytes
from ianvs.base.errors import DamagedError
from ianvs.base.secrets import without_secrets
from ianvs.base.types import Failure, Status, TestCase
from ianvs.store import earlier
from ianvs.store.checksummed_json import as_record, remove
from ianvs.store.files import write_atomic, write_note
from ianvs.store.keys import digest
from ianvs.store.round_store import ALL_PREDICTIONS, CASE, LOG, RESULT, ROUNDS, SCORES, SIMILARITIES, Record, RoundStore
from ianvs.store.stored_score import StoredScore, stored_score

_EVALUATED = "evaluated"  # in result.json: status of a case that is not scored yet
_FILE_LIST = "stored"  # in result.json: key of the files of a finished case
_JSON_FILES = (CASE, ROUNDS, SCORES)


@dataclass(frozen=True)
class CaseState:
    """State of a case.

    Attributes:
        status: None if nothing is stored of the case. One with damaged files is unfinished.
        damaged: Files of a case that has ended that are missing or changed, relative to its folder.
        result: Content of result.json.
        exam_id: Id of its exam; "" where the case has not finished.
        scores: Keys of scores.json, of a finished case.
    """

    status: Status | None
    damaged: tuple[str, ...] = ()
    result: Record | None = field(default=None, repr=False, compare=False)
    exam_id: str = field(default="", repr=False, compare=False)
    scores: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether all predictions are undamaged, so that the rest can be computed from them."""
        return set(self.damaged) <= {CASE, SCORES}

    @property
    def score_keys(self) -> frozenset[str]:
        """Keys of the scores that are stored, those in result.json included."""
        return self.scores.union((self.result or {}).get("handed", {}).get("scores", ()))


class CaseStore(RoundStore):
    """Reads and writes case directories below a workspace. A directory has one writer at a time: hold its `lock`."""

    # --- identity -----------------------------------------------------------------------------------------------

    def begin(self, case: TestCase, identity: Mapping[str, object]) -> bool:
        """Create the directory, and store the case's id by name, so that a later plan can report what changed.

        An earlier failure and partial files are deleted. Returns whether the case had no files but a log.
        """
        folder = self.folder(case.id)
        is_new = not folder.exists() or {path.name for path in folder.iterdir()} <= {LOG}
        if not is_new:
            remove(folder / RESULT)
            self._remove_half_written(case.id)
        self.write_case(case, identity)
        write_atomic(self.root / ".names" / name_key(case), case.id.encode(), durable=False)
        return is_new

    def write_case(self, case: TestCase, identity: Mapping[str, object]) -> None:
        """Write case.json."""
        facts = {**vars(case), "hyperparameters": without_secrets(case.hyperparameters)}
        self._write(case.id, CASE, {"case": facts, "identity": dict(identity)}, durable=False)

    def identity(self, case_id: str) -> dict[str, Any] | None:
        """Return the identity in case.json; None if nothing is stored. Raises DamagedError."""
        record = self._read(case_id, CASE)
        return None if record is None else record["identity"]

    def exam_id(self, case_id: str) -> str:
        """Return the id of the exam, or an empty string. Raises DamagedError."""
        return str((self.identity(case_id) or {}).get("exam_id", ""))

    def predecessor(self, case: TestCase) -> str | None:
        """Return the id of the last case with the same algorithm, hyperparameters and seed, if it differs."""
        try:
            text = (self.root / ".names" / name_key(case)).read_text()
        except (OSError, UnicodeDecodeError):  # an untrusted hint
            return None
        return text if text.isalnum() and text.isascii() and text != case.id else None

    def case(self, case_id: str) -> TestCase | None:
        """Return the stored case; None if there is none. Raises DamagedError."""
        record = self._read(case_id, CASE)
        if record is None:
            return None
        modules = tuple(tuple(module) for module in record["case"]["modules"])
        return as_record(TestCase, {**record["case"], "modules": modules}, self.folder(case_id) / CASE)

    # --- starting over -------------------------------------------------------------------------------------------

    def remove_partial_files(self, case_id: str) -> None:
        """Delete partial files of a killed process, unless another process works on the case."""
        try:
            with self.lock(case_id).acquire(timeout=0):
                self._remove_half_written(case_id)
        except (Timeout, OSError):
            return

    def _remove_half_written(self, case_id: str) -> None:
        folder = self.folder(case_id)
        for pattern in ("running.json", ".*", "rounds/.*", "rounds/*/.*"):
            for path in folder.glob(pattern):
                remove(path)

    def reset(self, case_id: str, *, keep_journals: bool = False) -> None:
        """Delete all rounds and scores, to restart the case. Its log is kept.

        keep_journals: keep the first predictions of streams, because their labels were revealed to the learner.
        """
        folder = self.folder(case_id)
        for path in () if keep_journals else folder.glob("stream-*.journal"):
            remove(path)
        # The plugin's folder is emptied but not removed, since it is the working directory of its process.
        inside = self.files(case_id).iterdir() if self.files(case_id).is_dir() else ()
        for name in (RESULT, ROUNDS, ALL_PREDICTIONS, SCORES, SIMILARITIES, "rounds", *earlier.FILES):
            remove(folder / name)
        for path in inside:
            remove(path)

    # --- scores -------------------------------------------------------------------------------------------------

    def has_score(self, case_id: str, key: str, after: int | None = None) -> bool:
        """Return whether a score is stored and undamaged. after: of the first rounds only; None: of all rounds."""
        try:
            return self.score(case_id, key, after) is not None
        except DamagedError:
            return False

    def write_score(self, case_id: str, key: str, score: Record, after: int | None = None) -> None:
        """Add a metric to scores.json.

        Args:
            case_id: Id of the case.
            key: Key of the metric with its options.
            score: From `ianvs.store.stored_score.score_record`.
            after: Number of rounds if it is computed over the first rounds only.
        """
        stored = self._scores(case_id)
        if after is None:
            stored["scores"][key] = score
        else:
            stored["rungs"].setdefault(str(after), {})[key] = score
        self._write(case_id, SCORES, stored, durable=False)

    def score(self, case_id: str, key: str, after: int | None = None) -> StoredScore | None:
        """Return a stored score. Raises DamagedError."""
        stored = self._read(case_id, SCORES) or {"scores": {}, "rungs": {}}
        scores = stored["scores"] if after is None else stored["rungs"].get(str(after), {})
        return stored_score(scores[key]) if key in scores else None

    def scores(self, case_id: str) -> Mapping[str, Record]:
        """Return scores over all rounds by key, for `ianvs.store.stored_score.stored_score`; {} if damaged."""
        scores: Mapping[str, Record] = self._scores(case_id)["scores"]
        return scores

    def finished_records(self, case_id: str) -> tuple[Sequence[Record], Mapping[str, Record]]:
        """Return (content of each round.json, scores by key) of a finished case. Raises DamagedError."""
        rounds, scores = self._read(case_id, ROUNDS), self._read(case_id, SCORES)
        if rounds is None or scores is None:
            raise DamagedError(self.folder(case_id) / (ROUNDS if rounds is None else SCORES), CHANGED_MESSAGE)
        return rounds["rounds"], scores["scores"]

    def _scores(self, case_id: str) -> dict[str, Any]:
        """Return the content of scores.json; empty if it is damaged, since scores are computed again."""
        with suppress(DamagedError):
            if (stored := self._read(case_id, SCORES)) is not None:
                return stored
        return {"scores": {}, "rungs": {}}

    # --- while it runs ------------------------------------------------------------------------------------------

    def note_running(self, case_id: str, facts: Mapping[str, object]) -> None:
        """Publish the case's progress to other processes: round, rounds, doing, since (seconds of the epoch), pid."""
        write_note(self.folder(case_id) / "running.json", facts)

    def running(self, case_id: str) -> dict[str, Any] | None:
        """Return the case's progress; None if no process holds its lock."""
        try:
            facts: dict[str, Any] = json.loads(read_bytes(self.folder(case_id) / "running.json") or b"")
        except (ValueError, DamagedError):
            return None
        try:
            with self.lock(case_id).acquire(timeout=0):
                return None
        except Timeout:
            return facts

    # --- the end ------------------------------------------------------------------------------------------------

    def store_evaluated(self, case_id: str, facts: Mapping[str, object]) -> None:
        """Store that all rounds are evaluated, and the `facts` for `finish` after scoring."""
        self._write(case_id, RESULT, {"status": _EVALUATED, "failure": None, **facts}, durable=False)

    def evaluated_facts(self, case_id: str) -> dict[str, Any] | None:
        """Return the facts of `store_evaluated`; None if a round is not evaluated yet."""
        try:
            record = self._read(case_id, RESULT) or {}
        except DamagedError:
            return None
        if record.get("status") == _EVALUATED:
            return _facts(record)
        facts: dict[str, Any] | None = record.get(_EVALUATED)
        return facts

    def finish(self, case_id: str, facts: Mapping[str, object]) -> None:
        """Store that the case has finished. facts: bound, finished_at, provenance."""
        self.join_rounds(case_id)
        self._write(case_id, SCORES, self._scores(case_id), durable=False)
        self._write(case_id, RESULT, self.finished_record(case_id, facts))
        (self.folder(case_id) / "running.json").unlink(missing_ok=True)

    def finished_record(self, case_id: str, facts: Mapping[str, object]) -> dict[str, object]:
        """Return the content of result.json, once all other files are written.

        It lists them, so that integrity is checked from result.json plus sizes and modification times.
        """
        rounds, folder = self._read(case_id, ROUNDS), self.folder(case_id)
        files = {name: file_state(folder / name) for name in _JSON_FILES if (folder / name).is_file()}
        files |= {} if rounds is None else rounds["files"]
        stored = {"files": files, "exam_id": self.exam_id(case_id), "scores": list(self._scores(case_id)["scores"])}
        return {"status": "finished", "failure": None, **facts, _FILE_LIST: stored}

    def facts(self, case_id: str) -> dict[str, Any]:
        """Return the facts given to `finish`."""
        return _facts(self.result(case_id) or {})

    def remove_damaged(self, case_id: str, damaged: Iterable[str]) -> None:
        """Delete damaged files, and all rounds if a file of rounds is damaged."""
        names = set(damaged)
        if names & {ROUNDS, ALL_PREDICTIONS}:
            names |= {ROUNDS, ALL_PREDICTIONS}
        for name in names:
            remove(self.folder(case_id) / name)

    def fail(self, case_id: str, failure: Failure) -> None:
        """Store that the case failed. Complete rounds stay valid, and what `store_evaluated` stored."""
        log = None if failure.log is None else str(failure.log)
        record = {
            "status": "failed",
            "failure": {**vars(failure), "log": log},
            _EVALUATED: self.evaluated_facts(case_id),
        }
        self._write(case_id, RESULT, record)

    def result(self, case_id: str) -> dict[str, Any] | None:
        """Content of result.json; None if the case has not ended. Raises DamagedError."""
        record = self._read(case_id, RESULT)
        return None if record is None or record["status"] == _EVALUATED else record

    def state(self, case_id: str, *, thoroughly: bool = False) -> CaseState:
        """Return the state of the case, with its damaged files.

        Args:
            case_id: Id of the case.
            thoroughly: Read files even if their size and modification time are unchanged.

        Raises:
            IanvsError: A file may not be read.
        """
        try:
            result = self._read(case_id, RESULT)
        except DamagedError:
            return CaseState("unfinished", (RESULT,))
        if result is None or result["status"] == _EVALUATED:
            return CaseState("unfinished" if (self.folder(case_id) / CASE).exists() else None)
        if result["status"] != "finished":
            return CaseState(result["status"], result=result)
        stored = result.get(_FILE_LIST)
        if stored is not None and not thoroughly and not self._differing(case_id, stored["files"]):
            return CaseState("finished", (), result, stored["exam_id"], frozenset(stored["scores"]))
        damaged, records = [], dict[str, Record]()
        for name in _JSON_FILES:
            with suppress(DamagedError):
                if (record := self._read(case_id, name)) is not None:
                    records[name] = record
                    continue
            damaged.append(name)
        if ROUNDS in records:
            damaged += self._differing(case_id, records[ROUNDS]["files"], thoroughly=thoroughly)
        if damaged:
            return CaseState("unfinished", tuple(damaged), result)
        exam_id = str(records[CASE]["identity"].get("exam_id", ""))
        return CaseState("finished", (), result, exam_id, frozenset(records[SCORES]["scores"]))

    def status(self, case_id: str) -> Status | None:
        """Return the status; None if nothing is stored of the case."""
        return self.state(case_id).status

    def failure(self, case_id: str) -> Failure | None:
        return self.failure_in(self.result(case_id), case_id)

    def failure_in(self, result: Record | None, case_id: str) -> Failure | None:
        """Return the failure in `result`, the content of result.json."""
        if result is None or result["failure"] is None:
            return None
        stored = result["failure"]
        log = None if stored["log"] is None else self.workspace / stored["log"]  # workspaces may be moved
        return as_record(Failure, {**stored, "log": log}, self.folder(case_id) / RESULT)

    def is_earlier(self, case_id: str) -> bool:
        """Return whether an earlier version of ianvs stored the case, which can be read but not continued."""
        with suppress(DamagedError):
            return earlier.read_earlier(self.folder(case_id), CASE) is not None
        return True


def _facts(result: Record) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("status", "failure", _FILE_LIST)}


def name_key(case: TestCase) -> str:
    """Return the file name for a case, independent of its plugin's source and its exam."""
    rest = filter(None, [case.role, case.testenv])
    return digest([case.algorithm, case.modules, dict(case.hyperparameters), case.seed, *rest])
