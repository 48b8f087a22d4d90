"""Means, spreads, ranks and how sure they are; equivalence with what others found. Arrays in, dataclasses out."""

from ianvs.results.stats.agreement import Agreement, compare, unpaired_difference
from ianvs.results.stats.over_exams import ENOUGH_EXAMS, OverExams, exams_needed, over_exams
from ianvs.results.stats.pairs import (
    ENOUGH_FOR_BOOTSTRAP,
    Difference,
    Pairs,
    Source,
    compare_all,
    holm,
    paired_difference,
)
from ianvs.results.stats.standing import RankInterval, pareto_front, seeds_to_separate, standings
from ianvs.results.stats.summary import Interval, Summary, mean_interval, rank, summarise

__all__ = [
    "ENOUGH_EXAMS",
    "ENOUGH_FOR_BOOTSTRAP",
    "Agreement",
    "Difference",
    "Interval",
    "OverExams",
    "Pairs",
    "Source",
    "RankInterval",
    "Summary",
    "compare",
    "compare_all",
    "exams_needed",
    "holm",
    "mean_interval",
    "over_exams",
    "paired_difference",
    "pareto_front",
    "rank",
    "seeds_to_separate",
    "standings",
    "summarise",
    "unpaired_difference",
]
