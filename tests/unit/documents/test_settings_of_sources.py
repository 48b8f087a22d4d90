"""What our yamls set is what their sources say, or the difference is told."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from ianvs.authoring.training_loop import Schedule
from ianvs.base.method_names import built_in
from ianvs.plugins.loader import load

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("make_reproductions", ROOT / "docs" / "make_reproductions.py")
MAKER = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MAKER)
ROWS = MAKER.source_rows()
NAMED = re.compile(
    r"^# .*(LAMDA-PILOT|PyCIL|InfLoRA [0-9a-f]{7}|SLCA [0-9a-f]{7}|SD-Lora-CL|MiB [0-9a-f]{7}|PLOP [0-9a-f]{7})"
)
OTHERS = {"benchmarkingjob.yaml", "common.yaml", "testenv.yaml", "twenty.yaml", "twenty_rounds.yaml"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_a_yaml_has_the_settings_of_its_source(row):
    learner = learner_of(row)
    scheduled = {field.name for field in fields(Schedule)}
    for key, value in row.settings.items():
        if key in row.ours:
            ours = row.ours[key]
        elif key in scheduled:  # a default of the class
            ours = getattr(learner.schedule, key)
        else:
            ours = getattr(learner, key)
        ours = list(ours) if isinstance(ours, tuple) else ours
        assert ours == value or key in row.differs, f"{key}: {ours} here, {value} in {row.source}"


def learner_of(row):
    [module] = yaml.safe_load((ROOT / row.file).read_text())["algorithm"]["modules"]
    if url := module.get("url"):
        target = load(str((ROOT / row.file).parent / url), module["name"]).target
    else:
        name, place = built_in(module["name"])
        target = load(place, name).target
    return target(**row.ours)


def test_every_yaml_that_names_a_source_has_a_row():
    named = {
        str(file.relative_to(ROOT))
        for folder in ("testalgorithms", "configs/reproductions")
        for file in (ROOT / folder).rglob("*.yaml")
        if file.name not in OTHERS and any(NAMED.match(line) for line in file.read_text().splitlines()[:2])
    }
    assert named == {row.file for row in ROWS}


def test_the_page_has_the_table():
    assert MAKER.settings_table() in MAKER.page()
