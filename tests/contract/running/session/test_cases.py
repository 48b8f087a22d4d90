"""What becomes of test cases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.config import load_job
from ianvs.processes.engines.forked import run_and_exit
from ianvs.running.inspector import Inspector
from ianvs.running.planning.plan import make_plan
from ianvs.store import ExamStore
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, TESTENV, write_job
from tests.waiting import wait_for


def by_seed(results: ianvs.Results) -> dict[tuple[object, int], CaseResult]:
    return {(tuple(found.case.hyperparameters.values()), found.case.seed): found for found in results}


OPEN = "seeds: [{}]"


def noted(folder: Path) -> Path:
    """A file that a plugin writes."""
    (folder / "notes").mkdir(exist_ok=True)
    return folder / "notes" / "trained"


def noting_rounds(file: Path, then: str = "") -> str:
    """Majority that appends the number of each round that it trains to `file`, and then does what `then` says."""
    note = f"        print(round, file=open({str(file)!r}, 'a'), flush=True)\n"
    return edited(MAJORITY, "        for label in", f"{note}{then}        for label in")


@pytest.mark.slow
def test_a_case_that_raises_is_a_row_and_the_others_finish(tmp_path: Path) -> None:
    grid = "- fail_in_round: {values: [3, null]}"
    results = ianvs.run(write_job(tmp_path, hyperparameters=grid, engine="local"), jobs=2)
    assert results.exit_code == 1
    assert [found.status for found in results] == ["failed", "failed", "finished", "finished"]
    failure = results.failed[0].failure
    assert failure is not None
    assert (failure.kind, failure.error) == ("exception", "RuntimeError")
    assert failure.message.startswith("plugin.py:")
    assert failure.log is not None
    assert "RuntimeError: no luck" in failure.log.read_text()
    # The page holds the log's end, whatever folder it is made from.
    page = (results.workspace / results.name / "rank" / "report.html").read_text()
    failures = page.partition('id="failures"')[2].partition("</section>")[0]
    assert "RuntimeError: no luck" in failures.partition("<pre")[2]


@pytest.mark.slow
def test_a_killed_case_is_a_row_with_the_signal(tmp_path: Path) -> None:
    plugin = edited(MAJORITY, "raise RuntimeError", "import os; os.kill(os.getpid(), 9) #")
    results = ianvs.run(
        write_job(tmp_path, plugin=plugin, hyperparameters="- fail_in_round: {values: [2, null]}", engine="local"),
        jobs=2,
    )
    statuses = [(found.status, found.failure.error if found.failure else None) for found in results]
    assert statuses == [("failed", "SIGKILL")] * 2 + [("finished", None)] * 2


def test_the_score_matrix_has_the_untrained_model_in_row_0(tmp_path: Path) -> None:
    results = ianvs.run(write_job(tmp_path, job="seeds: [0]"), engine="inline")
    matrix = by_seed(results)[((0,), 0)].matrices["accuracy"]
    assert matrix.values.shape == (6, 5)
    # Majority predicts one class: half of the test set of its round, nothing of the others.
    assert matrix.values[0, 0] == pytest.approx(0.5, abs=0.02)
    assert np.count_nonzero(matrix.values[1:] > 0) == 5


def test_a_second_run_trains_nothing_and_changes_no_file(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]")
    ianvs.run(path, engine="inline")
    before = {file: file.read_bytes() for file in (tmp_path / "ws").rglob("*") if file.is_file()}
    again = ianvs.run(path)
    assert again.ran == 0
    after = {file: file.read_bytes() for file in (tmp_path / "ws").rglob("*") if file.is_file()}
    assert after == before


@pytest.mark.slow
def test_a_metric_that_is_added_later_trains_nothing(tmp_path: Path) -> None:
    plugin = noting_rounds(noted(tmp_path))
    ianvs.run(write_job(tmp_path, plugin=plugin), engine="inline")
    trained = (noted(tmp_path)).read_text()
    path = write_job(tmp_path, plugin=plugin, testenv=edited(TESTENV, "{name: BWT}", "{name: BWT}, {name: f1}"))
    assert {(planned.state, planned.action) for planned in ianvs.plan(path)} == {("finished", "score")}
    results = ianvs.run(path)
    assert (noted(tmp_path)).read_text() == trained
    assert all(found.metrics["f1"] is not None for found in results)
    assert ianvs.run(path).ran == 0


def test_a_case_that_was_killed_resumes_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    mark, trained = tmp_path / "mark", noted(tmp_path)
    kill = (
        "        import os, pathlib\n"
        f"        if round == 3 and not pathlib.Path({str(mark)!r}).exists(): os.kill(os.getpid(), 9)\n"
    )
    one_case = {"hyperparameters": "- bias: {values: [0]}", "job": OPEN.format(7)}
    path = write_job(tmp_path, plugin=noting_rounds(trained, kill), **one_case)
    if (process := os.fork()) == 0:  # a new Python would import everything again
        run_and_exit(lambda: ianvs.run(path))
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    mark.touch()
    [planned] = ianvs.plan(path)
    assert (planned.state, planned.action) == ("unfinished", "resume")
    printed(planned.reason)
    [resumed] = ianvs.run(path)
    assert trained.read_text().split() == ["1", "2", "3", "3", "4", "5"]
    [undisturbed] = ianvs.run(write_job(tmp_path / "other", **one_case))
    assert resumed.matrices["accuracy"].values.tolist() == undisturbed.matrices["accuracy"].values.tolist()


def start(path: Path) -> subprocess.Popen[str]:
    """As from a terminal: tests that run in the background of a shell have Ctrl-C ignored, and would pass that on."""
    command = [sys.executable, "-m", "ianvs", "-f", str(path), "--jobs", "2"]
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeds)


def test_ctrl_c_lets_the_round_end_and_the_next_run_continues(tmp_path: Path) -> None:
    trained, gate = noted(tmp_path), tmp_path / "gate"
    wait = (
        "        import pathlib, time\n"
        f"        while round == 2 and not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)\n"
    )
    path = write_job(
        tmp_path,
        plugin=noting_rounds(trained, wait),
        hyperparameters="- bias: {values: [0]}",
        job=OPEN.format(7),
        engine="local",
    )
    process = start(path)
    wait_for(lambda: trained.exists() and "2" in trained.read_text())
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while not process.stderr.readline().startswith("stopping"):
        assert process.poll() is None
    gate.touch()
    process.communicate()
    assert process.returncode == 130
    [planned] = ianvs.plan(path)
    printed(planned.reason)
    assert ianvs.run(path, engine="inline").exit_code == 0
    assert trained.read_text().split() == ["1", "2", "3", "4", "5"]


def test_where_load_is_known_to_forget_a_case_that_was_cut_off_starts_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is found out after the last round of a case; until then what is stored is trusted."""
    trained, flag = noted(tmp_path), tmp_path / "flag"
    stop = (
        f"        if round == 4 and __import__('pathlib').Path({str(flag)!r}).exists():\n            raise KeyError\n"
    )
    plugin = edited(noting_rounds(trained, stop), "self.counts = eval(path.read_text())", "self.counts = {9: 1}")

    def job(seeds: str) -> Path:
        return write_job(tmp_path, plugin=plugin, hyperparameters="- bias: {values: [0]}", job=f"seeds: {seeds}")

    [found_out] = ianvs.run(job("[0]"), engine="inline")
    assert found_out.doubt == "unsaved"
    flag.touch()
    ianvs.run(job("[0, 1]"), engine="inline")
    flag.unlink()
    trained.unlink()
    capsys.readouterr()
    [_, again] = ianvs.run(job("[0, 1]"), engine="inline")
    assert trained.read_text().split() == ["1", "2", "3", "4", "5"]
    assert "starting over" in capsys.readouterr().out
    assert "resumed_after_round" not in again.provenance


