"""Stores results. Only this package knows the file names of results."""

from ianvs.store.case_store import CaseState, CaseStore
from ianvs.store.checksummed_json import as_record
from ianvs.store.code_store import CodeStore
from ianvs.store.exam_store import ExamRecord, ExamStore
from ianvs.store.files import replace_folder, write_atomic, write_json
from ianvs.store.job_store import QUEUE_SECONDS, Axis, JobStore, Study, StudyStore, Trial
from ianvs.store.pruning import Prunable, prunable, prune
from ianvs.store.round_files import RoundFolder, StoredModule

__all__ = [
    "QUEUE_SECONDS",
    "Axis",
    "CaseState",
    "CaseStore",
    "CodeStore",
    "ExamRecord",
    "ExamStore",
    "JobStore",
    "Prunable",
    "RoundFolder",
    "StoredModule",
    "Study",
    "StudyStore",
    "Trial",
    "as_record",
    "prunable",
    "prune",
    "replace_folder",
    "write_atomic",
    "write_json",
]
