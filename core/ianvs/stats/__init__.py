"""Means, spreads, ranks, and agreement with what others found. Arrays in, dataclasses out."""

from ianvs.stats.agreement import SINGLE_RUN, Agreement, compare
from ianvs.stats.summary import Ranking, Summary, rank, summarise

__all__ = ["SINGLE_RUN", "Agreement", "Ranking", "Summary", "compare", "rank", "summarise"]
