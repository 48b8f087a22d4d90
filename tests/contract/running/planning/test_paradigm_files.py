"""What an algorithm's file says of its paradigm: names, options, types of modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.jobs import write_job

HEAD = "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n    - type: basemodel\n"


def job(folder: Path, old: str = "", new: str = "") -> Path:
    path = write_job(folder, job="seeds: [0]\nengine: inline", hyperparameters="")
    file = folder / "algorithm.yaml"
    text = file.read_text()
    assert text.startswith(HEAD)
    file.write_text(edited(text, old, new) if old else text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("incrementallearning", "incremental", ("invalid-option", "2:18")),
        ("incrementallearning", "singletasklearning_tta", ("invalid-option", "2:18")),
        ("incrementallearning", "multiedgeinference", ("invalid-option", "2:18")),
        ("type: basemodel", "type: basmodel", ("invalid-choice", "4:13")),
        ("type: basemodel", "type: aggregation", ("missing-module", "3:3")),
        ("  modules", "  initial_model_ulr: x\n  modules", ("invalid-option", "3:3")),
    ],
)
def test_a_slip_is_told_with_its_place_and_a_remedy(tmp_path: Path, old: str, new: str, error: Found) -> None:
    path = job(tmp_path, old, new)
    [(code, location)] = errors_of(ianvs.plan, path)
    assert (code, location.removeprefix(f"{tmp_path}/algorithm.yaml:")) == error


def test_a_module_that_the_paradigm_does_not_use_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = job(tmp_path, "    - type", "    - {type: hard_example_mining, name: IBT}\n    - type")
    plan = ianvs.plan(path)
    assert recorded(plan.job.warnings) == [("no-effect", f"{path.parent / 'algorithm.yaml'}:4:14")]
    assert [case.modules for case, _ in plan.cases()] == [(("basemodel", "Majority"),)]


def test_a_setting_of_rounds_has_no_effect_where_there_is_one(tmp_path: Path) -> None:
    setting = "singletasklearning\n  incremental_learning_data_setting: {train_ratio: 0.5}"
    warnings = ianvs.plan(job(tmp_path, "incrementallearning", setting)).job.warnings
    assert [code for code, _ in recorded(warnings)] == ["no-effect"]


def test_references_may_be_asked_for_by_name_and_are_bounds_where_they_see_the_past(tmp_path: Path) -> None:
    path = job(tmp_path)
    text = (tmp_path / "algorithm.yaml").read_text()
    for name in ("joint", "solo"):
        (tmp_path / f"{name}.yaml").write_text(edited(text, "incrementallearning", name))
        listed = path.read_text()
        path.write_text(
            edited(listed, "    algorithms:\n", f"    algorithms:\n      - {{name: {name}, url: ./{name}.yaml}}\n")
        )
    rows = {row.algorithm: row for row in ianvs.run(path).leaderboard.rows}
    assert {name: row.paradigm for name, row in rows.items()} == {
        "joint": "joint",
        "solo": "solo",
        "majority": "incrementallearning",
    }
    assert (rows["joint"].bound, rows["majority"].bound) == (True, False)
