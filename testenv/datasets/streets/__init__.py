"""Generated street scenes in three domains that differ in look and in classes: a stand-in to try the machinery on."""

from ianvs.testenv.datasets.streets.looks import CLASSES as STREETS_CLASSES
from ianvs.testenv.datasets.streets.make_streets import make_streets, write_streets

__all__ = ["STREETS_CLASSES", "make_streets", "write_streets"]
