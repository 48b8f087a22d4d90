"""replies.csv, or replies.csv.gz if it is large: written as a stream, and rewritten only for changed cases."""

import gzip
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ianvs.base.digests import file_state, has_changed
from ianvs.store.files import write_json

LARGEST = 100_000_000
"""Maximum size of replies.csv in bytes; a larger file is written as replies.csv.gz."""

_INDEX, _NEW = ".replies.json", ".replies.new"

Piece = tuple[str, Iterable[str]]
"""The key of a part of the file, such as digests, and its texts, which are read only if the key has changed."""


def write_reply_file(folder: Path, pieces: Sequence[Piece]) -> Path | None:
    """Write `pieces` one after the other, reusing unchanged ones. Returns the file's path, or None without pieces."""
    small, large = folder / "replies.csv", folder / "replies.csv.gz"
    before, places = _existing_file(folder)
    if before is not None and list(places) == [key for key, _ in pieces]:
        return before
    folder.mkdir(parents=True, exist_ok=True)
    path = None
    if pieces:
        reused_bytes = sum(places[key][2] for key, _ in pieces if key in places)
        is_small = reused_bytes <= LARGEST and _write_replies(small, pieces, before, places)
        path = small if is_small else large
        if not is_small:
            _write_replies(large, pieces, before, places)
    for other in {small, large, *([] if pieces else [folder / _INDEX])} - {path}:
        other.unlink(missing_ok=True)
    return path


_Places = dict[str, tuple[int, int, int]]  # by key of a piece: its offset, its size, the size of its text


def _write_replies(path: Path, pieces: Sequence[Piece], before: Path | None, old_places: _Places) -> bool:
    """Write the file. Returns False if it would be too large. Pieces are compressed one by one, which gzip allows."""
    places: _Places = {}
    new = path.with_name(_NEW)
    with new.open("wb") as file, (before if before == path else new).open("rb") as old:
        for key, texts in pieces:
            start, text_size = file.tell(), 0
            if before == path and key in old_places:
                offset, remaining, text_size = old_places[key]
                old.seek(offset)
                while remaining and (block := old.read(min(remaining, 1 << 20))):
                    remaining -= file.write(block)
            elif path.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    text_size = sum(packed.write(text.encode()) for text in texts)
            else:
                text_size = sum(file.write(text.encode()) for text in texts)
            places[key] = start, file.tell() - start, text_size
            if path.suffix != ".gz" and file.tell() > LARGEST:
                new.unlink()
                return False
    new.replace(path)
    write_json(path.with_name(_INDEX), {"file": path.name, "noted": file_state(path), "places": places})
    return True


def _existing_file(folder: Path) -> tuple[Path | None, _Places]:
    """Return the existing file and its pieces; (None, {}) if there is none, or it has been changed."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        index = json.loads((folder / _INDEX).read_bytes())
        path = folder / index["file"]
        if not has_changed(path, index["noted"]):
            return path, {key: (offset, size, text_size) for key, (offset, size, text_size) in index["places"].items()}
    return None, {}
