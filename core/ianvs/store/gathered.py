"""What a report reads of a finished case, in one file beside the dozen that it stands in.

It is a copy that saves time: to open a file and to check its digest takes longer than to read what is in it. It is
believed only if it is the one that result.json noted; nothing is lost where it is not there, or not as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.digests import content, noted, parsed
from ianvs.base.errors import IanvsError
from ianvs.store.files import write_atomic

GATHERED = "gathered.json"
LARGEST = 2**18  # bytes; to read more takes so long that a few files less save nothing
_OF_FILES = ("modules", "files", "after", "digest")  # of a round: for who goes on from it, not for who reports

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


def write_gathered(
    folder: Path, exam_id: str, rounds: Sequence[Mapping[str, Any]], scores: Mapping[str, Mapping[str, Any] | None]
) -> list[int | str] | None:
    """Write the copy into the `folder` of a case, and what `gathered` needs to believe it; None: it is not worth it."""
    kept = [{name: value for name, value in one.items() if name not in _OF_FILES} for one in rounds]
    text = json.dumps({"exam_id": exam_id, "rounds": kept, "scores": scores}, separators=(",", ":"))
    path = folder / GATHERED
    if len(text) > LARGEST:
        path.unlink(missing_ok=True)
        return None
    write_atomic(path, text.encode())
    return noted(path)


def gathered(path: str, files: NotedFiles, before: Sequence[int | str] | None) -> Known:
    """What `write_gathered` wrote at `path`; where that is not there or another file, `files` alone."""
    found: Mapping[str, Any] | None = None
    if before is not None:
        with suppress(IanvsError):
            found = parsed(content(path) or b"", GATHERED, before)
    return Known(files) if found is None else Known(files, found["rounds"], found["scores"], found["exam_id"])
