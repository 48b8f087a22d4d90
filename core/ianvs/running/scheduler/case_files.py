"""What the tasks of a case read and leave in its workspace."""

from __future__ import annotations

from pathlib import Path

from ianvs.exam.data.doubts import FOLDER as DOUBTS
from ianvs.processes.engines.engine import Files
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.scoring.misfits import FITS
from ianvs.store import CaseStore, ExamStore

__all__ = ["files_of_case", "files_of_exam"]


def files_of_case(request: CaseRequest) -> Files:
    """Of running, resuming or scoring the case."""
    workspace, case = request.workspace, request.case.id
    store = CaseStore(workspace)
    return Files(
        root=workspace,
        reads=(ExamStore(workspace).folder(request.exam_id),),
        writes=(store.folder(case),),
        notes=(store.root / ".names", store.root / ".lineage"),
        lock=Path(store.lock(case).lock_file),
    )


def files_of_exam(request: CaseRequest, log: Path) -> Files:
    """Of preparing the case's exam."""
    workspace, store = request.workspace, ExamStore(request.workspace)
    return Files(
        root=workspace,
        writes=(store.folder(request.exam_id), log),
        notes=tuple(workspace / "cache" / folder for folder in (DOUBTS, FITS)),
        lock=Path(store.lock(request.exam_id).lock_file),
    )
