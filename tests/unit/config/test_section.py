"""A section is a frozen dataclass, filled from a file or made by hand."""

import pickle
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from ianvs.base.errors import Location
from ianvs.config.spec import BudgetSpec, DatasetSpec, MetricSpec, RankSpec, ScenarioSpec, SourceSpec


@dataclass(frozen=True)
class WiderBudget(BudgetSpec):
    energy: Annotated[int, Field(ge=0, description="joules of a round")] | None = None


def test_a_new_key_is_one_field():
    assert TypeAdapter(WiderBudget).validate_python({"passes": 1, "energy": 3}) == WiderBudget(passes=1, energy=3)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        TypeAdapter(WiderBudget).validate_python({"energy": -1})
    assert "energy" in WiderBudget.known_keys()


def test_what_a_file_says_equals_what_is_made_by_hand(files):
    files.write("own.py", "")
    files.dataset(
        "train_index: {a: train.txt}",
        "test_index: test.txt",
        metrics="[accuracy, {name: own, url: own.py, k: 3}]",
        more="  using: a\n  scenario: {name: CIL, file: own.py, rounds: 2}\n  budget: {passes: 2}\n",
    )
    here, exam = files.folder, files.load().testenvs[0]
    assert exam.metrics == (MetricSpec("accuracy"), MetricSpec("own", url=here / "own.py", options={"k": 3}))
    assert exam.scenario == ScenarioSpec("CIL", {"file": str(here / "own.py"), "rounds": 2})
    assert exam.budget == BudgetSpec(passes=2)
    train, test = SourceSpec(here / "train.txt", "index", "a"), SourceSpec(here / "test.txt", "index")
    assert exam.dataset == DatasetSpec(train=(train,), test=(test,), using=("a",))


def test_a_job_survives_a_pickle_and_a_change_of_one_field(files):
    files.dataset("train_index: [train.txt]", "test_index: test.txt", more="  using: a\n")
    job = files.load()
    assert pickle.loads(pickle.dumps(job)) == job
    exam = job.testenvs[0]
    changed = replace(exam, dataset=replace(exam.dataset, image_size=(2, 3)))
    assert (changed.dataset.train, changed.dataset.using) == (exam.dataset.train, ("a",))
    assert replace(changed, dataset=exam.dataset) == exam
    assert changed.dataset.places == exam.dataset.places


def test_a_rank_goes_into_a_record_and_back(files):
    files.change("job.yaml", "print_table", "draw_heatmap_picture")
    rank = files.load().rank
    record = {name: value for name, value in vars(rank).items() if name != "places"}
    assert RankSpec(**record) == rank
    assert rank.visualization_method == record["visualization_method"] == "draw_heatmap_picture"


def test_places_of_names_options_and_a_list_of_domains(files):
    files.write(
        "testenv.yaml",
        """\
        testenv:
          using: [a]
          dataset: {name: digits, share: 0.2}
          metrics:
            g:
              - accuracy
              - {name: own, k: 3}
          model_eval:
            model_metric: {name: f1}
        """,
    )
    exam, file = files.load().testenvs[0], files.folder / "testenv.yaml"
    assert [metric.place for metric in exam.metrics] == [Location(file, 6, 9), Location(file, 7, 16)]
    assert exam.metrics[1].places["k"] == Location(file, 7, 21)
    assert (exam.gate.place, exam.gate.metric.place) == (Location(file, 8, 3), Location(file, 9, 26))
    assert (exam.place, exam.places["metrics"]) == (Location(file, 1, 1), Location(file, 5, 5))
    assert exam.dataset.places["using"] == Location(file, 2, 10)
    assert exam.dataset.place == Location(file, 3, 3)


@pytest.mark.parametrize("key", ["place", "places", "options", "file", "train", "gate"])
def test_fields_that_are_no_keys_can_not_be_written(files, key):
    files.change("testenv.yaml", "  metrics", f"  {key}: 3\n  metrics")
    assert files.errors() == [("unknown-key", "testenv.yaml:5:3")]


def test_options_may_be_called_like_fields(files):
    files.dataset("name: digits", "options: 1", "train: 2", "place: 3", metrics="[{name: m, options: 1, places: 2}]")
    exam = files.load().testenvs[0]
    assert exam.dataset.options == {"options": 1, "train": 2, "place": 3}
    assert exam.metrics[0].options == {"options": 1, "places": 2}
