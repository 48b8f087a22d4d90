"""Beside the real Ianvs: nothing that it wrote is lost, and its own tables are written byte for byte."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

import ianvs
from ianvs.cli import main
from ianvs.kubeedge.exact_tables import transfer
from tests.checkout import REGISTERED, Checkout
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job
from tests.nightly.kubeedge import beside_ianvs, learning_plugins

WRITTEN = Path(__file__).with_name("ianvs_tables")  # by Ianvs: see beside_ianvs


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    beside_ianvs.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in beside_ianvs.ORDERS:
        job = tmp_path / f"{name}.yaml"
        job.write_text(edited(job.read_text(), "  rank:\n", "  jobs: 2\n  rank:\n    style: ianvs\n"))
    return tmp_path


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def without_time_and_place(text: str) -> str:
    return re.sub(r"[^,]*,[^,]*$", "", text.replace("time,url", "time,url,"), flags=re.MULTILINE)


def test_its_tables_are_equal_byte_for_byte_but_for_time_and_paths(toys: Path) -> None:
    ianvs.run("single.yaml")
    for name in ("all_rank.csv", "selected_rank.csv"):
        ours = (toys / "ws/single/rank/ianvs" / name).read_text()
        theirs = (WRITTEN / f"single_{name}").read_text()
        assert without_time_and_place(ours) == without_time_and_place(theirs)
        assert ours.count("\n") > 6 and "0.44444445" in ours  # of a float32, as it is printed
    # Ours beside them: the chosen columns in their order, and equal rows once.
    ours = table(toys / "ws/single/rank/selected_rank.csv")
    theirs = table(WRITTEN / "single_selected_rank.csv")
    assert list(ours[0])[: len(theirs[0])] == list(theirs[0])
    assert [row["basemodel-lr"] for row in ours] == [row["basemodel-lr"] for row in theirs]
    said = (toys / "ws/single/rank/leaderboard.md").read_text()
    assert re.search(r"accuracy \(descending\).* count \(ascending\)", said)
    assert "is better" not in said  # nobody knows it of a plugin's metric


@pytest.mark.slow
@pytest.mark.parametrize("name", list(learning_plugins.METRICS))
def test_tables_of_what_learns_in_rounds_are_equal_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    learning_plugins.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    job = tmp_path / f"{name}.yaml"
    job.write_text(edited(job.read_text(), "  rank:\n", "  rank:\n    style: ianvs\n"))
    ianvs.run(job.name)
    for file in ("all_rank.csv", "selected_rank.csv"):
        ours, theirs = (tmp_path / "ws" / name / "rank/ianvs" / file).read_text(), WRITTEN / f"{name}_{file}"
        assert without_time_and_place(ours) == without_time_and_place(theirs.read_text())
        assert ours.count("\n") == 3 and len(set(ours.splitlines())) == 3


@pytest.mark.slow
def test_joint_inference_shares_a_folder_and_finds_the_cache_that_was_put_there(toys: Path) -> None:
    place = toys / "ws/joint/toy/cache.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"dddd": {"answer": "from the cache", "asked": 0}}))
    slow = edited(beside_ianvs.ALGORITHMS["joint"], "[big, small]", "[big, small]}}, {slow: {values: [0.05]")
    (toys / "joint_algorithm.yaml").write_text(slow)
    ianvs.run("joint.yaml")
    # Two cases at a time read, wait and write: none has undone what another one wrote.
    asked = {question: one["asked"] for question, one in json.loads(place.read_text()).items()}
    assert asked == {"bb": 2, "ccc": 4, "dddd": 4}
    assert {row["accuracy"] for row in table(toys / "ws/joint/rank/ianvs/all_rank.csv")} == {"0.75", "0.5"}


@pytest.mark.slow
def test_prefixes_are_of_the_modules_own_types_whatever_is_selected(toys: Path) -> None:
    ianvs.run("joint.yaml")
    for name in ("all_rank.csv", "selected_rank.csv"):
        ours = (toys / "ws/joint/rank/ianvs" / name).read_text()
        assert without_time_and_place(ours) == without_time_and_place((WRITTEN / f"joint_{name}").read_text())
    header = list(table(toys / "ws/joint/rank/selected_rank.csv")[0])
    assert header[:8] == [
        "rank",
        "algorithm",
        "count",
        "paradigm",
        "hard_example_mining",
        "edgemodel-model",
        "time",
        "url",
    ]
    assert "hard_example_mining-model" in table(toys / "ws/joint/rank/all_rank.csv")[0]


@pytest.mark.slow
def test_a_table_that_ianvs_wrote_is_never_written_over(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rank = toys / "ws/single/rank"
    rank.mkdir(parents=True)
    for name in ("all_rank.csv", "selected_rank.csv"):
        shutil.copy(WRITTEN / f"single_{name}", rank / name)
    before = {path.name: path.read_bytes() for path in rank.iterdir()}
    assert main(["run", "-f", "single.yaml"]) == 0
    said = capsys.readouterr().out
    assert "9 rows" in said and "ws/single/leaderboard" in said
    assert {path.name: path.read_bytes() for path in rank.iterdir()} == before
    rows = table(toys / "ws/single/leaderboard/all_rank.csv")
    theirs = [row for row in rows if row["Status"] == "measured by Ianvs"]
    assert len(theirs) == 9 and len(rows) == 18
    for row, read in zip(theirs, table(rank / "all_rank.csv"), strict=True):
        same = [title for title in read if title not in ("rank", "accuracy", "count")]
        assert [row[title] for title in same] == [read[title] for title in same]
        assert float(row["accuracy"]) == float(read["accuracy"]) and row["rank"] == "-"
    assert [row["rank"] for row in rows[:9]].count("1") == 4  # theirs take no rank
    assert "measured by Ianvs" in (toys / "ws/single/leaderboard/report.html").read_text()
    again = main(["report", "-f", "single.yaml"])
    assert again == 0 and {path.name: path.read_bytes() for path in rank.iterdir()} == before


@pytest.mark.slow
def test_rows_that_ianvs_added_to_a_table_of_ours_are_kept(toys: Path) -> None:
    ianvs.run("single.yaml")
    rank = toys / "ws/single/rank/all_rank.csv"
    header = list(table(rank)[0])
    with rank.open("a", newline="") as file:  # as pandas writes both together
        added = {"rank": "10", "algorithm": "old", "accuracy": "0.125", "time": "2025-01-01 00:00:00"}
        csv.DictWriter(file, header, restval="").writerow(added)
    before = rank.read_bytes()
    ianvs.run("single.yaml")
    rows = table(toys / "ws/single/leaderboard/all_rank.csv")
    assert [(row["algorithm"], row["accuracy"]) for row in rows if row["Status"] == "measured by Ianvs"] == [
        ("old", "0.125")
    ]
    assert len(rows) == 10 and rank.read_bytes() == before


def test_the_style_is_for_jobs_of_its_contract(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    job.write_text(edited(job.read_text(), "    sort_by:", "    style: ianvs\n    sort_by:"))
    assert [code for code, _ in errors_of(ianvs.validate, job)] == ["invalid-choice"]


def test_its_transfer_is_added_up_in_its_order() -> None:
    rows = (
        "0.623 0.742 0.795 0.942; 0.74 0.922 0.029 0.466; 0.943 0.649 0.901 0.113; "
        "0.469 0.247 0.544 0.574; 0.013 0.217 0.279 0.916"
    )
    M = [[float(cell) for cell in row.split()] for row in rows.split(";")]
    # What core.testcasecontroller.metrics.metrics.compute gives, to the last digit.
    assert transfer(M) == {"BWT": -0.10481249999999998, "FWT": -0.02049999999999999}
    assert transfer(M[1:]) == transfer([]) == {"BWT": None, "FWT": None}


@pytest.mark.slow
def test_status_and_logs_find_what_ran_with_another_pythonpath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = Checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    body = """\
from sizes import SIZE
REGISTERED@ClassFactory.register(ClassType.GENERAL, alias="Toy")
class BaseModel:
    def __init__(self, lr, epochs): pass
    def train(self, data, **kwargs): print("trained with size", SIZE)
    def save(self, path): return path
    def load(self, path): pass
    def predict(self, x, **kwargs): return ["cat" for _ in x]
"""
    checkout.write(checkout.basemodel, body.replace("REGISTERED", REGISTERED))
    checkout.write(checkout.basemodel.parent / "Net/sizes.py", "SIZE = 3\n")
    with monkeypatch.context() as with_path:
        with_path.setenv("PYTHONPATH", str(checkout.basemodel.parent / "Net"))
        with_path.syspath_prepend(str(checkout.basemodel.parent / "Net"))
        case = next(iter(ianvs.run(checkout.job))).case.id
    capsys.readouterr()
    assert main(["status", "-f", str(checkout.job)]) == 0
    status = capsys.readouterr().out
    assert "4 finished" in status and "PYTHONPATH" in status
    assert main(["logs", case[:8], "-f", str(checkout.job)]) == 0
    assert "size 3" in capsys.readouterr().out
    assert main(["logs", "ffffffffffff", "-f", str(checkout.job)]) == 2
