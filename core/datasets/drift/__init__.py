"""Generated pictures that drift over ten buckets, as photographs do over ten years: a stand-in for CLEAR."""

from core.datasets.drift.make import BUCKETS, make_drift, write_drift
from core.datasets.drift.objects import CLASSES as DRIFT_CLASSES

__all__ = ["BUCKETS", "DRIFT_CLASSES", "make_drift", "write_drift"]
