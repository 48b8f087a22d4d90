"""The results of a job, read from its workspace."""

from ianvs.results.stored.job_results import Results, load_results, record_of

__all__ = ["Results", "load_results", "record_of"]
