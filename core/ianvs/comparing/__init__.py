"""Results of several workspaces beside each other: compared, merged into one, and as a history."""

from ianvs.comparing.comparison import Comparison, compare_sides
from ianvs.comparing.sides import Side, read_side

__all__ = ["Comparison", "Side", "compare_sides", "read_side"]
