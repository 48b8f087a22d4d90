"""The job of generated pictures: its rows are made, plain tuning forgets, and the full job shows what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs

JOB = Path(__file__).parents[3] / "configs" / "picture_tasks" / "benchmarkingjob.yaml"


def test_plain_tuning_answers_in_the_words_of_the_last_task(tmp_path: Path) -> None:
    small = {"dataset.samples": 32, "dataset.tasks": ["colour", "count"], "epochs": 3, "batch_size": 4}
    results = ianvs.run(JOB, workspace=tmp_path, settings=small, only="sequential,seed=0", engine="inline")
    assert results.exit_code == 0
    scores = results.rounds
    asked = scores[scores["score"] == "CoIN_ACC"].set_index(["round", "test"])["value"]
    assert asked[1, "colour"] > 0.1 and asked[1, "count"] == 0
    assert asked[2, "count"] > 0.1 and asked[2, "colour"] == 0
    [row] = results.leaderboard_frame.to_dict("records")
    assert row["CN_Forgetting"] == pytest.approx(asked[1, "colour"])


@pytest.mark.slow
def test_the_job_learns_and_forgets_and_its_control_sees_nothing(tmp_path: Path) -> None:
    results = ianvs.run(JOB, workspace=tmp_path, only="seed=0")
    frame = results.leaderboard_frame.set_index("Algorithm")
    assert len(frame) == 7 and results.exit_code == 0
    assert frame["CN_New_ACC"]["sequential"] >= 0.9 and frame["CN_Forgetting"]["sequential"] >= 0.3
    assert frame["CN_Avg_ACC"]["multi_task"] >= 0.9
    assert frame["CN_New_ACC"]["shuffled pictures (control)"] < 0.4  # a third or a quarter of the answers, by luck
    assert frame["CN_Forgetting"]["replay"] < frame["CN_Forgetting"]["sequential"]
