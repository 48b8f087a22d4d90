"""Types of labels. A data type is one class, found by an entry point or by the `url` of an author's file."""

from ianvs.exam.data_types.catalogue import ENTRY_POINTS, data_type
from ianvs.exam.data_types.data_type import LONGEST_ANSWER, DataType, one_for_each

__all__ = ["ENTRY_POINTS", "LONGEST_ANSWER", "DataType", "data_type", "one_for_each"]
