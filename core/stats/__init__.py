"""Means, spreads and ranks. Arrays in, dataclasses out."""

from core.stats.summary import Ranking, Summary, rank, summarise

__all__ = ["Ranking", "Summary", "rank", "summarise"]
