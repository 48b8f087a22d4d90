"""What is kept of authors' source files when a job is planned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ianvs
from ianvs.config import load_job
from ianvs.running.inspector import Inspector
from ianvs.running.planning.plan import Plan, make_plan
from ianvs.running.planning.source_snapshot import snapshot_contents, store_sources
from ianvs.store import CaseStore, CodeStore
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import MAJORITY, TESTENV, write_job

METRIC = "from told import ONE\n\ndef mine(y_true, y_pred):\n    return ONE\n"


def planned(folder: Path) -> Plan:
    """Of a job with a plugin and a metric that have a module each."""
    (folder / "metrics").mkdir(parents=True)
    (folder / "metrics" / "mine.py").write_text(METRIC)
    (folder / "metrics" / "told.py").write_text("ONE = 1.0\n")
    (folder / "helper.py").write_text("X = 0\n")
    exam = edited(TESTENV, "{name: BWT}", "{name: mine, url: ./metrics/mine.py}")
    job = load_job(write_job(folder, plugin=f"import helper\n{MAJORITY}", testenv=exam))
    return make_plan(job, Inspector(job, inline=True))


def test_the_bytes_of_all_local_files_come_back_by_their_paths(tmp_path: Path) -> None:
    plan = planned(tmp_path / "job")
    code = store_sources(plan)
    names = ["plugin.py", "helper.py", "metrics/mine.py", "metrics/told.py"]
    paths = [(tmp_path / "job" / name).resolve() for name in names]
    contents = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    assert snapshot_contents(plan.job.workspace, code) == contents


def test_keeping_twice_writes_once(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    code = store_sources(plan)
    before = {path: path.stat().st_mtime_ns for path in (plan.job.workspace / "code").rglob("*.py")}
    assert store_sources(plan) == code
    assert {path: path.stat().st_mtime_ns for path in (plan.job.workspace / "code").rglob("*.py")} == before


@pytest.mark.parametrize("name", ["plugin.py", "helper.py", "metrics/told.py"])
def test_what_was_changed_since_it_was_planned_does_not_run(tmp_path: Path, name: str) -> None:
    plan = planned(tmp_path)
    with (tmp_path / name).open("a") as file:
        file.write("print('later')\n")
    assert errors_of(store_sources, plan) == [("changed-since-plan", "")]


def test_a_comment_that_was_added_since_is_kept_and_runs(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    with (tmp_path / "plugin.py").open("a") as file:
        file.write("# later\n")
    files = snapshot_contents(plan.job.workspace, store_sources(plan))
    assert files[(tmp_path / "plugin.py").resolve()].endswith(b"# later\n")


def test_bytes_that_are_others_are_not_believed(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    code = store_sources(plan)
    file = CodeStore(plan.job.workspace).folder(code[0].key) / "plugin.py"
    file.write_text("raise SystemExit")
    assert errors_of(snapshot_contents, plan.job.workspace, code) == [("damaged-file", "")]
    assert store_sources(plan) == code
    assert (
        snapshot_contents(plan.job.workspace, code)[(tmp_path / "plugin.py").resolve()]
        == (tmp_path / "plugin.py").read_bytes()
    )


def test_our_own_files_are_not_kept(tmp_path: Path) -> None:
    path = write_job(tmp_path, hyperparameters="")
    module = "- {type: basemodel, name: NearestMean}"
    (tmp_path / "algorithm.yaml").write_text(
        f"algorithm:\n  paradigm_type: incrementallearning\n  modules:\n    {module}\n"
    )
    job = load_job(path)
    assert store_sources(make_plan(job, Inspector(job, inline=True))) == ()


def test_a_metric_that_a_learner_rewrites_scores_as_it_was_planned(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def mine(y_true, y_pred):\n    return 0.25\n")
    begin = "*, round, seed):\n"
    rewriting = f"{begin}        open(METRIC, 'w').write('def mine(y_true, y_pred): return 1.0')\n"
    plugin = f"METRIC = {str(tmp_path / 'mine.py')!r}\n{edited(MAJORITY, begin, rewriting)}"
    exam = edited(TESTENV, "{name: BWT}", "{name: mine, url: ./mine.py}")
    path = write_job(tmp_path, plugin=plugin, testenv=exam, hyperparameters="", job="seeds: [0]")
    job = load_job(path)
    [key] = [
        key for spec, key in make_plan(job, Inspector(job, inline=True)).algorithms[0].scores if spec.name == "mine"
    ]
    [found] = ianvs.run(path)
    assert "return 1.0" in (tmp_path / "mine.py").read_text()
    stored = CaseStore(tmp_path / "ws").score(found.case.id, key)
    assert stored is not None
    assert set(stored.values[-1]) == {0.25}


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_source_is_kept_for_the_user_alone(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    store_sources(plan)
    assert (plan.job.workspace / "code").stat().st_mode & 0o077 == 0