def test_a_stored_round_is_trusted_and_the_row_says_where_it_went_on(tmp_path: Path) -> None:
    """Answers that are others on this machine throw nothing away."""
    trained, flag = noted(tmp_path), tmp_path / "flag"
    exists = f"__import__('pathlib').Path({str(flag)!r}).exists()"
    stop = f"        if round == 4 and {exists}:\n            raise KeyError\n"
    other = f"        counts = {{**self.counts, 0: 999 * (not {exists})}}\n"
    begin = "        counts = {**self.counts, 0: self.counts.get(0, 0) + self.bias}\n"
    plugin = edited(noting_rounds(trained, stop), begin, other)
    path = write_job(tmp_path, plugin=plugin, hyperparameters="- bias: {values: [0]}", job=OPEN.format(0))
    flag.touch()
    ianvs.run(path)
    flag.unlink()
    [again] = ianvs.run(path)
    assert trained.read_text().split() == ["1", "2", "3", "4", "4", "5"]
    assert again.provenance["resumed_after_round"] == 3


GATE = TESTENV + "model_eval: {model_metric: {name: accuracy}, threshold: %s, operator: '%s'%s}\n"


@pytest.mark.parametrize(
    ("threshold", "operator", "mode", "adopted"),
    [
        (2, ">=", "", [True, False, False, False, False, False]),
        (-2, ">=", "", [True] * 6),
        (0.3, ">=", ", mode: absolute", [True, True, False, False, False, False]),
    ],
)
def test_the_gate_keeps_the_old_model_unless_the_new_one_is_better(
    tmp_path: Path, threshold: float, operator: str, mode: str, adopted: list[bool]
) -> None:
    # Majority with a large bias always predicts class 0, of round 1: no later round's held-out part has any of it.
    grid = "- bias: {values: [100000]}"
    testenv = GATE % (threshold, operator, mode)
    [found] = ianvs.run(write_job(tmp_path, testenv=testenv, hyperparameters=grid, job="seeds: [0]"), engine="inline")
    assert [round_.adopted for round_ in found.rounds] == adopted
    assert all(round_.gate_scores is not None for round_ in found.rounds[1:])


