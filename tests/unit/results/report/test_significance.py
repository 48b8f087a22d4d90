"""How sure a ranking is, from the results of cases: who is compared with whom, in which direction, and what is said."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.results.report.build_document import write_reports
from ianvs.results.report.columns import Column
from ianvs.results.report.leaderboard import Leaderboard, build_leaderboard
from ianvs.results.report.notes import notes_of
from ianvs.results.report.values import difference_text
from ianvs.results.stats import Difference
from tests.errors import printed
from tests.unit.results.report.report_cases import METRICS, WORKSPACE, cells, result

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
    assert any("even and equal" in said for said in table.statements)
    printed("\n".join(table.statements))


def test_where_less_is_better_the_smallest_is_in_tier_a() -> None:
    table = board(cases(loser=0.2, winner=0.9), sort_by=(("lost", False),))
    assert [row.algorithm for row in table.rows] == ["winner", "loser"]
    assert cells(table, "Tier") == ["A", "B"]
    difference = table.rows[1].to_best
    assert difference.mean == pytest.approx(0.7, abs=0.02), "in the direction of the metric: the loser has more"
    assert difference.low < 0.7 < difference.high
    assert difference.separated


def test_a_bound_has_no_standing_but_a_difference_to_the_best() -> None:
    bound = [result("joint", seed, 0.95 + NOISE[seed], bound=True) for seed in range(4)]
    table = board([*cases(one=0.5, other=0.8), *bound])
    joint = next(row for row in table.rows if row.bound)
    assert joint.standing is None
    assert joint.to_best.mean == pytest.approx(0.15, abs=0.02)
    assert [row.standing.high for row in table.rows if not row.bound] == [1, 2]


def test_one_seed_tells_no_spread_and_the_columns_of_the_first_benchmark_stay() -> None:
    table = board([result("a", 0, 0.5), result("b", 0, 0.6)], seeds=1)
    assert all(row.standing is None for row in table.rows)
    assert [column.title for column in table.columns][:3] == ["Rank", "Algorithm", "accuracy"]


def test_a_row_that_lacks_a_seed_is_not_compared() -> None:
    table = board(cases(one=0.5, other=0.8, third=0.7)[:-1])
    assert [(row.algorithm, row.standing is None) for row in table.rows] == [
        ("other", False),
        ("one", False),
        ("third", True),
    ]


def test_a_row_with_another_number_of_seeds_keeps_the_standings_of_the_exam() -> None:
    table = board([*cases(one=0.5, other=0.8), *(result("more", seed, 0.2 + NOISE[seed % 4]) for seed in range(6))])
    assert [(row.algorithm, row.standing.tier) for row in table.rows] == [("other", "A"), ("one", "B"), ("more", "C")]
    assert any("(4 to 6 seeds" in said for said in table.statements)


def test_two_deterministic_methods_that_differ_are_apart_on_this_test_set() -> None:
    table = board([result(name, seed, score) for name, score in (("a", 0.9), ("b", 0.8)) for seed in range(3)], seeds=3)
    assert cells(table, "Tier") == ["A", "B"]
    assert table.rows[1].to_best.separated


def test_differences_to_the_baseline_are_those_of_the_pairs() -> None:
    table = board(cases(base=0.5, better=0.55, level=0.501), baseline="base")
    by_name = {row.algorithm: row for row in table.rows}
    assert by_name["base"].to_baseline is None
    [told] = table.significance
    for name in ("better", "level"):
        wanted = told.pairs.between(told.rows.index(name), told.rows.index("base"))
        assert by_name[name].to_baseline == wanted
    assert by_name["better"].to_best is None
    assert by_name["base"].to_best.mean == pytest.approx(-by_name["better"].to_baseline.mean)


def test_the_table_and_every_chart_say_what_the_pairs_say(tmp_path: Path) -> None:
    """An interval excludes 0 exactly where two rows are separated, and the text has the digits to show it."""
    table = board(cases(loser=0.2, equal=0.61, even=0.605, winner=0.625))
    for row in table.rows[1:]:
        mean, margin = (float(part) for part in difference_text(row.to_best).split(" ± "))
        assert (abs(mean) > margin) is row.to_best.separated
    assert difference_text(Difference(0.05479, -0.0001, 0.10968, separated=False)) == "+0.0548 ± 0.0549"
    assert difference_text(Difference(0.3333333, 0.1, 0.5666667, separated=True)) == "+0.33 ± 0.23"
    assert difference_text(Difference(0.0, None, None, separated=False)) == "equal"
    assert difference_text(Difference(0.3, 0.3 - 1e-16, 0.3 + 1e-16, separated=True)).startswith("+0.3")  # rounding
    write_reports(
        table, cases(loser=0.2, equal=0.61, even=0.605, winner=0.625), RankSpec((("accuracy", True),)), tmp_path
    )
    page = (tmp_path / "rank" / "leaderboard.md").read_text()
    for row in table.rows[1:]:
        assert difference_text(row.to_best) in page


def test_a_collapse_is_named_with_its_score_and_what_seeds_cannot_show_is_said() -> None:
    results = [*cases(one=0.9, other=0.8), *(result("wild", seed, 0.1 if seed == 2 else 0.85) for seed in range(4))]
    said = " ".join(map(str, notes_of(board(results))))
    assert "(0.1; all: 0.85, 0.85, 0.1, 0.85)" in said
    assert "53 %" in said
    printed("\n".join(str(note) for note in notes_of(board(results)) if "wild" in str(note) or "53 %" in str(note)))


def test_a_row_whose_seeds_differ_far_more_than_others_has_a_note() -> None:
    scores = {"steady": (0.86, 0.87, 0.85, 0.86), "other": (0.80, 0.81, 0.79, 0.80), "unstable": (0.25, 0.7, 0.45, 0.6)}

    def subjects(names: tuple[str, ...]) -> list[str]:
        results = [result(name, seed, score) for name in names for seed, score in enumerate(scores[name])]
        return [note.subject for note in notes_of(board(results)) if note.about == "row" and "spread" in note.text]

    assert subjects(("steady", "other")) == []
    assert subjects(("steady", "other", "unstable")) == ["unstable"]
    assert subjects(("unstable",)) == ["unstable"], "on its own, it has no standing"


def test_with_two_seeds_a_third_is_asked_for() -> None:
    results = [result(name, seed, 0.5 + 0.01 * seed + 0.1 * k) for k, name in enumerate("ab") for seed in range(2)]
    assert any("run a third" in note.text for note in notes_of(board(results, seeds=2)) if note.kind == "limit")


def test_seeds_are_paired_whatever_the_order_of_the_results() -> None:
    results = cases(one=0.5, other=0.55)
    shuffled = [results[i] for i in np.random.default_rng(0).permutation(len(results))]
    first, second = ({row.algorithm: row.to_best for row in board(some).rows} for some in (results, shuffled))
    assert first == second


def test_the_chance_of_the_samples_widens_ranks_and_this_test_set_stands_beside_it() -> None:
    """By the seeds alone the two are apart; test sets of a few samples leave that open."""
    random = np.random.default_rng(0)
    results = cases(one=0.5, other=0.55)
    assert board(results).rows[0].standing.high == 1
    assert board(results).rows[0].standing_here is None
    loose = [replace(one, samples={"accuracy": 0.5 + random.normal(size=20)}) for one in results]
    table = board(loose)
    assert table.rows[0].standing.high == 2
    assert table.rows[0].standing_here.high == 1
    [said] = table.statements
    assert "4 seeds" in said and "1 pair is" in said
    printed(said)
    tier = next(column for column in table.columns if column.title == "Tier")
    printed(tier.meaning)


def test_groups_of_a_hundred_are_read_as_those_of_twenty_where_an_older_row_has_these() -> None:
    random = np.random.default_rng(0)
    many = {(name, seed): random.normal(size=100) for name in ("one", "other") for seed in range(4)}
    fine = [
        replace(one, samples={"accuracy": many[one.case.algorithm, one.case.seed]})
        for one in cases(one=0.5, other=0.55)
    ]
    mixed = [
        replace(one, samples={"accuracy": one.samples["accuracy"].reshape(5, 20).mean(axis=0)})
        if one.case.algorithm == "one"
        else one
        for one in fine
    ]
    coarse = [replace(one, samples={"accuracy": one.samples["accuracy"].reshape(5, 20).mean(axis=0)}) for one in fine]
    assert board(mixed).significance[0].pairs.margin == pytest.approx(board(coarse).significance[0].pairs.margin)
    odd = [replace(one, samples={"accuracy": np.zeros(30)}) if one.case.algorithm == "one" else one for one in fine]
    assert board(odd).significance[0].groups == 0


def test_joint_inference_digits_is_open_over_samples_and_separated_on_its_own_test_set() -> None:
    golden = json.loads((Path(__file__).parents[3] / "golden" / "statistics.json").read_text(encoding="utf-8"))
    case, here = (one for one in golden["cases"] if one["name"].startswith("joint_inference_digits"))
    results = [
        replace(
            result(f"row{i}", seed, case["scores"][seed][i]),
            samples={"accuracy": np.array(case["parts"][seed][i])},
        )
        for i in range(8)
        for seed in range(3)
    ]
    table = board(results, seeds=3)
    assert cells(table, "Tier") == ["A"] * 8
    assert [row.standing_here.tier for row in table.rows] == here["expected"]["tier"]
    [said] = table.statements
    assert "6 distinct methods" in said and "15 pairs" in said


def test_where_all_scores_are_the_same_nothing_is_said_of_pairs() -> None:
    samples = {"accuracy": np.linspace(0, 1, 20)}
    same = [replace(result(name, seed, 0.5), samples=samples) for name in ("one", "other") for seed in range(4)]
    [said] = board(same).statements
    printed(said)


def test_where_nothing_is_separated_the_sentence_says_how_many_seeds_would_help() -> None:
    random = np.random.default_rng(1)
    results = [result(f"m{k}", seed, random.normal(0.5 + 0.005 * k, 0.02)) for k in range(7) for seed in range(3)]
    [said] = board(results, seeds=3).statements
    assert "7 distinct methods" in said and "80 %" in said
    printed(said)


def test_where_samples_alone_hide_a_difference_it_says_how_many_would_help() -> None:
    parts = np.tile([0.0, 1.0], 10)
    results = [
        replace(one, samples={"accuracy": parts if one.case.algorithm == "one" else 1 - parts})
        for one in cases(one=0.50, other=0.51)
    ]
    [said] = board(results).statements
    printed(said)


def test_the_best_of_several_configurations_is_said_to_be_chosen_on_what_is_reported() -> None:
    results = [result("a", seed, 0.5 + 0.1 * i, hyperparameters={"i": i}) for i in range(3) for seed in range(2)]
    results = [
        replace(one, metrics={**one.metrics, "accuracy": one.metrics["accuracy"] + 0.01 * one.case.seed})
        for one in results
    ]
    [said] = [said for said in board(results, seeds=2).statements if "Selection" in said]
    best = "the best of 3 configurations of a (chance alone improves its accuracy by about 0.0043)"
    assert best in said  # .869 x .00707 / sqrt 2
    assert not any("Selection" in said for said in board(cases(a=0.5, b=0.6)).statements)


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


def test_identical_methods_have_the_same_mark_whatever_clock_and_allocator_say() -> None:
    results = [
        replace(one, rounds=tuple(replace(r, train_seconds=seconds, peak_memory_bytes=memory) for r in one.rounds))
        for name, seconds, memory in (("one", 3.0, 200_000), ("twin", 3.1, 1_700_000))
        for one in (result(name, seed, 0.8 + NOISE[seed]) for seed in range(4))
    ]
    assert [row.pareto for row in board(results).rows] == [True, True]


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
    assert [line["rank_high_on_this_test_set"] for line in lines] == ["1", "", "2", ""]
    assert lines[0]["ranks_allow_for"] == "seeds"
    assert lines[2]["minus_best_separated"] == "True"
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
    printed("\n".join(line for line in page.splitlines() if "6 exams" in line))


def test_a_direction_that_nobody_gave_is_not_said() -> None:
    """Time to First Token of a plugin is not better for being higher."""
    told = [Metric("Time to First Token", "system", "What a file computes.", direction_known=False), METRICS[1]]
    results = [replace(one, metrics={"Time to First Token": 0.1, **one.metrics}) for one in cases(a=0.5, b=0.6)]

    def column(*sort_by: tuple[str, bool]) -> Column:
        found = build_leaderboard(results, RankSpec(sort_by), told, [metric.name for metric in told], 4, WORKSPACE)
        return next(one for one in found.columns if one.kind == "metric")

    assert column(("lost", False)).higher_is_better is None
    assert column(("Time to First Token", False)).higher_is_better is False, "who sorts by it has said so"
