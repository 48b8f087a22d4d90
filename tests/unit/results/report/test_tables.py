"""Results as frames of pandas."""

from __future__ import annotations

import math

import pandas as pd

from ianvs.results.report.row_tables import cases_frame, rounds_frame, to_frame
from tests.unit.results.report.report_cases import WORKSPACE, board, failed, matrix, result, suite


def test_the_frame_of_a_leaderboard_carries_the_meaning_of_its_columns() -> None:
    frame = to_frame(board(suite(), seeds=2))
    assert frame["Algorithm"].tolist() == ["joint", "replay", "replay", "hub", "ewc"]
    assert set(frame.attrs) == set(frame.columns)


def test_there_is_one_row_for_each_case() -> None:
    frame = cases_frame(
        [result("a", 0, 0.7, hyperparameters={"rate": 0.1, "api_key": "***"}), failed("a", 1)], WORKSPACE
    )
    first, second = frame.to_dict("records")
    assert (first["algorithm"], first["seed"], first["accuracy"], first["hp.rate"]) == ("a", 0, 0.7, 0.1)
    assert (first["status"], first["hp.api_key"], first["train_seconds"]) == ("finished", "***", 3.0)
    assert first["finished_at"] == pd.Timestamp("2026-03-01 12:00", tz="UTC")
    assert (second["status"], second["error"], second["message"]) == ("failed", "RuntimeError", "out of cheese")
    assert second["log"] == "cases/ab12/log.txt"
    assert math.isnan(second["accuracy"])


def test_a_metric_cannot_take_the_place_of_what_a_case_is() -> None:
    case = result("a")
    case.metrics["status"] = 0.5  # type: ignore[index]
    assert cases_frame([case])["status"].tolist() == ["finished"]


def test_there_is_one_row_for_each_case_round_and_test_set() -> None:
    frame = rounds_frame([result("a", 3, matrices={"accuracy": matrix([[0.1, 0.2], [0.9, math.nan], [0.5, 0.8]])})])
    assert len(frame) == 6
    pivot = frame.pivot(index="round", columns="test", values="value")
    assert pivot.loc[2].tolist() == [0.5, 0.8]
    assert math.isnan(pivot.loc[1, "b"])
    assert frame["round_name"].unique().tolist() == ["untrained", "first", "second"]
    assert set(frame["seed"]) == {3}


def test_frames_of_nothing_are_empty() -> None:
    assert len(cases_frame([])) == 0
    assert list(rounds_frame([]).columns)[-1] == "value"
