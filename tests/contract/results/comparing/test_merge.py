"""Half jobs in one workspace are the whole job."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ianvs
from ianvs.api import report
from ianvs.base.errors import IanvsError
from ianvs.cli import main
from tests.contract.results.comparing.small_jobs import PLUGIN, SCENARIO, run
from tests.edits import edited
from tests.errors import errors_of, located, printed, raised

PLAIN, LOUD = "[0.0, 0.2]", "[0.4]"
BOTH = {"plain": PLAIN, "loud": LOUD}
# What clocks and meters say; whether a row is in the Pareto front depends on them.
MEASURED = {
    "Train_seconds",
    "Eval_seconds",
    "Train_cpu_seconds",
    "Eval_cpu_seconds",
    "Case_seconds",
    "Peak_memory_mb",
    "Pareto",
    "Time",
}


def without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{8}\b", "<case>", text)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One job as a whole; the same in halves by seeds, and in halves by algorithms."""
    folder = tmp_path_factory.mktemp("jobs")
    run(folder / "whole", BOTH, [0, 1, 2, 3])
    run(folder / "early", BOTH, [0, 1])
    run(folder / "late", BOTH, [2, 3])
    shutil.copytree(folder / "whole", folder / "plain")
    run(folder / "plain", {"plain": PLAIN}, [0, 1, 2, 3])
    shutil.copytree(folder / "whole", folder / "loud")
    run(folder / "loud", {"loud": LOUD}, [0, 1, 2, 3])
    return folder


def timeless_csv(file: Path) -> list[list[str]]:
    lines = list(csv.reader(io.StringIO(file.read_text())))
    kept = [at for at, title in enumerate(lines[0]) if title not in MEASURED]
    assert len(kept) < len(lines[0])
    return [[line[at] for at in kept] for line in lines]


def timeless_page(file: Path) -> list[str]:
    """The page; in its first table without the columns of MEASURED, whose widths change with their content."""
    return list(_without_measured(file.read_text().splitlines()))


def _without_measured(lines: list[str]) -> Iterator[str]:
    kept: list[int] | None = None
    for line in lines:
        cells = [cell.strip() for cell in line.split("|")]
        if kept is None and "Rank" in cells:
            kept = [at for at, title in enumerate(cells) if title not in MEASURED]
        if kept and line.startswith("|"):
            yield "" if line.startswith("|--") else "|".join(cells[at] for at in kept)
        else:
            kept = [] if kept else kept
            yield line


def assert_same_reports(merged: Path, whole: Path) -> None:
    ours, theirs = (workspace / "small" / "rank" for workspace in (merged, whole))
    assert timeless_csv(ours / "all_rank.csv") == timeless_csv(theirs / "all_rank.csv")
    assert timeless_page(ours / "leaderboard.md") == timeless_page(theirs / "leaderboard.md")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize("halves", [("early", "late"), pytest.param(("plain", "loud"), marks=pytest.mark.slow)])
def test_two_halves_make_the_leaderboard_of_the_whole_job(jobs: Path, tmp_path: Path, halves: tuple[str, str]) -> None:
    before = {name: snapshot(jobs / name) for name in halves}
    merged = ianvs.merge([jobs / name / "ws" for name in halves], tmp_path / "ws")
    assert merged.messages == ()
    assert_same_reports(tmp_path / "ws", jobs / "whole" / "ws")
    assert {name: snapshot(jobs / name) for name in halves} == before
    rows = merged.results.leaderboard.rows
    assert [len(row.seeds) for row in rows] == [4, 4, 4]
    assert all(row.metrics["FWT_survey"].mean is not None for row in rows)  # the reference runs came along


