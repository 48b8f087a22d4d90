"""What an algorithm's file says of its paradigm: names, options, types of modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.errors import recorded
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
    ("old", "new", "message"),
    [
        (
            "incrementallearning",
            "incremental",
            "2:18: paradigm 'incremental' is not known. Did you mean 'incrementallearning'?",
        ),
        (
            "incrementallearning",
            "singletasklearning_tta",
            "2:18: paradigm 'singletasklearning_tta' is not known. Did you mean 'singletasklearning'?",
        ),
        (
            "incrementallearning",
            "multiedgeinference",
            "2:18: paradigm 'multiedgeinference' is for plugins under `contract: ianvs` only. There are: "
            "incrementallearning, singletasklearning, lifelonglearning, federatedlearning, "
            "federatedclassincrementallearning, jointinference, testtimelearning, joint, solo, stateless.",
        ),
        (
            "type: basemodel",
            "type: basmodel",
            "4:13: type should be one of basemodel, edgemodel, cloudmodel, dataset_processor, "
            "hard_example_mining, task_definition, task_relationship_discovery, task_allocation, task_remodeling, "
            "inference_integrate, task_update_decision, unseen_task_allocation, unseen_sample_recognition, "
            "unseen_sample_re_recognition, aggregation, inference_scheme, memory, found the text "
            "'basmodel'. Did you mean 'basemodel'?",
        ),
        ("type: basemodel", "type: aggregation", "3:3: incrementallearning needs a module of type basemodel. Add one."),
        (
            "  modules",
            "  initial_model_ulr: x\n  modules",
            "3:3: unknown key 'initial_model_ulr' in algorithm. Did you mean 'initial_model_url'?",
        ),
    ],
)
def test_a_slip_is_told_with_its_place_and_a_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ianvs.plan(job(tmp_path, old, new))
    [problem] = caught.value.problems
    assert str(problem).endswith(f"algorithm.yaml:{message}")


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
