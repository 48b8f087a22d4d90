"""A finished case at rest: two files in place of dozens, unless they would be large.

result.json then holds, beside what it says of the case, each record as it was sealed ("records", by the name of its
file), and answers.zip the answers of all rounds. Once they are written, the files that they stand for are removed; a
case to which something is to be done gets them back first (CaseStore.unpack). Of a result.json that is damaged, each
record whose own seal holds is believed.
"""

import io
import json
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.digests import CHANGED, content, noted, parsed, sealed_bytes
from ianvs.base.errors import DamagedError
from ianvs.store.files import write_atomic

ANSWERS = "answers.zip"
_LARGEST = 2**18  # bytes of records; to read more takes so long that a few files less save nothing
_LARGEST_ANSWERS = 2**20

NotedFiles = Mapping[str, Sequence[int | str]]
"""By name in the folder of a case: what was `noted` of a file when it could be believed."""


@dataclass(frozen=True)
class Known:
    """Of a finished case what was looked at and is as it was stored.

    files: all that its result stands on. rounds: their records in order, None where they have to be read. scores: by
    name of their file, those that need not be read. exam_id: "" where it has to be read.
    """

    files: NotedFiles = field(default_factory=dict)
    rounds: Sequence[Mapping[str, Any]] | None = None
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    exam_id: str = ""


UNKNOWN = Known()


def known_of(result: Mapping[str, Any]) -> Known:
    """Of the content of a result.json that can be believed."""
    records: Mapping[str, Any] | None = result.get("records")
    if records is None:
        return Known(result["files"])
    rounds = [one for name, one in records.items() if name.startswith("rounds/")]
    scores = {name: one for name, one in records.items() if name.startswith("scores/")}
    return Known(result["files"], rounds, scores, str(records["case.json"]["identity"].get("exam_id", "")))


def files_of(result: Mapping[str, Any]) -> NotedFiles:
    """The files that a finished case stands on, beside its result.json."""
    records, answers = result.get("records", ()), result.get("answers")
    files = {name: before for name, before in result["files"].items() if name not in records}
    return files if answers is None else {ANSWERS: answers}


def pack(folder: Path, name: str, result: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> bool:
    """Bring the case in `folder` to rest, its result.json sealed as `name`; False, and nothing is done, if it is large.

    records: in the order of rounds.
    """
    if len(json.dumps(records)) > _LARGEST:
        return False
    kept = [file for file in result["files"] if file not in records]
    answers = None
    if kept and sum(result["files"][file][0] for file in kept) <= _LARGEST_ANSWERS:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in kept:
                archive.writestr(zipfile.ZipInfo(file), (folder / file).read_bytes())
        write_atomic(folder / ANSWERS, packed.getvalue())
        answers = noted(folder / ANSWERS)
    text = sealed_bytes({**result, "answers": answers, "records": records}, name)
    write_atomic(folder / "result.json", text)
    for file in (*records, *(kept if answers else ())):  # only now: whatever ends this process, all is there
        (folder / file).unlink(missing_ok=True)
    for inner in (*folder.glob("rounds/*"), folder / "rounds", folder / "scores"):
        with suppress(OSError):  # it is not empty: of the last round the model is kept
            inner.rmdir()
    return True


class AtRest:
    """Reads what is packed in the folders of cases below `root`. It keeps the records of one in memory."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._last: tuple[object, Mapping[str, Any], bool] = (None, {}, False)

    def record(self, case_id: str, name: str) -> dict[str, Any] | None:
        """None: it is not packed. Raises DamagedError where neither the seal of all holds nor its own."""
        found = self.result(case_id).get("records")
        if not isinstance(found, dict) or name not in found:
            return None
        told: dict[str, Any] | None = found[name]
        if not self._last[2] and (told := parsed(json.dumps(told).encode(), f"{case_id}/{name}")) is None:
            raise DamagedError(Path(self._root, case_id, "result.json"), CHANGED)
        return told

    def names(self, case_id: str) -> Collection[str]:
        """Of the records that are packed."""
        found = self.result(case_id).get("records")
        return found if isinstance(found, dict) else ()

    def answers(self, case_id: str, name: str) -> bytes | None:
        """The content of a file of a round; None: it can't be had."""
        path = f"{self._root}/{case_id}/{ANSWERS}"
        with suppress(Exception), zipfile.ZipFile(path) as archive:  # of a damaged one it raises a dozen kinds
            return archive.read(name)
        return None

    def result(self, case_id: str) -> Mapping[str, Any]:
        """What can be read of result.json, whether or not its seal holds; {}: nothing."""
        path = f"{self._root}/{case_id}/result.json"
        try:
            stat = os.stat(path)  # noqa: PTH116 - as in base/digests.py
        except OSError:
            return {}
        now = path, stat.st_mtime_ns, stat.st_size, stat.st_ino
        if self._last[0] != now:
            found, whole = None, None
            with suppress(ValueError, RecursionError, DamagedError):
                text = content(path) or b""
                whole = parsed(text, f"{case_id}/result.json")
                found = json.loads(text) if whole is None else whole
            self._last = now, found if isinstance(found, dict) else {}, whole is not None
        return self._last[1]
