"""How sure a ranking is, from the results of cases: who is compared with whom, in which direction, and what is said."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.results.report import Leaderboard, build_leaderboard, write_reports
from tests.results.report.report_cases import METRICS, WORKSPACE, cells, result

NOISE = (0.0, 0.01, -0.01, 0.005)


def cases(**scores: float) -> list[CaseResult]:
    """Four seeds of each algorithm around its score; two algorithms vary a little differently."""
    return [
        result(name, seed, score + NOISE[(seed * (1 + k)) % 4], 1 - score - NOISE[(seed * (1 + k)) % 4])
        for k, (name, score) in enumerate(scores.items())
        for seed in range(4)
    ]


def board(results: list[CaseResult], seeds: int = 4, **rank: object) -> Leaderboard:
    spec = RankSpec(**{"sort_by": (("accuracy", True),), **rank})
    return build_leaderboard(results, spec, METRICS, ["accuracy", "lost"], seeds, WORKSPACE)


def test_a_clear_winner_two_equals_and_a_clear_loser() -> None:
    table = board(cases(loser=0.2, equal=0.61, even=0.605, winner=0.9))
    assert cells(table, "Rank") == [1, 2, 3, 4]
    assert cells(table, "Rank_low") == [1, 2, 2, 4]
    assert cells(table, "Rank_high") == [1, 3, 3, 4]
    assert cells(table, "Tier") == ["A", "B", "B", "C"]
    assert cells(table, "P_best")[0] == pytest.approx(1, abs=0.01)
    assert any("Not separated: even and equal." in said for said in table.statements)


def test_where_less_is_better_the_smallest_is_in_tier_a() -> None:
    table = board(cases(loser=0.2, winner=0.9), sort_by=(("lost", False),))
    assert [row.algorithm for row in table.rows] == ["winner", "loser"]
    assert cells(table, "Tier") == ["A", "B"]
    difference = table.rows[1].to_best
    assert difference.mean == pytest.approx(0.7, abs=0.02), "in the direction of the metric: the loser has more"
    assert difference.low < 0.7 < difference.high


def test_a_bound_has_no_standing_but_a_difference_to_the_best() -> None:
    bound = [result("joint", seed, 0.95 + NOISE[seed], bound=True) for seed in range(4)]
    table = board([*cases(one=0.5, other=0.8), *bound])
    joint = next(row for row in table.rows if row.bound)
    assert joint.standing is None
    assert joint.to_best.mean == pytest.approx(0.15, abs=0.02)
    assert [row.standing.high for row in table.rows if not row.bound] == [1, 2]


def test_one_seed_tells_no_spread_and_the_columns_of_the_first_benchmark_stay() -> None:
    table = board([result("a", 0, 0.5), result("b", 0, 0.6)], seeds=1)
    assert all(row.standing is None and not row.intervals for row in table.rows)
    assert [column.title for column in table.columns][:3] == ["Rank", "Algorithm", "accuracy"]


def test_a_row_that_lacks_a_seed_is_not_compared() -> None:
    table = board(cases(one=0.5, other=0.8, third=0.7)[:-1])
    assert [(row.algorithm, row.standing is None) for row in table.rows] == [
        ("other", False),
        ("one", False),
        ("third", True),
    ]


def test_the_baseline_is_compared_seed_by_seed_with_holms_steps() -> None:
    table = board(cases(base=0.5, better=0.55, level=0.501), baseline="base")
    by_name = {row.algorithm: row for row in table.rows}
    assert by_name["base"].to_baseline is None
    values = {name: np.array(row.by_seed["accuracy"]) for name, row in by_name.items()}
    single = [scipy.stats.ttest_rel(values[name], values["base"]).pvalue for name in ("better", "level")]
    adjusted = [by_name[name].to_baseline.p for name in ("better", "level")]
    assert adjusted == pytest.approx([2 * single[0], max(2 * single[0], single[1])])
    wanted = scipy.stats.ttest_rel(values["better"], values["base"]).confidence_interval()
    found = by_name["better"].to_baseline
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_seeds_are_paired_whatever_the_order_of_the_results() -> None:
    results = cases(one=0.5, other=0.55)
    shuffled = [results[i] for i in np.random.default_rng(0).permutation(len(results))]
    first, second = ({row.algorithm: row.to_best for row in board(some).rows} for some in (results, shuffled))
    assert first == second


def test_the_chance_of_the_samples_widens_ranks() -> None:
    """By the seeds alone the two are apart; test sets of a few samples leave that open."""
    random = np.random.default_rng(0)
    results = cases(one=0.5, other=0.55)
    assert board(results).rows[0].standing.high == 1
    loose = [replace(one, samples={"accuracy": 0.5 + random.normal(size=20)}) for one in results]
    table = board(loose)
    assert table.rows[0].standing.high == 2
    assert any("the choice of test samples" in said for said in table.statements)


def test_where_nothing_is_separated_the_sentence_says_how_many_seeds_would_help() -> None:
    random = np.random.default_rng(1)
    results = [result(f"m{k}", seed, random.normal(0.5 + 0.01 * k, 0.02)) for k in range(7) for seed in range(3)]
    table = board(results, seeds=3)
    assert set(cells(table, "Tier")) == {"A"}
    assert any("No two of the 7 methods are separated; as they differ now, about" in said for said in table.statements)


def test_the_best_of_several_configurations_is_said_to_be_chosen_on_what_is_reported() -> None:
    results = [result("a", seed, 0.5 + 0.1 * i, hyperparameters={"i": i}) for i in range(3) for seed in range(2)]
    assert any("Several configurations of a (3)" in said for said in board(results, seeds=2).statements)
    assert not any("Several" in said for said in board(cases(a=0.5, b=0.6)).statements)


def test_the_pareto_mark_is_for_whom_nobody_beats_in_score_time_and_memory() -> None:
    results = cases(slow=0.9, quick=0.5, dominated=0.4)
    quicker = {"slow": 3.0, "quick": 1.0, "dominated": 2.0}
    results = [
        replace(
            one,
            rounds=tuple(
                replace(r, train_seconds=quicker[one.case.algorithm], peak_memory_bytes=10**8) for r in one.rounds
            ),
        )
        for one in results
    ]
    assert {row.algorithm for row in board(results).rows if row.pareto} == {"slow", "quick"}


def test_statistics_csv_has_every_row_and_metric(tmp_path: Path) -> None:
    results = cases(one=0.5, other=0.8)
    table = board(results, baseline="one")
    write_reports(table, results, RankSpec((("accuracy", True),)), tmp_path)
    lines = list(csv.DictReader((tmp_path / "rank" / "statistics.csv").open()))
    assert [(line["Algorithm"], line["Metric"]) for line in lines] == [
        ("other", "accuracy"),
        ("other", "lost"),
        ("one", "accuracy"),
        ("one", "lost"),
    ]
    assert float(lines[0]["low"]) == table.rows[0].intervals["accuracy"].low
    assert float(lines[0]["minus_baseline"]) == pytest.approx(0.3, abs=0.01)
    assert lines[1]["minus_baseline"] == ""
    assert "How sure" in (tmp_path / "rank" / "leaderboard.md").read_text()


def test_several_exams_have_a_table_of_their_own(tmp_path: Path) -> None:
    def in_exam(name: str, **scores: float) -> list[CaseResult]:
        return [
            replace(one, case=replace(one.case, id=name + one.case.id, row=name + one.case.row, testenv=name))
            for one in cases(**scores)
        ]

    results = [*in_exam("first", a=0.5, b=0.8, c=0.1), *in_exam("second", a=0.9, b=0.8)]
    table = board(results)
    found = table.over_exams
    assert found.exams == ("first", "second")
    ranks = dict(zip(found.names, (row and row.mean_rank for row in found.together.rows), strict=True))
    assert ranks == {"b": 1.5, "a": 1.5, "c": None}
    write_reports(table, results, RankSpec((("accuracy", True),)), tmp_path)
    page = (tmp_path / "rank" / "leaderboard.md").read_text()
    assert "## Over exams" in page
    assert "lacks an exam" in page
    assert "with 2 methods the pairwise tests can say something from 6 exams on" in page
