"""Results of several workspaces beside each other: compared, merged into one, and as a history."""

from ianvs.results.comparing.comparison import Comparison, compare_sides
from ianvs.results.comparing.history import History, history_of
from ianvs.results.comparing.merging import Merged, merge_workspaces
from ianvs.results.comparing.sides import read_side, stored_results

__all__ = [
    "Comparison",
    "History",
    "Merged",
    "compare_sides",
    "history_of",
    "merge_workspaces",
    "read_side",
    "stored_results",
]
