"""A job with misspelt keys is read on as if they were right, so that its other errors are told with them."""

from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.config import load_job
from ianvs.config.messages import home_of
from tests.jobs import write_job


def misspelt(path: Path, file: str, key: str, slip: str) -> None:
    target = path.with_name(file)
    text = target.read_text()
    assert key in text
    target.write_text(text.replace(key, slip, 1))


SLIPS = [
    ("benchmarkingjob.yaml", "workspace:", "workspce:"),
    ("benchmarkingjob.yaml", "test_object:", "test_objekt:"),
    ("benchmarkingjob.yaml", "algorithms:", "algoritms:"),
    ("benchmarkingjob.yaml", "sort_by:", "sortby:"),
    ("benchmarkingjob.yaml", "  name: test", "  name: test\n  zzz: 1"),
    ("testenv.yaml", "scenario:", "scenarioo:"),
    ("testenv.yaml", "metrics:", "metrcs:"),
    ("testenv.yaml", "dataset:", "datset:"),
    ("algorithm.yaml", "modules:", "module:"),
    ("algorithm.yaml", "paradigm_type:", "paradigm_tpye:"),
    ("algorithm.yaml", "hyperparameters:", "hyperparameter:"),
]


@pytest.mark.parametrize(("file", "key", "slip"), SLIPS)
def test_a_job_is_read_on_after_a_misspelt_key(tmp_path: Path, file: str, key: str, slip: str) -> None:
    path = write_job(tmp_path, hyperparameters="- answer: {values: [1]}")
    right = load_job(path)
    misspelt(path, file, key, slip)
    with pytest.raises(ConfigError) as caught:
        load_job(path)
    job = load_job(path, corrects=True)
    assert [(error.code, Path(error.location.file).name) for error in job.problems if error.location] == [
        ("unknown-key", file)
    ]
    assert job.problems == tuple(caught.value.problems)
    assert (job.testenvs, job.algorithms, job.workspace) == (right.testenvs, right.algorithms, right.workspace)


def test_slips_in_all_files_are_told_at_once(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]")
    for file, key, slip in (
        ("benchmarkingjob.yaml", "seeds:", "sedes:"),
        ("testenv.yaml", "metrics:", "metrcs:"),
        ("testenv.yaml", "accuracy", "acuracy"),
        ("algorithm.yaml", "paradigm_type:", "paradigm_tpye:"),
        ("algorithm.yaml", "modules:", "module:"),
    ):
        misspelt(path, file, key, slip)
    with pytest.raises(ConfigError) as caught:
        ianvs.validate(path)
    places = [(Path(error.location.file).name, error.code) for error in caught.value.problems if error.location]
    assert sorted(places) == [
        ("algorithm.yaml", "unknown-key"),
        ("algorithm.yaml", "unknown-key"),
        ("benchmarkingjob.yaml", "unknown-key"),
        ("testenv.yaml", "unknown-key"),
        ("testenv.yaml", "unknown-metric"),
    ]


def test_what_is_no_key_is_told_alone(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: none")
    misspelt(path, "testenv.yaml", "scenario:", "scenarioo:")
    with pytest.raises(ConfigError) as caught:
        load_job(path, corrects=True)
    assert {Path(error.location.file).name for error in caught.value.problems if error.location} == {
        "benchmarkingjob.yaml",
        "testenv.yaml",
    }


def test_a_key_that_belongs_in_two_other_files_is_told_with_both() -> None:
    told = " It belongs in rank of the benchmarkingjob file or in dataset of the testenv file."
    assert home_of("columns", "algorithm") == told
