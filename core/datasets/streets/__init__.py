"""Generated street scenes in three domains that differ in look and in classes: a stand-in to try the machinery on."""

from core.datasets.streets.looks import CLASSES as STREETS_CLASSES
from core.datasets.streets.make import make_streets, write_streets

__all__ = ["STREETS_CLASSES", "make_streets", "write_streets"]