def test_report_and_plan_believe_what_was_merged(
    jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ianvs.merge([jobs / "early", jobs / "late"], tmp_path / "ws")  # job folders: their workspaces are looked up
    job = jobs / "whole" / "benchmarkingjob.yaml"
    planned = list(ianvs.plan(job, workspace=tmp_path / "ws"))
    assert {(one.state, one.action) for one in planned} == {("finished", "nothing")}
    page = (tmp_path / "ws" / "small" / "rank" / "leaderboard.md").read_bytes()
    assert report(job, workspace=tmp_path / "ws").leaderboard.notes == ()
    assert (tmp_path / "ws" / "small" / "rank" / "leaderboard.md").read_bytes() == page
    assert (
        main(["merge", str(jobs / "early" / "ws"), str(jobs / "late" / "ws:small"), "--out", str(tmp_path / "v")]) == 0
    )
    said = capsys.readouterr().out
    assert f"cases from {jobs / 'early' / 'ws'}" in said
    assert "plain" in said


def test_the_same_case_is_kept_once_and_other_scores_are_said(jobs: Path, tmp_path: Path) -> None:
    shutil.copytree(jobs / "early", tmp_path / "copy")
    copy = tmp_path / "copy" / "ws"
    merged = ianvs.merge([jobs / "whole" / "ws", copy], tmp_path / "one")
    assert merged.messages == ()
    assert merged.taken == {str(jobs / "whole" / "ws"): 24, str(copy): 0}
    changed = ianvs.load_results(copy)
    case = changed.case_list[0]
    _rescore(copy, case.id)
    merged = ianvs.merge([jobs / "whole" / "ws", copy], tmp_path / "two")
    [said] = merged.messages
    assert case.id[:8] in said
    printed(without_ids(said))
    assert_same_reports(tmp_path / "two", jobs / "whole" / "ws")


def _rescore(workspace: Path, case_id: str) -> None:
    """As if another machine had scored the case otherwise."""
    from ianvs.store import CaseStore
    from ianvs.store.stored_score import score_record

    store = CaseStore(workspace)
    column = next(c for c in ianvs.load_results(workspace).metrics[""] if c.name == "accuracy")
    values, details, *_ = store.score(case_id, column.key)  # type: ignore[misc]
    store.write_score(case_id, column.key, score_record(values / 2, details))


def test_a_damaged_case_is_left_out_where_no_other_is_whole_and_replaced_where_one_is(
    jobs: Path, tmp_path: Path
) -> None:
    shutil.copytree(jobs / "early", tmp_path / "copy")
    copy = tmp_path / "copy" / "ws"
    case = ianvs.load_results(copy).case_list[1]
    answers = copy / "cases" / case.id / "predictions.zip"
    stat = answers.stat()
    answers.write_bytes(b"x" * stat.st_size)
    os.utime(answers, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # only who reads it finds out
    merged = ianvs.merge([copy, jobs / "late" / "ws"], tmp_path / "one")
    left_out, unfinished = merged.messages
    assert case.id[:8] in left_out and "predictions.zip" in left_out
    printed(without_ids(f"{left_out}\n{unfinished}"))
    assert not (tmp_path / "one" / "cases" / case.id).exists()
    merged = ianvs.merge([copy, jobs / "late" / "ws", jobs / "early" / "ws"], tmp_path / "two")
    assert merged.messages == (left_out,)
    assert_same_reports(tmp_path / "two", jobs / "whole" / "ws")


@pytest.mark.slow
def test_another_exam_and_other_source_under_the_same_name_are_left_out(jobs: Path, tmp_path: Path) -> None:
    early = jobs / "early" / "ws"
    other = run(tmp_path / "exam", {"plain": PLAIN}, [5], scenario="{name: class-incremental, rounds: 5}") / "ws"
    assert errors_of(ianvs.merge, [early, other], tmp_path / "out") == [("unfit-results", "")]
    assert not (tmp_path / "out").exists()
    changed = edited(PLUGIN, "sum(axis=2).argmin", "sum(axis=2).round(3).argmin")
    source = run(tmp_path / "source", {"plain": "[0.0]", "new": "[1.0]"}, [0, 1], plugin=changed) / "ws"
    merged = ianvs.merge([early, source], tmp_path / "out")
    [said] = merged.messages
    assert said.startswith(str(source)) and "source plugin.py" in said
    printed(without_ids(said))
    assert [row.algorithm for row in merged.results.leaderboard.rows].count("plain") == 2
    assert "new" in [row.algorithm for row in merged.results.leaderboard.rows]


def test_a_failed_case_gives_way_to_one_that_has_finished(jobs: Path, tmp_path: Path) -> None:
    from ianvs.base.types import Failure
    from ianvs.store import CaseStore

    shutil.copytree(jobs / "early", tmp_path / "copy")
    copy = tmp_path / "copy" / "ws"
    case = ianvs.load_results(copy).case_list[0]
    CaseStore(copy).fail(case.id, Failure("exception", "RuntimeError", "no luck"))
    merged = ianvs.merge([copy, jobs / "whole" / "ws"], tmp_path / "one")
    [left_out] = merged.messages
    assert_same_reports(tmp_path / "one", jobs / "whole" / "ws")
    merged = ianvs.merge([copy, jobs / "late" / "ws"], tmp_path / "two")
    [kept] = merged.messages
    assert case.id[:8] in left_out and case.id[:8] in kept
    printed(without_ids(f"{left_out}\n{kept}"))
    assert "1 of 4 failed" in (tmp_path / "two" / "small" / "rank" / "leaderboard.md").read_text()


@pytest.mark.slow
def test_a_metric_that_only_one_job_has_is_left_out_or_leaves_out(jobs: Path, tmp_path: Path) -> None:
    more = run(tmp_path / "more", BOTH, [2, 3], metrics="[{name: accuracy}, {name: f1}]") / "ws"
    merged = ianvs.merge([jobs / "early" / "ws", more], tmp_path / "one")
    assert any(said.startswith(str(more)) and "f1" in said for said in merged.messages)
    printed(without_ids("\n".join(merged.messages)))
    with pytest.raises(IanvsError) as caught:
        ianvs.merge([more, jobs / "early" / "ws"], tmp_path / "two")
    assert located(raised(caught.value)) == [("unfit-results", "")]
    printed(without_ids(str(caught.value)))


@pytest.mark.slow
def test_an_exam_without_a_name_finds_its_own_and_drawn_exams_fit_theirs(tmp_path: Path) -> None:
    drawn = "{name: class-incremental, rounds: 2, order_seed: case}"
    exams, plain = {"fixed": SCENARIO, "drawn": drawn}, {"plain": "[0.1]"}
    whole = run(tmp_path / "whole", plain, [0, 1], exams=exams, metrics="[{name: accuracy}]") / "ws"
    both = run(tmp_path / "both", plain, [0], exams=exams, metrics="[{name: accuracy}]") / "ws"
    alone = run(tmp_path / "alone", plain, [1], metrics="[{name: accuracy}]") / "ws"
    nameless = run(tmp_path / "nameless", plain, [1], scenario=drawn, metrics="[{name: accuracy}]") / "ws"
    merged = ianvs.merge([both, alone, nameless], tmp_path / "out")
    assert merged.messages == ()
    assert_same_reports(tmp_path / "out", whole)
    assert errors_of(ianvs.merge, [alone, nameless], tmp_path / "odd") == [("unfit-results", "")]
    [said] = ianvs.merge([alone, both], tmp_path / "other").messages
    assert said.startswith(str(both))
    printed(said)


def test_a_case_that_two_jobs_call_differently_is_two_rows_of_one_folder(jobs: Path, tmp_path: Path) -> None:
    twin = run(tmp_path / "twin", {"twin": "[0.0]"}, [0, 1]) / "ws"
    merged = ianvs.merge([jobs / "early" / "ws", twin], tmp_path / "out")
    assert merged.messages == ()
    rows = {row.algorithm: row for row in merged.results.leaderboard.rows if row.hyperparameters["noise"] == 0.0}
    assert rows["twin"].metrics == rows["plain"].metrics
    assert rows["twin"].urls == rows["plain"].urls


def test_what_can_not_be_merged_is_refused_before_anything_is_written(jobs: Path, tmp_path: Path) -> None:
    early, late = jobs / "early" / "ws", jobs / "late" / "ws"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for sources, out, why in (
        ([early, late], tmp_path / "full", "not empty"),
        ([early, late], early / "merged", "which is only read"),
        ([early], tmp_path / "new", "two workspaces"),
        ([early, jobs / "late" / "ws" / "small" / "rank"], tmp_path / "new", "its cases are needed"),
        ([early, tmp_path / "full"], tmp_path / "new", "holds no results"),
    ):
        with pytest.raises(IanvsError, match=why):
            ianvs.merge(sources, out)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