def test_the_first_model_of_a_plugin_that_can_not_predict_untrained_is_adopted(tmp_path: Path) -> None:
    plugin = edited(MAJORITY, "counts = {**self.counts,", "assert self.counts\n        counts = {**self.counts,")
    testenv = GATE % (2, ">=", "")
    grid = "- bias: {values: [0]}"
    path = write_job(tmp_path, plugin=plugin, testenv=testenv, hyperparameters=grid, job="seeds: [0]")
    [found] = ianvs.run(path, engine="inline")
    assert [round_.adopted for round_ in found.rounds] == [True, True, False, False, False, False]


def test_a_model_that_is_not_adopted_is_really_gone(tmp_path: Path) -> None:
    testenv = GATE % (2, ">=", "")
    grid = "- bias: {values: [0]}"
    [found] = ianvs.run(write_job(tmp_path, testenv=testenv, hyperparameters=grid, job="seeds: [0]"), engine="inline")
    values = found.matrices["accuracy"].values
    assert (values == values[0]).all()


def test_single_task_learning_has_one_round_of_everything(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]", hyperparameters="- bias: {values: [0]}")
    yaml = tmp_path / "algorithm.yaml"
    yaml.write_text(edited(yaml.read_text(), "incrementallearning", "singletasklearning"))
    [found] = ianvs.run(path, engine="inline")
    assert len(found.rounds) == 2
    assert found.metrics["BWT"] is None
    assert found.rounds[1].train_samples > 1400


def test_single_task_learning_takes_no_rank_from_those_that_learn_in_rounds(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]", hyperparameters="", algorithms=("rounds", "alone"))
    yaml = (tmp_path / "algorithm.yaml").read_text()
    (tmp_path / "alone.yaml").write_text(edited(yaml, "incrementallearning", "singletasklearning"))
    both = edited(path.read_text(), "{name: alone, url: ./algorithm.yaml}", "{name: alone, url: ./alone.yaml}")
    path.write_text(both)
    ranks = {row.algorithm: row.rank for row in ianvs.run(path, engine="inline").leaderboard.rows}
    assert ranks == {"rounds": 1, "alone": None}
    path.write_text(edited(both, "      - {name: rounds, url: ./algorithm.yaml}\n", ""))
    assert [row.rank for row in ianvs.run(path, engine="inline").leaderboard.rows] == [1]


def test_predictions_of_the_wrong_length_are_refused_with_the_remedy(tmp_path: Path) -> None:
    plugin = edited(MAJORITY, "* len(data)", "* (len(data) - 1 if self.counts else len(data))")
    [found] = ianvs.run(write_job(tmp_path, plugin=plugin, hyperparameters="", job="seeds: [0]"), engine="inline")
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


