"""Results of several workspaces beside each other: compared, merged into one, and as a history."""

from ianvs.comparing.comparison import Comparison, compare_sides
from ianvs.comparing.history import History, history_of
from ianvs.comparing.job_places import stored_results
from ianvs.comparing.merging import Merged, merge_workspaces
from ianvs.comparing.sides import Side, read_side

__all__ = [
    "Comparison",
    "History",
    "Merged",
    "Side",
    "compare_sides",
    "history_of",
    "merge_workspaces",
    "read_side",
    "stored_results",
]
