"""What is told of a workspace that is not as it was left, and by whom it is made good."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import IO

import numpy as np
import pytest

import ianvs
from ianvs import api
from ianvs.base.digests import checksummed_text
from ianvs.base.errors import DamagedError, IanvsError
from ianvs.running.progress import PlainProgress
from tests.edits import edited
from tests.errors import located, raised
from tests.jobs import MAJORITY, split_rounds, write_job

TESTENV = """
dataset: {train_url: ./train.npz, test_url: ./test.npz}
scenario: {name: class-incremental, rounds: 3}
metrics: [{name: accuracy}, {name: BWT}]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job that has ended, of two seeds; rounds that are trained are appended to the file `trained`."""
    dice = np.random.default_rng(0)
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=dice.normal(size=(60, 4)), y=np.arange(60) % 3)
    flag = f"__import__('os').path.exists({str(tmp_path / 'flag')!r})"
    note = f"        print(round, file=open({str(tmp_path / 'trained')!r}, 'a'), flush=True)\n"
    stop = f"        if round == 3 and {flag}:\n            raise KeyError\n"
    plugin = edited(MAJORITY, "        for label in", f"{note}{stop}        for label in")
    path = write_job(tmp_path, plugin=plugin, testenv=TESTENV, hyperparameters="", job="seeds: [0, 1]\nengine: inline")
    ianvs.run(path)
    (tmp_path / "trained").unlink()
    return path


def the_only(folder: Path, pattern: str) -> Path:
    return sorted((folder / "ws").glob(pattern))[0]


def scores(results: ianvs.Results) -> list[list[list[float]]]:
    return [found.matrices["accuracy"].values.tolist() for found in results]


def said_by_a_run(job: Path) -> tuple[str, ianvs.Results]:
    stream = io.StringIO()
    results = ianvs.run(job, listener=PlainProgress(stream))
    return stream.getvalue(), results


def test_a_score_that_was_changed_by_hand_is_told_and_computed_again(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = scores(api.report(job))
    changed = the_only(tmp_path, "cases/*/scores.json")
    changed.write_text(edited(changed.read_text(), "0.", "0.9", count=1))
    name = changed.relative_to(tmp_path / "ws").as_posix()
    [row] = api.report(job).leaderboard.rows
    assert (row.complete, dict(row.metrics), row.status) == (False, {}, "1 of 2 unfinished")
    markdown = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert changed.name.replace("_", "\\_") in markdown or changed.name in markdown
    assert sorted(planned.action for planned in ianvs.plan(job)) == ["nothing", "score"]
    said, results = said_by_a_run(job)
    assert re.search(rf"^warning: .*{re.escape(name)}", said, re.MULTILINE)
    assert name in capsys.readouterr().out
    assert scores(results) == before
    assert not (tmp_path / "trained").exists()
    assert results.leaderboard.rows[0].status == "finished"


def test_a_changed_result_trains_nothing_again(job: Path, tmp_path: Path) -> None:
    before = scores(api.report(job))
    changed = sorted((tmp_path / "ws").glob("cases/*/result.json"))[0]
    changed.write_text(edited(changed.read_text(), '"bound": false', '"bound": true'))
    name = changed.relative_to(tmp_path / "ws").as_posix()
    assert sorted(planned.action for planned in ianvs.plan(job)) == ["nothing", "resume"]
    said, results = said_by_a_run(job)
    assert re.search(rf"^warning: .*{re.escape(name)}", said, re.MULTILINE)
    assert scores(results) == before
    assert not (tmp_path / "trained").exists()


def test_an_exam_that_is_gone_is_prepared_again_and_no_case_runs(job: Path, tmp_path: Path) -> None:
    before = scores(api.report(job))
    shutil.rmtree(tmp_path / "ws" / "exams")
    told = api.report(job).leaderboard
    assert told.rows[0].status == "2 of 2 unfinished"
    assert any("exam.json" in str(note) for note in told.notes)
    assert [planned.action for planned in ianvs.plan(job)] == ["prepare", "prepare"]
    said, results = said_by_a_run(job)
    assert re.search(r"^warning: .*exam\.json", said, re.MULTILINE)
    assert (results.ran, scores(results), results.leaderboard.rows[0].status) == (0, before, "finished")


def test_rounds_that_can_not_be_believed_are_done_again(job: Path, tmp_path: Path) -> None:
    before = scores(api.report(job))
    predictions = the_only(tmp_path, "cases/*/predictions.zip")
    content = bytearray(predictions.read_bytes())
    content[-100] ^= 1
    predictions.write_bytes(content)
    assert sorted(planned.action for planned in ianvs.plan(job)) == ["nothing", "resume"]
    _, results = said_by_a_run(job)
    assert scores(results) == before
    assert (tmp_path / "trained").read_text().split() == ["1", "2", "3"]


@pytest.mark.slow
def test_a_model_that_was_changed_is_not_continued(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answers are as they were; the rounds that it is yet to be taught would end otherwise."""
    before = scores(api.report(job))
    shutil.rmtree(tmp_path / "ws" / "cases")
    (tmp_path / "flag").touch()
    ianvs.run(job)
    (tmp_path / "flag").unlink()
    model = the_only(tmp_path, "cases/*/rounds/2/model/model.txt")
    model.write_text(edited(model.read_text(), "{0: ", "{0: 0"[:-1] + "1"))
    capsys.readouterr()
    results = ianvs.run(job)
    assert re.search(r"\bfrom round 1\b", capsys.readouterr().out)
    assert scores(results) == before


@pytest.mark.parametrize("pattern", ["cases/*/result.json", "cases/*/scores.json"])
def test_what_a_colleague_may_not_read_stops_the_report_and_the_leaderboard_stays(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    closed = the_only(tmp_path, pattern)
    before = {path: path.read_bytes() for path in (tmp_path / "ws" / "test").rglob("*") if path.is_file()}

    def refuse(path: Path | str, mode: str, buffering: int) -> IO[bytes]:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, mode, buffering)  # noqa: PTH123

    monkeypatch.setattr("ianvs.base.digests.open", refuse, raising=False)
    with pytest.raises(IanvsError, match=re.escape(closed.name)) as caught:
        api.report(job)
    assert located(raised(caught.value)) == [("unreadable-file", "")]
    assert {path: path.read_bytes() for path in before} == before


def test_a_record_of_a_later_version_is_read(job: Path, tmp_path: Path) -> None:
    before = scores(api.report(job))
    split_rounds(tmp_path / "ws")
    case = the_only(tmp_path, "cases/*/case.json").parent
    record = case / "rounds" / "3" / "round.json"
    stored = {name: value for name, value in json.loads(record.read_text()).items() if name not in ("checksum", "file")}
    record.write_text(checksummed_text({**stored, "of_later": 1}, f"{case.name}/rounds/3/round.json"))
    assert scores(ianvs.run(job)) == before
    assert not (tmp_path / "trained").exists()


@pytest.mark.parametrize("pattern", ["test/job.json", "cases/*/case.json"])
def test_results_that_can_not_be_read_are_named(job: Path, tmp_path: Path, pattern: str) -> None:
    path = the_only(tmp_path, pattern)
    path.write_text("{}")
    with pytest.raises(DamagedError, match=re.escape(path.name)) as caught:
        ianvs.load_results(tmp_path / "ws")
    assert located(raised(caught.value)) == [("damaged-file", "")]
    ianvs.run(job)
    assert len(ianvs.load_results(tmp_path / "ws")) == 2