@pytest.mark.slow
def test_every_case_records_what_it_cost_and_with_what_it_ran(tmp_path: Path) -> None:
    [found, *_] = ianvs.run(write_job(tmp_path))
    assert all(round_.train_seconds > 0 and round_.peak_memory_bytes is not None for round_ in found.rounds[1:])
    assert all(round_.model_bytes for round_ in found.rounds[1:])
    assert {"python", "packages", "git", "cpu", "threads", "device"} <= set(found.provenance)


def test_a_secret_hyperparameter_appears_in_no_file(tmp_path: Path) -> None:
    plugin = edited(MAJORITY, "bias=0,", "api_key=None, bias=0,")
    plugin = edited(plugin, "        self.bias,", "        self.key = api_key\n        self.bias,")
    plugin = edited(plugin, 'f"no luck in round {round}"', 'f"refused: {self.key}"')
    grid = "- api_key: {values: [sesame-open-1234]}\n- fail_in_round: {values: [2, null]}"
    results = ianvs.run(write_job(tmp_path, plugin=plugin, hyperparameters=grid, job="seeds: [0]"), engine="inline")
    assert results.failed[0].failure is not None
    assert results.failed[0].failure.message == "plugin.py:11: refused: ***"
    files = [path for path in (tmp_path / "ws").rglob("*") if path.is_file() and path.name != "log.txt"]
    assert not [path for path in files if b"sesame-open-1234" in path.read_bytes()]


def test_results_can_be_loaded_from_a_workspace(tmp_path: Path) -> None:
    ran = ianvs.run(write_job(tmp_path, job="seeds: [0]"), engine="inline")
    loaded = ianvs.load_results(tmp_path / "ws")
    assert loaded.leaderboard_frame.equals(ran.leaderboard_frame)
    assert loaded.cases.equals(ran.cases)
    assert loaded.rounds.equals(ran.rounds)
    assert [found.case.id for found in loaded] == [found.case.id for found in ran]


def test_a_plugin_that_ends_the_process_at_import_is_a_configuration_error(tmp_path: Path) -> None:
    path = write_job(tmp_path, plugin="import os\nos._exit(3)\n", engine="local")
    assert errors_of(ianvs.run, path) == [("unloadable-plugin", f"{tmp_path}/algorithm.yaml:5:13")]


@pytest.mark.slow
def test_two_runs_at_once_on_one_workspace_do_not_harm_each_other(tmp_path: Path) -> None:
    path = write_job(tmp_path, engine="local")
    both = [start(path), start(path)]
    for process in both:
        _, said = process.communicate()
        assert process.returncode == 0, said
    for result in (tmp_path / "ws" / "cases").glob("*/result.json"):
        assert json.loads(result.read_text())["status"] == "finished"


@pytest.mark.slow
def test_an_exam_that_another_run_prepares_is_waited_for(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]", engine="local")
    exams = ExamStore(tmp_path / "ws")
    job = load_job(path)
    [exam_id] = {algorithm.exam_id for algorithm in make_plan(job, Inspector(job, inline=True)).algorithms}
    with exams.lock(exam_id):
        process = start(path)
        wait_for(lambda: (exams.root / f"{exam_id}.log").exists())
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        assert exams.record(exam_id) is None
    assert process.wait() == 0
    assert exams.record(exam_id) is not None


def test_what_a_plugin_says_of_how_it_went_stands_in_the_report(tmp_path: Path) -> None:
    said = "    @property\n    def remark(self):\n        return f'saw {len(self.counts)}\\n| classes'\n\n"
    plugin = edited(MAJORITY, "    def save", said + "    def save")
    plugin = edited(plugin, "* len(data)", "* (len(data) - 1) + [0]")
    grid = "- bias: {values: [0]}"
    [found, _] = ianvs.run(write_job(tmp_path, plugin=plugin, hyperparameters=grid), engine="inline")
    assert found.remark == "saw 10 | classes"
    text = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    remarks = [line for line in text.partition("## Remarks")[2].splitlines() if "saw 10 \\| classes" in line]
    assert any("majority, seeds 0, 1" in line for line in remarks)  # of both seeds
