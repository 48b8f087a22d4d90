"""What was stored by an earlier version of a method can still be read, and says so."""

import re
from pathlib import Path

import pytest

import ianvs
from ianvs import api
from ianvs.cli import main
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, write_job

INLINE = "seeds: [0, 1]\nengine: inline"


@pytest.mark.slow
def test_a_report_shows_what_an_earlier_method_has_stored_and_marks_it_until_it_is_run_again(tmp_path: Path) -> None:
    job = write_job(tmp_path, job=INLINE)
    before = ianvs.run(job)
    (tmp_path / "plugin.py").write_text(edited(MAJORITY, "seed / 1000", "seed / 999"))
    for _ in range(2):  # the mark is stored with what is reported, and stands there once
        found = api.report(job)
        assert [case.case.id for case in found] == [case.case.id for case in before]
        assert found.leaderboard_frame["accuracy"].equals(before.leaderboard_frame["accuracy"])
        [mark] = [str(note) for note in found.notes if note.kind == "version"]
        assert "plugin.py" in mark and "`ianvs run`" in mark
        assert mark in (tmp_path / "ws/test/rank/leaderboard.md").read_text()
    assert not [note for note in ianvs.run(job).notes if note.kind == "version"]
    assert mark not in (tmp_path / "ws/test/rank/leaderboard.md").read_text()


def test_status_tells_where_to_read_of_what_was_stored_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, job=INLINE)
    ianvs.run(job)
    (tmp_path / "plugin.py").write_text(edited(MAJORITY, "seed / 1000", "seed / 999"))
    capsys.readouterr()
    assert main(["status", "-f", str(job)]) == 0
    printed(capsys.readouterr().err)


@pytest.mark.slow
def test_cases_of_an_earlier_plugin_are_told_and_shown_beside_those_of_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, job="seeds: [0, 1, 2]\nengine: inline")
    before = {case.case.id for case in ianvs.run(job)}
    (tmp_path / "plugin.py").write_text(edited(MAJORITY, "seed / 1000", "seed / 999"))
    capsys.readouterr()
    assert main(["run", "-f", str(job), "--only", "seed=0"]) == 0
    assert re.search(r"\b2 cases\b.*\bplugin\.py\b", capsys.readouterr().err)
    found = api.report(job)
    [note] = [str(note) for note in found.notes if note.kind == "version"]
    assert "4 cases" in note and "plugin.py" in note and "`ianvs report --stored`" in note
    printed(note)
    assert {row.algorithm for row in found.leaderboard.rows} == {"majority"}
    for _ in range(2):
        stored = api.report(job, stored=True)
        assert {row.algorithm for row in stored.leaderboard.rows} == {"majority", "majority (earlier plugin.py)"}
        earlier = [one for one in stored if one.case.algorithm == "majority (earlier plugin.py)"]
        assert {one.case.id for one in earlier} <= before
        assert [(one.status, bool(one.metrics)) for one in earlier] == [("finished", True)] * 4
        assert len(stored) == 6
    assert [case.case.id for case in ianvs.load_results(tmp_path / "ws")] == [case.case.id for case in stored]
    assert ianvs.run(job).ran == 4
    assert not [note for note in api.report(job, stored=True).notes if note.kind == "version"]


def test_a_comment_in_a_shared_helper_makes_no_case_new(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("def half(x):\n    return x / 2\n")
    imports = "from ast import literal_eval\nfrom helper import half\n\n\nclass Majority"
    plugin = edited(MAJORITY, "class Majority", imports, "seed / 1000", "half(seed)", " eval(", " literal_eval(")
    job = write_job(tmp_path, job=INLINE, plugin=plugin)
    first = ianvs.run(job)
    digests = [case.provenance["source"] for case in first]
    assert all(set(one) == {"helper.py", "plugin.py"} for one in digests)
    helper.write_text('"""Shared."""\n\n\ndef half(x):  # of it\n    return x / 2\n')
    assert ianvs.run(job).ran == 0
    helper.write_text("def half(x):\n    return x / 3\n")
    assert ianvs.run(job).ran == len(first)


def test_cases_of_an_earlier_source_are_kept_where_that_is_asked_for_and_the_board_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, job=INLINE)
    before = ianvs.run(job)
    (tmp_path / "plugin.py").write_text(f"{MAJORITY}\n\nclass Unrelated:\n    size = 1\n")
    assert {planned.action for planned in api.plan(job)} == {"run"}
    main(["run", "-f", str(job), "--only", "seed=0", "--limit", "1"])  # somebody began to run them anew
    capsys.readouterr()

    kept = ianvs.run(job, keep=True)
    assert (kept.ran, len(kept)) == (0, len(before))
    assert [one.metrics for one in kept] == [one.metrics for one in before]
    again = {case.case.id for case in kept} - {case.case.id for case in before}
    assert len(again) == 1  # the one that has run since is not replaced
    for found in (kept, api.report(job), ianvs.load_results(tmp_path / "ws")):
        [note] = [str(note) for note in found.notes if note.kind == "version"]
        assert f"{len(before) - 1} cases" in note and "plugin.py" in note and "seed 1" in note
    printed(note)
    assert {planned.action for planned in api.plan(job)} == {"nothing"}
    assert "plugin.py" in next(planned.reason for planned in api.plan(job) if planned.case.id not in again)
    assert "kept" in (tmp_path / "ws/test/rank/leaderboard.md").read_text()

    assert ianvs.run(job, rerun="seed=1").ran == len([case for case in before if case.case.seed == 1])
    (tmp_path / "plugin.py").write_text(edited(MAJORITY, "seed / 1000", "seed / 999"))
    assert {planned.action for planned in api.plan(job)} == {"run"}  # what was accepted was another change


def test_a_case_that_differs_in_more_than_its_source_is_not_kept(tmp_path: Path) -> None:
    job = write_job(tmp_path, job=INLINE)
    first = ianvs.run(job)
    (tmp_path / "plugin.py").write_text(f"{MAJORITY}\n\nclass Unrelated:\n    size = 1\n")
    assert ianvs.run(job, keep=True, settings=["threads=2"]).ran == len(first)


def test_a_kept_case_that_is_damaged_is_made_anew_under_the_source_of_today(tmp_path: Path) -> None:
    job = write_job(tmp_path, job=INLINE)
    first = ianvs.run(job)
    (tmp_path / "plugin.py").write_text(f"{MAJORITY}\n\nclass Unrelated:\n    size = 1\n")
    ianvs.run(job, keep=True)
    lost = next(iter(first)).directory
    for path in lost.rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    found = ianvs.run(job)
    assert found.ran == 1
    assert lost.name not in {case.case.id for case in found}


def test_compare_says_which_methods_are_others(tmp_path: Path) -> None:
    job = write_job(tmp_path / "a", job=INLINE)
    ianvs.run(job)
    other = write_job(tmp_path / "b", job=INLINE, plugin=edited(MAJORITY, "seed / 1000", "seed / 999"))
    ianvs.run(other)
    said = str(ianvs.compare([tmp_path / "a/ws", tmp_path / "b/ws"]).contrasts[0].rows[0].pair.differs)
    assert "source plugin.py" in said
