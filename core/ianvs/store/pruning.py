"""Finds and removes unneeded files of a workspace."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import Timeout

from ianvs.base.errors import DamagedError
from ianvs.store.case_store import CaseStore
from ianvs.store.checksummed_json import remove

Kind = Literal["old", "finished", "lost"]


@dataclass(frozen=True)
class Prunable:
    """Removable files.

    Attributes:
        kind: "old": a model of a round before the last stored one. "finished": the model of a finished case, needed
            only for a job with more rounds. "lost": a case that belongs to no job of the workspace.
        algorithm: "" if the case does not state it.
        traces: Files elsewhere that refer only to a lost case.
        files: Number of removed files.
        bytes: Their size.
    """

    kind: Kind
    case_id: str
    algorithm: str
    folder: Path
    files: int
    bytes: int
    traces: tuple[Path, ...] = ()


def prunable(store: CaseStore, wanted: Collection[str]) -> Iterator[Prunable]:
    """Yield removable files. wanted: ids of cases that a job has; all others are lost."""
    traces = defaultdict[str, list[Path]](list)
    for path in store.root.glob(".names/*"):
        traces[path.read_text(errors="replace")].append(path)
    for folder in sorted(store.root.glob("[!.]*")):
        if folder.name not in wanted:
            traces[folder.name] += store.root.glob(f".locks/{folder.name}.lock")
            yield _prunable("lost", store, folder.name, folder, tuple(traces[folder.name]))
            continue
        models = sorted(folder.glob("rounds/[0-9]*/model"), key=lambda model: int(model.parent.name))
        yield from (_prunable("old", store, folder.name, model) for model in models[:-1])
        if models and store.status(folder.name) == "finished":
            yield _prunable("finished", store, folder.name, models[-1])


def prune(store: CaseStore, item: Prunable) -> bool:
    """Remove the files. Returns False, without removing them, if a process works on the case."""
    with suppress(Timeout, OSError), store.lock(item.case_id).acquire(timeout=0):
        for path in (item.folder, *item.traces):  # the lock is removed last
            remove(path)
        return not item.folder.exists()
    return False


def _prunable(kind: Kind, store: CaseStore, case_id: str, folder: Path, traces: tuple[Path, ...] = ()) -> Prunable:
    every = (*folder.rglob("*"), *traces)
    case, sizes = None, [path.lstat().st_size for path in every if path.is_symlink() or not path.is_dir()]
    with suppress(DamagedError):
        case = store.case(case_id)
    return Prunable(kind, case_id, case.algorithm if case else "", folder, len(sizes), sum(sizes), traces)
