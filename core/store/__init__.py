"""Where results live. The only package that knows file names of results."""

from core.store.cases import CaseStore
from core.store.exams import ExamRecord, ExamStore
from core.store.files import read_json, replace_folder, write_atomic, write_json
from core.store.jobs import JobStore

__all__ = [
    "CaseStore",
    "ExamRecord",
    "ExamStore",
    "JobStore",
    "read_json",
    "replace_folder",
    "write_atomic",
    "write_json",
]
