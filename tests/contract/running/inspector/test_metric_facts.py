"""An author's metric is known to the supervisor, and runs elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError, Location, ValidationError
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.metric import Metric
from tests.errors import located, recorded
from tests.jobs import write_job
from tests.unit.running.inspector.own_inspector import inspector

ERRORS = '''
"""Metrics that are not shared with anybody."""
import os

with open({trace!r}, "a") as file:
    print(os.getpid(), file=file)


def errors(y_true, y_pred, factor=1):
    """How many are wrong."""
    return factor * float((y_true != y_pred).sum())


errors.higher_is_better = False
'''
EXAM = "dataset: {name: digits}\nscenario: {name: CIL, rounds: 2}\nmetrics: [{name: errors, url: ./errors.py}]"


def metric_facts(folder: Path, specs: list[MetricSpec], *, inline: bool = True) -> list[Metric | list[ValidationError]]:
    with inspector(folder, inline=inline) as opened:
        return [opened.metric(spec) for spec in specs]


def spec_of(folder: Path, source: str, name: str = "errors", **more: object) -> MetricSpec:
    path = folder / f"{name}.py"
    path.write_text(source)
    return MetricSpec(name, url=path, place=Location(Path("testenv.yaml"), 7, 5), **more)  # type: ignore[arg-type]


def test_a_run_and_its_report_keep_the_authors_code_out_of_this_process(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    settings = {"hyperparameters": "", "job": "seeds: [0]", "sort_by": "[{errors: ascend}]", "engine": "local"}
    job = write_job(tmp_path, testenv=EXAM, **settings)
    (tmp_path / "errors.py").write_text(ERRORS.format(trace=str(trace)))
    [found] = ianvs.run(job)
    assert found.metrics["errors"] == pytest.approx(found.matrices["errors"].values[-1].mean())
    describing, *running = {int(pid) for pid in trace.read_text().split()}
    assert running
    assert os.getpid() not in (describing, *running)
    before = trace.read_text()
    [row] = ianvs.api.report(job).leaderboard.rows
    assert row.rank == 1
    assert trace.read_text() == before  # what it is, is known by now


def test_a_metric_is_described_by_its_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, ERRORS.format(trace=str(tmp_path / "trace")), options={"factor": 2})
    [found, built_in] = metric_facts(tmp_path, [spec, MetricSpec("BWT")])
    assert isinstance(found, Metric)
    assert (found.name, found.level, found.summary) == ("errors", "score", "How many are wrong.")
    assert (found.higher_is_better, found.function) == (False, None)
    assert isinstance(built_in, Metric)
    assert built_in.function is not None


@pytest.mark.parametrize(
    ("source", "more", "code"),
    [
        ("def errors(y_true): ...", {}, "broken-contract"),
        ("def errors(a, b, factor): ...", {}, "missing-option"),
        ("def error(a, b): ...", {}, "unloadable-plugin"),
        ("def errors(a, b): ...", {"of": "accuracy"}, "unfit-metric"),
        ("1 / 0", {}, "unloadable-plugin"),
        ("import os; os._exit(3)", {}, "unloadable-plugin"),
    ],
)
def test_what_is_wrong_with_a_metric_stands_at_its_place(
    tmp_path: Path, source: str, more: dict[str, object], code: str
) -> None:
    good = spec_of(tmp_path, "def good(a, b): ...", "good")
    inline = "_exit" not in source
    first, [problem] = metric_facts(tmp_path, [good, spec_of(tmp_path, source, **more)], inline=inline)
    assert isinstance(first, Metric)  # whatever the other does
    assert recorded([problem]) == [(code, "testenv.yaml:7:5")]


def test_a_metric_that_ends_its_process_is_a_problem_of_the_job(tmp_path: Path) -> None:
    job = write_job(tmp_path, testenv=EXAM, sort_by="[{errors: ascend}]", engine="local")
    (tmp_path / "errors.py").write_text("import os; os._exit(3)")
    with pytest.raises(ConfigError) as caught:
        ianvs.plan(job)
    assert located(caught.value.problems) == [("unloadable-plugin", f"{tmp_path / 'testenv.yaml'}:4:20")]


def test_a_mended_metric_is_described_anew(tmp_path: Path) -> None:
    [problems] = metric_facts(tmp_path, [spec_of(tmp_path, "def error(a, b): ...")])
    assert isinstance(problems, list)
    for direction in (True, False):
        source = f"def errors(a, b): ...\nerrors.higher_is_better = {direction}"
        [found] = metric_facts(tmp_path, [spec_of(tmp_path, source)])
        assert isinstance(found, Metric)
        assert found.higher_is_better is direction
