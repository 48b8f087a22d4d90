"""Means, spreads, ranks and how sure they are; equivalence with what others found. Arrays in, dataclasses out."""

from ianvs.results.stats.agreement import Agreement, compare, unpaired_difference
from ianvs.results.stats.comparison_bars import comparison_bars
from ianvs.results.stats.critical_values import MOST_COMPARED, critical_value
from ianvs.results.stats.over_exams import ENOUGH_EXAMS, OverExams, exams_needed, holm, over_exams
from ianvs.results.stats.pairs import (
    ENOUGH_FOR_BOOTSTRAP,
    Difference,
    Pairs,
    compare_all,
    moved_half_way,
    paired_difference,
)
from ianvs.results.stats.standing import (
    RankInterval,
    Standings,
    expected_largest,
    pareto_front,
    samples_to_separate,
    seeds_to_separate,
    standings,
    unseen_failure,
    wild_seeds,
)
from ianvs.results.stats.summary import Interval, Summary, mean_interval, rank, summarise

__all__ = [
    "ENOUGH_EXAMS",
    "ENOUGH_FOR_BOOTSTRAP",
    "MOST_COMPARED",
    "Agreement",
    "Difference",
    "Interval",
    "OverExams",
    "Pairs",
    "RankInterval",
    "Standings",
    "Summary",
    "compare",
    "compare_all",
    "comparison_bars",
    "critical_value",
    "exams_needed",
    "expected_largest",
    "holm",
    "mean_interval",
    "moved_half_way",
    "over_exams",
    "paired_difference",
    "pareto_front",
    "rank",
    "samples_to_separate",
    "seeds_to_separate",
    "standings",
    "summarise",
    "unpaired_difference",
    "unseen_failure",
    "wild_seeds",
]
