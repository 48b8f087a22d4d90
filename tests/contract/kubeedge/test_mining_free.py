"""The mode mining-free of joint inference, as KubeEdge Ianvs has it since May 2026."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.errors import recorded

EXAMPLE = Path(__file__).parents[3] / "examples" / "draft_and_verify"
# (exact, acceptance) by mode and step that KubeEdge Ianvs made of the example (github.com/zjteee/ianvs, e89dd08).
THEIRS = {
    ("collaboration", "2"): (1.0, 0.7316),
    ("collaboration", "6"): (1.0, 0.489),
    ("cloud-only", "2"): (1.0, 0.0),
    ("cloud-only", "6"): (1.0, 0.0),
    ("edge-only", "2"): (0.0, 0.0),
    ("edge-only", "6"): (0.0, 0.0),
}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example in a checkout, where its paths start."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "examples" / "draft_and_verify"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("workspace"))
    return folder / "benchmarkingjob.yaml"


def test_numbers_and_columns_are_those_of_ianvs(job: Path, tmp_path: Path) -> None:
    results = ianvs.run(job, workspace=tmp_path / "ws", engine="inline")
    table = tmp_path / "ws" / "draft_and_verify" / "rank" / "selected_rank.csv"
    header, *rows = csv.reader(table.read_text().splitlines())
    names = ["algorithm", "exact", "acceptance", "drafter-inference_mode", "drafter-draft_tokens_per_step"]
    assert header == ["rank", *names, "Seeds"]
    assert {(row[4], row[5]): (float(row[2]), float(row[3])) for row in rows} == THEIRS
    rounds = {tuple(row.hyperparameters.values()): row.costs["cloud_rounds"].mean for row in results.leaderboard.rows}
    assert rounds["cloud-only", 2] == 8 and rounds["edge-only", 2] == 0
    assert 8 * 40 / 3 <= rounds["collaboration", 2] <= 8 * 40  # a round keeps one to two letters, of 40 of 8 texts
    ianvs.run(job, workspace=tmp_path / "ws", engine="inline")
    assert not (table.parents[1] / "leaderboard").exists()  # the table is still known as ours


@pytest.mark.parametrize(
    ("file", "before", "after", "code"),
    [
        ("models.py", "def verify(", "def check(", "unloadable-plugin"),
        ("algorithm.yaml", 'type: "verifier"', 'type: "cloudmodel"', "missing-module"),
        ("benchmarkingjob.yaml", '"exact", "acceptance", "drafter', '"exactly", "drafter', "unknown-column"),
        ("testenv.yaml", "mining-free", "mining-fee", "invalid-choice"),
    ],
    ids=["a method is missing", "a module is missing", "an unknown column", "an unknown mode"],
)
def test_what_can_not_run_is_refused(job: Path, file: str, before: str, after: str, code: str) -> None:
    path = job.with_name(file)
    path.write_text(edited(path.read_text(), before, after))
    with pytest.raises(ConfigError) as error:
        ianvs.validate(job)
    assert [code for code, _ in recorded(error.value.problems)] == [code]


def test_a_floor_for_the_gpu_is_noted_where_there_is_none(job: Path, tmp_path: Path) -> None:
    testenv = job.with_name("testenv.yaml")
    testenv.write_text(edited(testenv.read_text(), "  dataset:", '  min_compute_capability: "8.0"\n  dataset:'))
    algorithm = job.with_name("algorithm.yaml")
    algorithm.write_text(edited(edited(algorithm.read_text(), '"collaboration", ', ""), "[2, 6]", "[2]"))
    rows = ianvs.run(job, workspace=tmp_path / "ws", engine="inline").leaderboard.rows
    assert len(rows) == 2 and all("min_compute_capability 8.0" in row.status for row in rows)


def test_bare_words_of_sort_by_sort_ascending(job: Path, tmp_path: Path) -> None:
    job.write_text(edited(job.read_text(), '{"acceptance": "descend"}', '"acceptance"'))
    assert ianvs.validate(job).rank.sort_by == (("acceptance", False),)
