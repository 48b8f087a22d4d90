"""Generated street scenes in three domains that differ in appearance and classes: a substitute for real data in
tests.
"""

from ianvs.testenv.datasets.streets.looks import CLASSES as STREETS_CLASSES
from ianvs.testenv.datasets.streets.make_streets import make_streets, write_streets

__all__ = ["STREETS_CLASSES", "make_streets", "write_streets"]
