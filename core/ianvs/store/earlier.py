"""Reads workspaces of ianvs 0.2, translated into the present layout. Nothing is ever written in this form.

Then each JSON file ended with a "digest" of its content and its name, or began with a "seal" of them. A case was stored
in one of two ways:

- case.json, rounds/<k>/{round.json, predictions.npz}, scores/<key>.json, rungs/<k>/<key>.json, result.json;
- once finished and small, all of these records within result.json, and all predictions.npz within answers.zip.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ianvs.base.digests import CHANGED_MESSAGE, read_bytes
from ianvs.base.errors import DamagedError

_ANSWERS = "answers.zip"  # contains rounds/<k>/predictions.npz
FILES = (_ANSWERS, "scores", "rungs")
"""Names in the folder of a case that the present layout does not have."""

_SEAL = b'{"seal": "'
_PRESENT = b'{"checksum'
_INTERNAL = ("files", "answers", "records", "digest", "seal")  # keys of result.json


def parse_earlier(text: bytes, name: str) -> dict[str, Any] | None:
    """Return the content of a JSON file that ianvs 0.2 wrote under `name`; None if it is damaged or something else."""
    try:
        if text.startswith(_SEAL):
            head, _, rest = text.partition(b"\n")
            seal = _digest(f"{name}\n".encode() + rest).encode()
            return dict(json.loads(text)) if head == _SEAL + seal + b'",' else None
        value = json.loads(text)
        if not isinstance(value, dict) or "digest" not in value:
            return None
        digest = value.pop("digest")
        return value if digest == _digest(f"{name}\n{json.dumps(value, separators=(',', ':'))}".encode()) else None
    except (ValueError, RecursionError):
        return None


def read_earlier(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the content that a file would have in the present layout.

    Args:
        folder: Of a case.
        name: case.json, result.json, rounds.json or scores.json.

    Returns:
        None if `folder` was not written by ianvs 0.2, or has nothing of the kind.

    Raises:
        DamagedError: A file is there and damaged.
    """
    result = _read(folder, "result.json")
    records: Mapping[str, Any] = (result or {}).get("records", {})
    if result is None and _read(folder, "case.json") is None:
        return None
    match name:
        case "case.json":
            return records.get(name) or _read(folder, name)
        case "result.json":
            return result and {key: value for key, value in result.items() if key not in _INTERNAL}
        case "rounds.json":
            return _rounds(folder, result or {}, records)
    return _scores(folder, result or {}, records)


def _scores(folder: Path, result: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, Any]:
    paths = [path.relative_to(folder).as_posix() for path in folder.glob("scores/*.json")]
    names = {*paths, *(name for name in result.get("files", ()) if name.startswith("scores/"))}
    scores = {name[7:-5]: _required(folder, name, records) for name in sorted(names)}
    rungs: dict[str, dict[str, Any]] = {}
    for path in folder.glob("rungs/*/*.json"):
        rungs.setdefault(path.parent.name, {})[path.stem] = _read(folder, f"rungs/{path.parent.name}/{path.name}")
    return {"scores": scores, "rungs": rungs}


def _rounds(folder: Path, result: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, Any]:
    finished = sum(name.endswith("/round.json") for name in result.get("files", ()))
    rounds: list[Mapping[str, Any]] = []
    files: dict[str, Any] = {}
    while len(rounds) < finished or (folder / f"rounds/{len(rounds)}/round.json").exists():
        record = _required(folder, f"rounds/{len(rounds)}/round.json", records)
        files[f"rounds/{len(rounds)}/predictions.npz"] = record["files"]["predictions.npz"]
        rounds.append(_translated(record))
    answers = result.get("answers")
    return {"rounds": rounds, "files": files if answers is None else {_ANSWERS: answers}}


def _required(folder: Path, name: str, records: Mapping[str, Any]) -> dict[str, Any]:
    record = records.get(name) or _read(folder, name)
    if record is None:
        raise DamagedError(folder / name, CHANGED_MESSAGE)
    return record


def _translated(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert one round. Its files were listed with their times, and each named the previous round."""
    files = {name: [size, digest] for name, (size, _, digest) in record["files"].items()}
    predictions = files.pop("predictions.npz")
    return {**record, "files": {name.removeprefix("model/"): file for name, file in files.items()}} | {
        "predictions": predictions
    }


def _read(folder: Path, name: str) -> dict[str, Any] | None:
    text = read_bytes(f"{folder}/{name}")
    if text is None or text.startswith(_PRESENT):
        return None
    value = parse_earlier(text, f"{folder.name}/{name}")
    if value is None:
        raise DamagedError(folder / name, CHANGED_MESSAGE)
    return value


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()
