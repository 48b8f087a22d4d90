"""A workspace of ianvs 0.2 is shown, compared and merged; earlier_workspace.zip was written by that version.

Two cases finished: one is packed into result.json and answers.zip, one has a file for each record. Two failed.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

import ianvs
from ianvs.base.types import PredictionKey
from ianvs.store import CaseStore

ACCURACY = 0.3333333333333333


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    with ZipFile(Path(__file__).with_name("earlier_workspace.zip")) as archive:
        archive.extractall(tmp_path / "ws")
    return tmp_path / "ws"


def test_a_report_shows_the_numbers_of_then(workspace: Path) -> None:
    results = ianvs.load_results(workspace)
    assert [result.status for result in results] == ["finished", "failed", "finished", "failed"]
    for result in results:
        assert dict(result.metrics) == ({"accuracy": ACCURACY, "BWT": 0.0} if result.status == "finished" else {})
        assert len(result.rounds) == (4 if result.status == "finished" else 3)
    assert str(results.failed[0].failure).count("no luck in round 3") == 1
    store = CaseStore(workspace)
    first, second = (result.case.id for result in results if result.status == "finished")
    assert {path.name for path in store.folder(first).iterdir()} != {
        path.name for path in store.folder(second).iterdir()
    }
    for case_id in (first, second):
        assert store.is_earlier(case_id)
        assert store.predictions(case_id, 3)[PredictionKey(0)].labels.tolist() == [0] * 20
        modules = store.modules(case_id, 3)
        assert modules is not None and modules[0].path is not None and modules[0].path.exists()


def test_it_is_compared_and_merged(workspace: Path, tmp_path: Path) -> None:
    rows = ianvs.compare([workspace, workspace]).contrasts[0].rows
    assert rows
    other = tmp_path / "other"
    workspace.rename(other)
    with ZipFile(Path(__file__).with_name("earlier_workspace.zip")) as archive:
        archive.extractall(workspace)
    merged = ianvs.merge([workspace, other], tmp_path / "merged")
    assert not [line for line in merged.messages if "failed" not in line]
    assert [result.metrics for result in merged.results] == [result.metrics for result in ianvs.load_results(other)]


def test_a_byte_that_changed_since_is_noticed(workspace: Path) -> None:
    before = {result.case.id: dict(result.metrics) for result in ianvs.load_results(workspace)}
    store = CaseStore(workspace)
    finished = [case_id for case_id, metrics in before.items() if metrics]
    for case_id in finished:
        for path in sorted(store.folder(case_id).rglob("*")):
            if path.is_file() and path.parent.name != "model":
                content = path.read_bytes()
                middle = len(content) // 2
                path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
                assert store.state(case_id).damaged, path
                path.write_bytes(content)
        assert store.status(case_id) == "finished"
