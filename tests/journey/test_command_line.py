"""The command line as a user meets it: what is said, where, and with which exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ianvs.cli import main
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, TESTENV, write_job
from tests.waiting import PATIENCE, wait_for


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """(exit status, everything on standard error); no traceback is ever shown."""
    status = main(arguments)
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return status, error


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(edited(text, old, new, count=1))


def test_a_typo_in_a_key_is_shown_with_its_place_and_the_closest_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(write_job(tmp_path), "sort_by:", "sort_bye:")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 2
    assert "benchmarkingjob.yaml:11:5: " in error
    printed(error)


def test_a_wrong_metric_name_is_found_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, testenv=edited(TESTENV, "{name: BWT}", "{name: mIuU}"))
    status, error = said(capsys, "-f", "benchmarkingjob.yaml")
    assert (status, error.split(" ")[0]) == (2, "testenv.yaml:4:38:")
    printed(error)
    assert not (tmp_path / "ws" / "cases").exists()


def test_a_missing_file_is_shown_where_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(write_job(tmp_path), "./algorithm.yaml", "./algoritm.yaml")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 2
    assert error.startswith("benchmarkingjob.yaml:9:31: ")
    printed(error)


def test_a_missing_job_file_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    status, error = said(capsys, "-f", "nowhere.yaml")
    assert status == 2
    assert error.startswith("nowhere.yaml: ")
    printed(error)


def test_a_hyperparameter_that_the_constructor_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(tmp_path, hyperparameters="- lambda: {values: [1]}")
    for command in ("validate", "run"):
        status, error = said(capsys, command, "-f", "benchmarkingjob.yaml")
        assert (status, error.split(" ")[0]) == (2, "algorithm.yaml:8:11:"), command
        printed(error)


def test_a_duplicate_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(write_job(tmp_path), "  seeds: [0, 1]\n", "  seeds: [0, 1]\n  seeds: [2]\n")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 2
    assert error.startswith("benchmarkingjob.yaml:6:3: ")
    printed(error)


def test_1e_3_is_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, hyperparameters="- bias: {values: [1e-3, 0.5]}")
    assert main(["plan", "-f", "benchmarkingjob.yaml"]) == 0
    assert "bias=0.001" in capsys.readouterr().out


def test_all_errors_of_all_files_are_shown_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(write_job(tmp_path), "sort_by:", "sort_bye:")
    edit(tmp_path / "testenv.yaml", "metrics", "metrcs")
    edit(tmp_path / "algorithm.yaml", "paradigm_type", "paradigm_typ")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 2
    for file, key in (("benchmarkingjob", "sort_bye"), ("testenv", "metrcs"), ("algorithm", "paradigm_typ")):
        assert any(line.startswith(f"{file}.yaml:") and f"'{key}'" in line for line in error.splitlines())
    printed(error)


def test_a_sort_by_that_is_no_metric_of_the_testenv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, sort_by="[{acuracy: descend}]")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert (status, error.split(" ")[0]) == (2, "benchmarkingjob.yaml:11:16:")
    printed(error)


def test_a_key_of_ianvs_without_effect_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, testenv=TESTENV + "round: 3\n")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 0
    assert re.match(r"\w+: testenv\.yaml:5:", error)
    printed(error)


def test_a_file_that_is_no_plugin_is_one_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(tmp_path, plugin="class Majority\n    pass\n")
    status, error = said(capsys, "validate", "-f", "benchmarkingjob.yaml")
    assert status == 2
    assert re.match(r"algorithm\.yaml:5:13: plugin\.py:1:15: SyntaxError", error)  # the rest is Python's


@pytest.mark.slow
def test_a_run_shows_a_leaderboard_and_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path)
    assert main(["-f", "benchmarkingjob.yaml"]) == 0
    shown = capsys.readouterr()
    assert "[4/4]" in shown.err
    assert shown.out.count("majority  ") == 2
    assert "ws/test/rank" in shown.out
    assert len(shown.out.rstrip().partition("\n\n")[2].splitlines()) <= 5  # below the table
    assert re.search(r"\bleads?\b.*\baccuracy", shown.out)
    assert main(["report", "-f", "benchmarkingjob.yaml", "--explain"]) == 0
    assert "Ranzato 2017" in capsys.readouterr().out


@pytest.mark.slow
def test_a_failed_case_is_exit_status_1_and_shown_with_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(tmp_path, hyperparameters="- fail_in_round: {values: [2, null]}", engine="local")
    assert main(["-f", "benchmarkingjob.yaml"]) == 1
    shown = capsys.readouterr()
    assert "2 of 2 failed" in shown.out
    assert re.search(r"plugin.py:\d+: no luck in round 2", shown.out)  # the words of the plugin
    assert "log.txt" in shown.out


def test_plan_lists_states_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, hyperparameters="- fail_in_round: {values: [2, null]}", job="seeds: [0]\nengine: inline")
    main(["-f", "benchmarkingjob.yaml"])
    capsys.readouterr()
    assert main(["plan", "-f", "benchmarkingjob.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "failed" in lines[0]
    assert "RuntimeError: " in lines[0]
    assert lines[1].endswith("seed 0: finished")
    printed("\n".join(line.split(maxsplit=1)[1] for line in lines[:2]) + f"\n{lines[2]}")


def test_report_shows_what_is_stored_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, job="seeds: [0]\nengine: inline")
    main(["-f", "benchmarkingjob.yaml"])
    first = capsys.readouterr().out
    assert main(["report", "-f", "benchmarkingjob.yaml"]) == 0
    assert capsys.readouterr().out == first


def test_the_workspace_on_the_command_line_wins(tmp_path: Path) -> None:
    write_job(tmp_path, job="seeds: [0]\nengine: inline")
    assert main(["-f", "benchmarkingjob.yaml", "--workspace", "elsewhere"]) == 0
    assert (tmp_path / "elsewhere" / "test" / "rank" / "all_rank.csv").is_file()
    assert not (tmp_path / "ws").exists()


def test_metrics_lists_every_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    shown = capsys.readouterr().out
    for name in ("accuracy", "mIoU", "BWT", "FWT", "FM_restricted", "CLEAR_in_domain", "CN_Forgetting", "Ianvs_BWT"):
        assert f"\n{name}" in f"\n{shown}"


def test_metrics_compute_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scores.json").write_text('{"R": [[0.9, 0.1], [0.5, 0.8]], "untrained": [0.1, 0.1]}')
    assert main(["metrics", "compute", "scores.json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["AA"] == pytest.approx(0.65)
    assert found["BWT"] == pytest.approx(-0.4)
    assert found["IM"] is None


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["metrics", "--help"]])
def test_help_is_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    assert "usage: ianvs" in capsys.readouterr().out


def test_majority_is_a_plugin_without_any_import_of_ours() -> None:
    assert "import" not in MAJORITY


@pytest.mark.slow
def test_status_tells_what_failed_and_logs_show_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, hyperparameters="- fail_in_round: {values: [2, null]}", job="seeds: [0]", engine="local")
    main(["-f", "benchmarkingjob.yaml"])
    capsys.readouterr()
    assert main(["status", "-f", "benchmarkingjob.yaml"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert re.search(r"failed +majority \(fail_in_round=2\), seed 0\b.*RuntimeError: plugin.py:\d+: ", shown[0])
    printed(shown[1])
    assert main(["logs", shown[0][:8], "-f", "benchmarkingjob.yaml"]) == 0
    assert "RuntimeError: " in capsys.readouterr().out
    assert main(["logs", "majority", "-f", "benchmarkingjob.yaml"]) == 0  # the one of its two that failed
    assert "RuntimeError: " in capsys.readouterr().out


def test_a_plugin_that_calls_sys_exit_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bye = edited(
        MAJORITY, "        if round == self.fail_in_round:", "        raise SystemExit('bye')\n        if round:"
    )
    write_job(tmp_path, plugin=bye, job="seeds: [0]")
    assert main(["-f", "benchmarkingjob.yaml"]) == 1
    assert re.search(r"SystemExit: plugin.py:\d+: sys.exit\('bye'\)", capsys.readouterr().out)


@pytest.mark.slow
def test_status_sees_what_runs_in_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = tmp_path / "gate"
    waits = f"""\
        import pathlib, time
        while round == 2 and not pathlib.Path({str(gate)!r}).exists():
            time.sleep(0.01)
        for label in"""
    slow = edited(MAJORITY, "        for label in", waits)
    write_job(tmp_path, plugin=slow, job="seeds: [0]", engine="local", hyperparameters="")
    process = subprocess.Popen([sys.executable, "-m", "ianvs", "-f", "benchmarkingjob.yaml"], stderr=subprocess.DEVNULL)
    try:
        shown = ""

        def in_round_2() -> bool:
            nonlocal shown
            main(["status", "-f", "benchmarkingjob.yaml"])
            shown = capsys.readouterr().out
            return "running" in shown and "round 2" in shown

        wait_for(in_round_2)
        assert "round 2 of 5" in shown
        assert "1 running" in shown
        process.terminate()  # the case ends its round first
        gate.touch()
        process.wait(PATIENCE)
    finally:
        process.kill()  # it ends its cases with it
        process.wait()


def test_logs_of_an_unknown_case_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path)
    status, error = said(capsys, "logs", "zzzz", "-f", "benchmarkingjob.yaml")
    assert status == 2
    printed(error)


def test_rerun_starts_over_what_matches(tmp_path: Path) -> None:
    import ianvs

    path = write_job(tmp_path, job="seeds: [0, 1]\nengine: inline")
    before = [found.metrics for found in ianvs.run(path)]
    again = ianvs.run(path, rerun="bias=1000,seed=0")
    assert again.ran == 1
    assert [found.metrics for found in again] == before


def test_rerun_of_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path)
    status, error = said(capsys, "-f", "benchmarkingjob.yaml", "--rerun", "nobody")
    assert status == 2
    printed(error)
