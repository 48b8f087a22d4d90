"""Class-incremental segmentation as a job: the street scenes with a background that shifts, small."""

from pathlib import Path

import pytest
import yaml

from ianvs import api

CONFIGS = Path(__file__).parents[3] / "configs" / "streets_classes" / "benchmarkingjob.yaml"
SMALL = {"epochs": 1, "first_round": {"epochs": 2}, "dataset.train": 10, "dataset.test": 4, "dataset.size": [16, 32]}


@pytest.mark.parametrize("method", ["mib", "joint"])
def test_four_rounds_are_learned_and_scored(method, tmp_path):
    content = yaml.safe_load(CONFIGS.read_text())["benchmarkingjob"]
    listed = content["test_object"]["algorithms"]
    content["test_object"]["algorithms"] = [
        {**entry, "url": str(CONFIGS.parent / entry["url"])} for entry in listed if entry["name"] == method
    ]
    content |= {"testenv": str(CONFIGS.parent / content["testenv"]), "workspace": str(tmp_path / "ws")}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({"benchmarkingjob": content}, sort_keys=False))
    found = api.run(tmp_path / "job.yaml", settings=SMALL, engine="inline")
    assert found.exit_code == 0
    [row] = found.leaderboard_frame.to_dict("records")
    scores = [row[name] for name in ("mIoU_old", "mIoU_new", "mIoU_taught")]
    assert all(0 <= score <= 1 for score in scores)
    assert min(scores[:2]) <= scores[2] <= max(scores[:2])
    assert not any("changed" in str(value) for value in row.values())
