"""What stands in a leaderboard, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ianvs.base.types import CaseResult, Failure, RoundResult
from ianvs.config.spec import RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.system import SYSTEM
from ianvs.results.report.build_document import document_of
from ianvs.results.report.columns import title_of
from ianvs.results.report.leaderboard import build_leaderboard
from ianvs.results.report.leaderboard_row import COSTS
from tests.errors import printed
from tests.unit.results.report.report_cases import ACCURACY, METRICS, board, cells, failed, result, suite


def test_seeds_are_repetitions_of_one_row() -> None:
    table = board([result("a", 0, 0.2), result("a", 1, 0.4), result("a", 2, 0.6)], seeds=3)
    (row,) = table.rows
    assert row.metrics["accuracy"].mean == pytest.approx(0.4)
    assert row.metrics["accuracy"].std == pytest.approx(0.2)
    assert cells(table, "Seeds") == [3]


def test_the_columns_come_in_the_order_of_the_first_benchmarks_report() -> None:
    modules = (("basemodel", "Net"), ("hard_example_mining", "IBT"))
    table = board([result("a", hyperparameters={"learning_rate": 0.1}), result("b", modules=modules)])
    assert [column.title for column in table.columns] == [
        *("Rank", "Algorithm", "accuracy", "accuracy_std", "lost", "lost_std", "Paradigm", "Round", "Dataset"),
        *("Basemodel", "Hard_example_mining", "Learning_rate", "Seeds", "Pareto"),
        *("Train_seconds", "Eval_seconds", "Peak_memory_mb", "Status", "Time"),
    ]


def test_hyperparameters_are_columns_in_order_of_first_appearance_and_blank_where_there_is_none() -> None:
    table = board(
        [result("a", 0, 0.9, hyperparameters={"z": 1, "b": 2}), result("c", 0, 0.8, hyperparameters={"a": 3})]
    )
    assert [c.title for c in table.columns if c.kind == "hyperparameter"] == ["Z", "B", "A"]
    assert cells(table, "A") == [None, 3]


def test_a_hyperparameter_named_like_a_fixed_column_does_not_take_its_place() -> None:
    table = board([result("a", hyperparameters={"time": 7, "accuracy": 1})])
    titles = [column.title for column in table.columns]
    assert len(set(titles)) == len(titles)
    assert cells(table, "Time") == ["2026-03-01 12:00:00"]
    [other] = [title for title in titles if title.startswith("Time ")]
    assert cells(table, other) == [7]


def test_every_column_says_what_it_means() -> None:
    assert all(column.meaning for column in board(suite(), seeds=2).columns)


def test_rows_are_sorted_by_the_first_metric_in_its_own_direction_when_the_job_says_nothing() -> None:
    results = [result("a", 0, 0.1, 0.3), result("b", 0, 0.2, 0.4)]
    assert cells(board(results), "Algorithm") == ["b", "a"]
    assert cells(board(results, metrics=METRICS[::-1]), "Algorithm") == ["a", "b"]


def test_sort_by_ranks_by_several_columns_each_in_its_direction() -> None:
    results = [result("a", 0, 0.5, 0.3), result("b", 0, 0.5, 0.1), result("c", 0, 0.9, 0.9)]
    table = board(results, sort_by=(("accuracy", True), ("lost", False)))
    assert cells(table, "Algorithm") == ["c", "b", "a"]
    assert cells(table, "Rank") == [1, 2, 3]


def test_ascending_and_descending_differ() -> None:
    results = [result("a", 0, 0.1), result("b", 0, 0.2)]
    assert cells(board(results, (("accuracy", True),)), "Algorithm") == ["b", "a"]
    assert cells(board(results, (("accuracy", False),)), "Algorithm") == ["a", "b"]


def test_exact_ties_share_a_rank_whatever_the_order_of_their_seeds() -> None:
    scores = (0.1, 0.2, 0.7)
    results = [result("best", s, 0.9) for s in range(3)]
    results += [result("a", s, score) for s, score in enumerate(scores)]
    results += [result("b", s, score) for s, score in enumerate(reversed(scores))]
    results += [result("last", s, 0.0) for s in range(3)]
    table = board(results, seeds=3)
    assert cells(table, "Rank") == [1, 2, 2, 4]
    assert cells(table, "Algorithm") == ["best", "a", "b", "last"]


def test_a_bound_stands_where_it_belongs_and_takes_no_rank() -> None:
    table = board([result("a", 0, 0.9), result("joint", 0, 0.8, bound=True), result("b", 0, 0.7)])
    assert cells(table, "Algorithm") == ["a", "joint", "b"]
    assert cells(table, "Rank") == [1, "bound", 2]


ALONE = {"paradigm": "singletasklearning", "round_names": ("everything",)}


def test_who_learned_at_once_what_others_learn_in_rounds_is_a_bound() -> None:
    table = board([result("a", 0, 0.7), result("alone", 0, 0.9, **ALONE), result("b", 0, 0.6)])
    assert cells(table, "Algorithm") == ["alone", "a", "b"]
    assert cells(table, "Rank") == ["bound", 1, 2]
    (note,) = document_of(table).texts("bound")
    printed(note)


def test_those_that_all_learned_at_once_are_ranked() -> None:
    assert cells(board([result("a", 0, 0.7, **ALONE), result("b", 0, 0.9, **ALONE)]), "Rank") == [1, 2]
    one_round = {"round_names": ("only",)}
    assert cells(board([result("a", 0, 0.7, **one_round), result("b", 0, 0.9, **ALONE)]), "Rank") == [1, 2]


def test_exams_of_one_round_and_of_several_don_t_mix() -> None:
    several = result("a", 0, 0.7)
    short = [result("b", 0, 0.6, **ALONE), result("c", 0, 0.5, **ALONE)]
    parts = [several, *(replace(one, case=replace(one.case, testenv="short")) for one in short)]
    assert cells(board(parts), "Rank") == [1, 1, 2]


def test_a_row_that_lacks_a_case_has_no_aggregate_and_stands_last() -> None:
    table = board([result("a", 0, 1.0), failed("a", 1), result("b", 0, 0.1), result("b", 1, 0.2)], seeds=2)
    assert cells(table, "Algorithm") == ["b", "a"]
    assert cells(table, "Rank") == [1, "-"]
    assert cells(table, "accuracy")[1] is None
    assert cells(table, "Train_seconds")[1] is None
    assert cells(table, "Seeds") == [2, 1]


def test_the_status_of_a_failed_row_says_how_many_why_and_where_to_read_on() -> None:
    table = board([result("a", 0), failed("a", 1, message="out of\n  cheese"), failed("a", 2)], seeds=3)
    [status] = cells(table, "Status")
    assert "2 of 3" in status and "RuntimeError: out of cheese" in status and "cases/ab12/log.txt" in status
    printed(status)


def test_a_long_message_is_cut_in_the_status() -> None:
    (status,) = cells(board([failed("a", message="cheese " * 100)]), "Status")
    assert len(status) < 200
    assert "..." in status
    assert status.endswith("cases/ab12/log.txt")


def test_a_killed_case_is_told_by_its_signal() -> None:
    killed = result("a", status="failed", failure=Failure("killed", "SIGKILL", ""))
    [status] = cells(board([killed]), "Status")
    assert "SIGKILL" in status
    printed(status)


def test_a_case_that_did_not_finish_or_never_came_is_missing() -> None:
    table = board([result("a", 0), result("a", 1, status="unfinished")], seeds=3)
    assert cells(table, "Status") == ["2 of 3 unfinished"]
    assert cells(table, "Rank") == ["-"]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_metric_that_one_seed_lacks_has_no_mean_and_the_row_says_so(missing: float | None) -> None:
    table = board([result("a", 0, 0.5, 0.1), result("a", 1, 0.5, missing)], seeds=2)
    assert cells(table, "lost") == [None]
    assert cells(table, "accuracy") == [0.5]
    [status] = cells(table, "Status")
    assert "lost" in status and "1 of 2" in status
    printed(status)


def test_a_row_with_nothing_to_rank_it_by_gets_no_rank() -> None:
    table = board([result("a", 0, None), result("b", 0, 0.1)])
    assert cells(table, "Algorithm") == ["b", "a"]
    assert cells(table, "Rank") == [1, "-"]


def test_costs_are_sums_over_rounds_and_means_over_seeds() -> None:
    table = board([result("a", 0), result("a", 1)], seeds=2)
    assert cells(table, "Train_seconds") == [3.5]  # (1 + 2 and 2 + 2) / 2
    assert cells(table, "Eval_seconds") == [1.5]
    assert cells(table, "Peak_memory_mb") == [300.0]


def test_costs_that_were_measured_have_a_column() -> None:
    rounds = (RoundResult(1, "first", peak_gpu_bytes=5_000_000, model_bytes=2_000_000, memory_samples=10),)
    table = board([result("a", rounds=rounds)])
    assert cells(table, "Peak_gpu_memory_mb") == [5.0]
    assert cells(table, "Model_size_mb") == [2.0]
    assert cells(table, "Memory_samples") == [10.0]


def test_the_size_of_a_model_is_that_after_the_last_round() -> None:
    rounds = (RoundResult(1, "first", model_bytes=10_000_000), RoundResult(2, "second", model_bytes=400_000))
    assert cells(board([result("a", rounds=rounds)]), "Model_size_mb") == [0.4]


def test_processor_time_has_a_column_unless_a_round_lacks_it() -> None:
    asked = RoundResult(0, "untrained", eval_cpu_seconds=0.5)
    taught = RoundResult(1, "first", train_cpu_seconds=2.0, eval_cpu_seconds=0.25)
    table = board([result("a", rounds=(asked, taught))])
    assert cells(table, "Train_cpu_seconds") == [2.0]
    assert cells(table, "Eval_cpu_seconds") == [0.75]
    unmeasured = RoundResult(2, "of an older version")
    titles = [column.title for column in board([result("a", rounds=(asked, taught, unmeasured))]).columns]
    assert "Train_cpu_seconds" not in titles


def test_a_cost_that_the_testenv_asks_for_is_one_column_under_one_title() -> None:
    asked = [ACCURACY, *SYSTEM]
    rounds = (RoundResult(1, "first", train_cpu_seconds=1.0, eval_cpu_seconds=1.0, model_bytes=5, memory_samples=3),)
    titles = [column.title for column in board([result("a", rounds=rounds)], metrics=asked).columns]
    for cost in COSTS:
        assert [title for title in titles if title.casefold() == cost.casefold()] == [title_of(cost)]
        assert titles.index(f"{title_of(cost)}_std") == titles.index(title_of(cost)) + 1


def test_no_two_titles_differ_in_the_case_of_letters_alone() -> None:
    shown = [replace(ACCURACY, name=name) for name in ("acc", "ACC", "round", "train_seconds")]
    table = board([result("a", hyperparameters={"Rate": 1, "rate": 2, "acc": 3})], metrics=shown)
    titles = [column.title.casefold() for column in table.columns]
    assert len(set(titles)) == len(titles)


def test_the_time_of_a_row_is_when_its_last_case_ended_in_utc() -> None:
    table = board(
        [
            result("a", 0, finished_at="2026-03-01T23:30:00.5+00:00"),
            result("a", 1, finished_at="2026-03-02T01:00:00+02:00"),
        ],
        seeds=2,
    )
    assert cells(table, "Time") == ["2026-03-01 23:30:00"]


def test_algorithms_of_the_same_content_and_another_name_are_rows_of_their_own() -> None:
    one = result("one", 0)
    other = replace(one, case=replace(one.case, algorithm="other"))
    assert cells(board([one, other]), "Algorithm") == ["one", "other"]


def test_a_case_that_comes_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="comes twice"):
        board([result("a"), result("a")])


def test_sorting_by_a_metric_without_a_column_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="'accuracy'") as caught:
        board([result("a")], sort_by=(("acuracy", True),))
    printed(str(caught.value))


def test_a_metric_goes_by_the_name_that_the_testenv_gives_it() -> None:
    table = build_leaderboard([result("a")], RankSpec(()), [replace(ACCURACY, name="acc")], ["accuracy"], 1)
    assert cells(table, "accuracy") == [0.5]
    assert next(column.metric.name for column in table.columns if column.metric) == "acc"


def test_a_metric_of_several_numbers_has_no_column() -> None:
    per_class = Metric("per_class", "score", "Accuracy of each class.", mapping=True)
    table = board([result("a")], metrics=(per_class, ACCURACY))
    assert [c.title for c in table.columns if c.kind == "metric"] == ["accuracy"]
    assert table.sort_by == (("accuracy", True),)


def test_selection_cuts_rows_and_columns_and_keeps_ranks() -> None:
    results = [
        result("a", 0, 0.9, hyperparameters={"rate": 1}),
        result("b", 0, 0.8, hyperparameters={"rate": 1, "size": 2}, paradigm="singletasklearning"),
    ]
    spec = RankSpec((), paradigms=("singletasklearning",), metrics=("lost",), modules=(), hyperparameters=("size",))
    chosen = board(results).select(spec)
    titles = [column.title for column in chosen.columns]
    assert cells(chosen, "Algorithm") == ["b"]
    assert cells(chosen, "Rank") == [2]
    assert {"lost", "lost_std", "Size"} < set(titles)
    assert not {"accuracy", "accuracy_std", "Basemodel", "Rate"} & set(titles)


def test_selecting_all_changes_nothing() -> None:
    table = board(suite(), seeds=2)
    assert table.select(RankSpec(())) == table


def test_results_are_read_as_a_stream_and_not_kept() -> None:
    alive = 0

    class Big:
        """Stands for the score matrices of a case."""

        def __init__(self) -> None:
            nonlocal alive
            alive += 1

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    most = 0

    def stream() -> Iterator[CaseResult]:
        nonlocal most
        for i in range(200):
            yield replace(result("a", i % 2, hyperparameters={"i": i // 2}), details={"big": Big()})
            most = max(most, alive)

    table = board(stream(), seeds=2)
    assert len(table.rows) == 100
    assert most <= 2
