"""Where results live. The only package that knows file names of results."""

from ianvs.store.case_store import CaseStore, StoredModule
from ianvs.store.exam_store import ExamRecord, ExamStore
from ianvs.store.files import read_json, replace_folder, write_atomic, write_json
from ianvs.store.job_store import JobStore

__all__ = [
    "CaseStore",
    "ExamRecord",
    "ExamStore",
    "JobStore",
    "StoredModule",
    "read_json",
    "replace_folder",
    "write_atomic",
    "write_json",
]
