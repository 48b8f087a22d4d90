"""Means, spreads and ranks. Arrays in, dataclasses out."""

from ianvs.stats.summary import Ranking, Summary, rank, summarise

__all__ = ["Ranking", "Summary", "rank", "summarise"]
