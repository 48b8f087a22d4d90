"""The leaderboard as a person sees it."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from ianvs.base.types import RoundResult
from ianvs.results.report.build_document import document_of
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.markdown import markdown
from ianvs.results.report.terminal import render
from tests.errors import printed
from tests.unit.results.report.report_cases import WORKSPACE, board, cells, failed, result, suite


def shown(
    table: Leaderboard, width: int = 100, terminal: bool = True, colour: bool = False, explain: bool = True
) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        color_system="standard" if colour else None,
        legacy_windows=False,
    )
    render(table, console, explain=explain)
    return stream.getvalue()


def page_of(table: Leaderboard) -> str:
    return markdown(document_of(table))


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width: int) -> None:
    text = shown(board(suite(), seeds=2), width)
    assert all(len(line) <= width for line in text.splitlines())
    for whole in (
        "0.950 ± 0.014",
        "0.910 ± 0.014",
        "0.210 ± 0.014",
        "1 of 2 failed",
        "memory" if width < 200 else "Memory",
    ):
        assert whole in text


def test_columns_that_do_not_fit_are_named_and_the_csv_is_pointed_at() -> None:
    text = shown(board(suite(), seeds=2), 80)
    printed(" ".join(text[text.index("Not shown") :].split()))
    assert "Time" in text[text.index("Not shown") :]


def test_what_is_the_same_in_every_row_is_told_once() -> None:
    text = shown(board(suite(), seeds=2), 120)
    assert text.count("incrementallearning") == 1
    assert "Epoch 20" in text


def test_a_pipe_gets_a_plain_table_without_colours_whatever_the_width_of_a_terminal() -> None:
    text = shown(board(suite(), seeds=2), 80, terminal=False)
    header = text.splitlines()[0].split()
    assert {"Rank", "Algorithm", "accuracy", "lost"} <= set(header)
    assert "\x1b" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_failure_is_told_with_message_and_log(terminal: bool) -> None:
    text = " ".join(shown(board(suite(), seeds=2), 100, terminal).split())
    assert "(learning_rate=0.001, epochs=20, strength=100.0; seed 1): RuntimeError: out of cheese" in text
    assert f"{WORKSPACE}/cases/ab12/log.txt" in text


def test_a_reason_that_hits_several_seeds_is_told_once() -> None:
    text = shown(board([failed("a", 0), failed("a", 1), failed("a", 2, message="no bread")], seeds=3), 100)
    assert text.count("out of cheese") == 1
    assert "seeds 0, 1" in text
    assert "no bread" in text


def test_bounds_are_dim_and_explained_and_failures_are_red() -> None:
    lines = shown(board(suite(), seeds=2), 100, colour=True).splitlines()
    (bound,) = [line for line in lines if "joint" in line and "±" in line]
    (broken,) = [line for line in lines if "1 of 2 failed" in line]
    assert bound.startswith("\x1b[2m")
    assert "\x1b[31m" in broken
    assert any("it takes no rank" in line for line in lines)


def test_the_definition_of_every_metric_is_told() -> None:
    text = shown(board(suite(), seeds=2))
    printed("\n".join(line.strip() for line in text.splitlines() if re.match(r"\s*(accuracy|lost): ", line)))
    assert "correct / all" in text and "folklore" in text


def test_one_seed_makes_no_claim_about_spread() -> None:
    text = shown(board([result("a")]))
    assert "±" not in text
    printed("\n".join(line.strip() for line in text.splitlines() if "spread" in line))


def test_square_brackets_are_not_markup() -> None:
    text = shown(board([result("[red]a[/red]", hyperparameters={"layers": ["[bold]"]}), result("b")]), 120)
    assert "[red]a[/red]" in text


def test_no_results_is_not_an_error() -> None:
    assert "No results yet." in shown(board([]))


def test_small_and_large_numbers_keep_their_digits() -> None:
    text = shown(board([result("a", 0, 0.00012, 12345.6), result("a", 1, 0.00014, 12345.6)], seeds=2))
    assert "0.00013" in text
    assert "12346 ± 0" in text


def test_a_metric_that_a_seed_lacks_is_pointed_out() -> None:
    text = shown(board([result("a", 0, 0.5, None), result("a", 1)], seeds=2))
    printed("\n".join(line.strip() for line in text.splitlines() if "1 of 2" in line))


@pytest.mark.parametrize("page", [lambda board_: shown(board_, 200), page_of])
def test_the_same_failure_of_many_cases_is_told_once_with_their_number(page) -> None:
    broken = [failed("ewc", hyperparameters={"strength": s}, message="wrong size") for s in range(8)]
    text = page(board([*broken, failed("lwf", message="another"), result("a")]))
    listing = text.split("Seeds: ")[-1] if "## Failed" in text else text
    assert listing.count("wrong size") == 1
    assert re.search(r"8 cases of ewc: \S+ wrong size", text)
    assert re.search(r"lwf \(seed 0\): \S+ another", text)


def test_a_gate_that_adopted_nothing_is_no_mystery() -> None:
    rounds = [RoundResult(0, "untrained")]
    rounds += [RoundResult(k, "r", adopted=k == 2, gate_scores=(0.5, 0.4)) for k in (1, 2)]
    kept = [replace(r, adopted=False) for r in rounds]
    shown_board = board([result("a", rounds=tuple(rounds)), result("b", rounds=tuple(kept))])
    assert cells(shown_board, "Adopted") == ["1 of 2", "0 of 2"]
    printed("\n".join(line.strip() for line in shown(shown_board).splitlines() if "model_eval" in line))


def test_the_base_model_is_what_the_plugin_calls_its_network() -> None:
    named = replace(result("a"), basemodel="ERFNet")
    assert cells(board([named, result("b")]), "Basemodel") == ["ERFNet", "Network"]


def test_a_text_tells_columns_that_are_the_same_in_every_row_once_below_the_table() -> None:
    text = page_of(board([result("a", 0, 0.6, hyperparameters={"rate": 1}), result("b", 0, 0.5)]))
    table, below = text.split("In every row: ")
    header = next(line for line in table.splitlines() if "Algorithm" in line)
    assert header.replace("|", " ").split() == [
        *("Rank", "Algorithm", "accuracy", "lost", "Rate", "Pareto"),
        *("Train_seconds", "Eval_seconds", "Peak_memory_mb", "Time"),
    ]
    told = below.replace("\\", "").splitlines()[0]
    assert [part.split() for part in told.rstrip(".").split(",")] == [
        *(["Paradigm", "incrementallearning"], ["Round", "2"], ["Dataset", "digits"], ["Basemodel", "Network"]),
        *(["Seeds", "1"], ["Status", "finished"]),
    ]


def test_a_status_that_says_more_than_finished_stays() -> None:
    text = page_of(board([failed("a"), failed("b")]))
    assert "| Status" in text
    assert "Status 1 of 1" not in text


def test_one_row_keeps_all_its_columns() -> None:
    text = page_of(board([result("a")]))
    assert "In every row" not in text
    assert "| Paradigm" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_without_explanations_at_most_five_lines_follow_the_table_and_say_who_leads(terminal: bool) -> None:
    noise = {"a": (0.9, 0.91, 0.92, 0.9, 0.92), "b": (0.52, 0.5, 0.51, 0.53, 0.5)}
    table = board([result(name, seed, score) for name, of in noise.items() for seed, score in enumerate(of)], seeds=5)
    text = shown(table, 100, terminal, explain=False)
    _, below = text.rstrip().split("\n\n")
    assert len(below.splitlines()) <= 5
    assert "0.910 ± 0.010" in below
    printed("\n".join(line.strip() for line in below.splitlines() if "0.910" in line))
    assert "Higher" not in text
    assert "correct / all" not in text


def test_who_is_not_separated_from_the_first_is_named() -> None:
    scores = {"a": (0.9, 0.7, 0.8), "b": (0.7, 0.9, 0.77), "c": (0.1, 0.1, 0.1)}
    table = board([result(name, seed, score) for name, of in scores.items() for seed, score in enumerate(of)], seeds=3)
    printed("\n".join(line.strip() for line in shown(table, 200, explain=False).splitlines() if "leads" in line))


def test_of_failures_the_first_is_told_and_the_others_are_counted() -> None:
    broken = [failed(f"m{n}", message=f"reason {n}") for n in range(4)]
    text = shown(board([result("a"), *broken]), 200, explain=False)
    assert "reason 0" in text
    assert "reason 1" not in text
    assert "... and 3 more" in text


def test_a_pipe_is_no_wider_than_120_characters_with_many_settings() -> None:
    settings = [{f"setting_{k}": f"{n}.{k}" for k in range(12)} for n in range(3)]
    table = board([result("a", 0, 0.1 * n, hyperparameters=one) for n, one in enumerate(settings, 1)])
    lines = shown(table, 80, terminal=False, explain=False).split("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 120
