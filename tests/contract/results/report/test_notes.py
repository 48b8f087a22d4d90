"""What a reader has to know beside the numbers: which notes there are, and that every view shows them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import ianvs
from ianvs import api
from ianvs.base.errors import IanvsError
from ianvs.results.exports.exporting import export_results
from ianvs.results.report.document import Note
from ianvs.results.report.terminal import render
from ianvs.results.stored import Results
from tests.edits import edited
from tests.errors import located, printed, raised
from tests.jobs import MAJORITY, TESTENV, write_job

FAILING = "- bias: {values: [0, 1000]}\n- fail_in_round: {values: [9, 2]}"
TWINS = """
import numpy as np

def twins():
    x = np.arange(200, dtype=np.uint8).repeat(4).reshape(-1, 2, 2)
    y = np.arange(200) % 4
    return (x, y), (x[:32], y[:32])
"""


def of_kind(results: Results, kind: str) -> list[Note]:
    return [note for note in results.notes if note.kind == kind]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two of four rows fail in round 2; the data repeat training samples in the test part."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "twins.py").write_text(TWINS)
    testenv = edited(TESTENV, "{name: digits}", "{name: twins, url: ./twins.py}", "rounds: 5", "rounds: 2")
    return ianvs.run(write_job(folder, hyperparameters=FAILING, testenv=testenv, job="seeds: [0, 1]\nengine: inline"))


@pytest.mark.slow
def test_a_row_that_failed_is_no_bound_and_is_told_as_failed(failing: Results) -> None:
    assert not any(row.bound for row in failing.leaderboard.rows)
    assert not of_kind(failing, "bound")
    [partial] = of_kind(failing, "partial")
    printed(partial.text)
    [failed] = of_kind(failing, "failed")
    assert (failed.subject, failed.about) == ("4 cases of majority", "case")
    assert failed.text.startswith("RuntimeError: ") and "`ianvs logs " in failed.remedy
    assert "2 configurations of majority" in " ".join(failing.leaderboard.statements)  # those that count


def test_what_is_wrong_with_the_data_is_known_to_every_later_report(failing: Results) -> None:
    [data] = of_kind(failing, "data")
    assert data.text.startswith("32 of 32 ")
    printed(data.text)
    assert data.about == "testenv"
    loaded = ianvs.load_results(failing.workspace)
    assert loaded.notes == failing.notes
    assert of_kind(api.report(failing.workspace.parent / "benchmarkingjob.yaml"), "data") == [data]


def test_every_view_has_the_same_notes(failing: Results, tmp_path: Path) -> None:
    folder = failing.workspace / "test" / "rank"
    page = (
        (failing.workspace / "test" / "report.html").read_text()
        if (failing.workspace / "test" / "report.html").exists()
        else (folder / "report.html").read_text()
    )
    stream = io.StringIO()
    render(failing.leaderboard, Console(file=stream, width=400), explain=True)
    exported = export_results(failing, "parquet", tmp_path / "parquet")
    views = {
        "terminal": stream.getvalue(),
        "markdown": plain((folder / "leaderboard.md").read_text(), "\\"),
        "latex": plain((folder / "leaderboard.tex").read_text(), "\\{}"),
        "page": plain(page, ""),
        "csv": (folder / "notes.csv").read_text(),
        "parquet": pd.read_parquet(exported / "notes.parquet").to_csv(),
    }
    assert {note.kind for note in failing.notes} >= {"partial", "failed", "data", "limit"}
    for note in failing.notes:
        for name, text in views.items():
            assert plain(note.text, "\\{}") in plain(text, "\\{}"), (name, note)
    rows = list(csv.DictReader(views["csv"].splitlines()))
    assert [(row["kind"], row["text"]) for row in rows] == [(note.kind, note.text) for note in failing.notes]


def plain(text: str, marks: str) -> str:
    for mark in marks:
        text = text.replace(mark, "")
    return text.replace("&#39;", "'").replace("&#34;", '"')


def test_what_is_said_of_several_rows_is_one_note_with_their_number(failing: Results) -> None:
    [remark] = of_kind(failing, "remark")
    assert "; " in remark.subject
    assert remark.subject.count("seeds 0, 1") == 2


def test_a_trial_says_that_it_shows_a_part_of_the_job(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0, 1]\nengine: inline")
    [note] = of_kind(ianvs.run(path, limit=1, settings=["fail_in_round=9"]), "settings")
    printed(note.text)
    assert "ianvs report" in note.remedy
    text = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert text.index("--limit 1") < text.index("| Algorithm")
    [whole] = of_kind(ianvs.run(path, settings=["fail_in_round=9"]), "settings")
    printed(whole.text)


def test_a_secret_setting_is_not_told(tmp_path: Path) -> None:
    path = write_job(tmp_path, plugin=edited(MAJORITY, "bias=0, ", "bias=0, api_key=None, "), job="engine: inline")
    [note] = of_kind(ianvs.run(path, settings={"api_key": "abracadabra-123"}), "settings")
    assert "abracadabra" not in note.text


def test_a_ranking_that_waits_for_cases_has_no_winner_yet(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]\nengine: inline")
    ianvs.run(path, limit=1)
    results = api.report(path)
    [partial] = of_kind(results, "partial")
    printed(partial.text)
    page = next((tmp_path / "ws").rglob("report.html")).read_text()
    assert "1 row, 1 seed, 1 case" in " ".join(page.split())
    assert " leads so far" in page


def test_a_row_that_learns_all_at_once_is_a_bound_that_saw_all_rounds(tmp_path: Path) -> None:
    path = write_job(tmp_path, algorithms=("majority", "at_once"), hyperparameters="", job="seeds: [0]\nengine: inline")
    text = (tmp_path / "algorithm.yaml").read_text()
    (tmp_path / "at_once.yaml").write_text(edited(text, "incrementallearning", "singletasklearning"))
    path.write_text(
        edited(path.read_text(), "name: at_once, url: ./algorithm.yaml", "name: at_once, url: ./at_once.yaml")
    )
    [note] = of_kind(ianvs.run(path), "bound")
    assert "at_once" in note.text
    printed(note.text)


def test_an_own_metric_with_a_name_of_ours_is_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def accuracy(y_true, y_pred): return float((y_true == y_pred).mean())\n")
    testenv = edited(TESTENV, "{name: accuracy}, ", "{name: accuracy, url: ./own.py}, ")
    [note] = of_kind(ianvs.run(write_job(tmp_path, testenv=testenv, job="seeds: [0]\nengine: inline")), "metric")
    assert "'accuracy'" in note.text and "own.py" in note.text
    printed(note.text)


def test_a_report_for_other_settings_says_which_are_stored(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]\nengine: inline")
    ianvs.run(path)
    with pytest.raises(IanvsError) as caught:
        api.report(path, settings=["bias=5"])
    assert located(raised(caught.value)) == [("missing-results", "")]
    assert "bias 0, 1000" in str(caught.value)  # what is stored


def test_notes_of_earlier_versions_are_read(tmp_path: Path) -> None:
    import json

    from ianvs.store import JobStore

    results = ianvs.run(write_job(tmp_path, job="seeds: [0]\nengine: inline"))
    store = JobStore(results.workspace, results.name)
    record: dict[str, Any] = {key: value for key, value in (store.read() or {}).items() if key != "all_notes"}
    earlier = "Each seed takes an exam of its own."
    store.write({**record, "notes": [earlier]})
    [note] = of_kind(ianvs.load_results(results.workspace), "data")
    assert note == Note("data", earlier)
    assert json.dumps(vars(note))
