"""Generated images that drift over ten buckets, like photographs over ten years: a substitute for CLEAR."""

from ianvs.testenv.datasets.drift.make_drift import BUCKETS, make_drift, write_drift
from ianvs.testenv.datasets.drift.objects import CLASSES as DRIFT_CLASSES

__all__ = ["BUCKETS", "DRIFT_CLASSES", "make_drift", "write_drift"]
