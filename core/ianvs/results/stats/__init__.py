"""Means, spreads, ranks and their certainty; equivalence with published results. Arrays in, dataclasses out."""

from ianvs.results.stats.agreement import Agreement, compare, unpaired_difference
from ianvs.results.stats.over_exams import ENOUGH_EXAMS, OverExams, exams_needed, over_exams
from ianvs.results.stats.pairs import Difference, Pairs, compare_all, paired_difference
from ianvs.results.stats.standing import RankInterval, Standings, standings
from ianvs.results.stats.summary import Summary, rank, summarise

__all__ = [
    "ENOUGH_EXAMS",
    "Agreement",
    "Difference",
    "OverExams",
    "Pairs",
    "RankInterval",
    "Standings",
    "Summary",
    "compare",
    "compare_all",
    "exams_needed",
    "over_exams",
    "paired_difference",
    "rank",
    "standings",
    "summarise",
    "unpaired_difference",
]
