"""A third contract, which a package brings: it runs to the end beside the other two, which know nothing of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import ianvs
from ianvs.config import load_job
from ianvs.config.contracts import contract_named
from ianvs.config.models.contract_name import contract_names
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.jobs import write_job
from tests.packages import install

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_contract"
NATIVE = "algorithm: {paradigm_type: incrementallearning, modules: [{type: basemodel, name: Finetune}]}\n"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's files, whose contract is installed as its pyproject.toml says."""
    shutil.copytree(EXAMPLE, tmp_path / "job", ignore=shutil.ignore_patterns("workspace", "__pycache__"))
    (tmp_path / "job" / "functions_contract.py").unlink()  # else it would lie beside the plugin
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    text = "".join(f"[{group}]\n{name} = {value}\n" for group, named in points.items() for name, value in named.items())
    install(tmp_path / "site", monkeypatch, "functions_contract", (EXAMPLE / "functions_contract.py").read_text(), text)
    return tmp_path / "job" / "benchmarkingjob.yaml"


def change(job: Path, name: str, *pairs: str) -> None:
    file = job.with_name(name)
    file.write_text(edited(file.read_text(), *pairs))


def test_the_contract_is_one_file_of_at_most_70_lines() -> None:
    assert len((EXAMPLE / "functions_contract.py").read_text().splitlines()) <= 70


def test_it_runs_its_cases_and_what_it_tells_is_ranked(job: Path, tmp_path: Path) -> None:
    assert contract_names() == ("native", "avalanche", "ianvs", "mammoth", "pilot", "functions")
    results = ianvs.run(job, workspace=tmp_path / "ws", engine="inline")
    assert (results.exit_code, results.contract) == (0, "functions")
    plain, shrunk = results
    assert plain.metrics["accuracy"] is not None and shrunk.metrics["accuracy"] is not None
    assert plain.metrics["accuracy"] > shrunk.metrics["accuracy"] > 0.2
    R = plain.matrices["accuracy"].R
    assert R.shape == (3, 3) and R[-1].mean() == pytest.approx(plain.metrics["accuracy"])
    assert [round_.name for round_ in plain.rounds[1:]] == list(plain.round_names)
    assert plain.rounds[-1].peak_memory_bytes is not None and plain.rounds[1].train_samples == 1438
    assert plain.warnings == ("contract functions",)
    frame = pd.read_csv(tmp_path / "ws" / "own_contract" / "rank" / "all_rank.csv")
    assert list(frame.columns[:3]) == ["Rank", "Algorithm", "accuracy"] and "url" not in frame
    again = ianvs.run(job, workspace=tmp_path / "ws", engine="inline")
    assert [planned.action for planned in ianvs.plan(job, workspace=tmp_path / "ws")] == ["nothing", "nothing"]
    assert [one.finished_at for one in again] == [plain.finished_at, shrunk.finished_at]


@pytest.mark.slow
def test_the_command_runs_it_in_processes_and_results_are_read_without_it(job: Path, tmp_path: Path) -> None:
    for file in (tmp_path / "site" / "functions_contract.py", job, job.with_name("testenv.yaml")):
        file.write_text(file.read_text().replace("accuracy", "right_share"))  # which is no metric of ours
    command = [sys.executable, "-m", "ianvs", "-f", str(job), "--workspace", str(tmp_path / "ws")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    script = "import ianvs, sys; print([one.metrics['right_share'] > 0.2 for one in ianvs.load_results(sys.argv[1])])"
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    read = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "ws")], env=bare, capture_output=True, text=True
    )
    assert read.stdout == "[True, True]\n", read.stderr


def test_a_case_is_another_one_where_the_contract_is(job: Path, tmp_path: Path) -> None:
    def ids() -> set[str]:
        return {planned.case.id for planned in ianvs.plan(job, workspace=tmp_path / "ws")}

    before = ids()
    file = tmp_path / "site" / "functions_contract.py"
    file.write_text(file.read_text() + "\nassert True\n")
    assert not before & ids()


@pytest.mark.parametrize(
    ("name", "pairs", "error"),
    [
        ("nearest_mean.py", ("def answer", "def reply"), ("broken-contract", "algorithm.yaml:7:12")),
        ("testenv.yaml", ("[accuracy]", "[accuracy, BWT]"), ("unknown-metric", "testenv.yaml:4:23")),
        ("algorithm.yaml", ("contract: functions", "contract: function"), ("invalid-choice", "algorithm.yaml:2:13")),
        ("testenv.yaml", ("name: digits", "name: digit"), ("unloadable-plugin", "testenv.yaml:2:19")),
        ("testenv.yaml", ("name: domain-incremental", "name: domains"), ("unknown-scenario", "testenv.yaml:3:20")),
    ],
    ids=["function", "metric", "contract", "dataset", "scenario"],
)
def test_slips_are_told_before_anything_runs(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pairs: tuple[str, ...], error: Found
) -> None:
    change(job, name, *pairs)
    monkeypatch.chdir(job.parent)
    assert errors_of(ianvs.validate, job.name, workspace=tmp_path / "ws") == [error]


def test_keys_that_it_has_no_part_in_are_told(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(job, "testenv.yaml", "  metrics:", "  budget: {passes: 1}\n  metrics:")
    monkeypatch.chdir(job.parent)
    warnings = ianvs.validate(job.name, workspace=tmp_path / "ws").warnings
    assert recorded(warnings) == [("no-effect", "testenv.yaml:4:11")]


@pytest.mark.parametrize(
    ("name", "pairs", "error"),
    [
        (
            "benchmarkingjob.yaml",
            ("  rank:", "  search: {name: random, trials: 2}\n  rank:"),
            "benchmarkingjob.yaml:11:3",
        ),
        ("testenv.yaml", ("  metrics:", "  prequential: true\n  metrics:"), "testenv.yaml:4:16"),
        (
            "algorithm.yaml",
            ("contract: functions", "contract: functions\n  python: ./interpreter"),
            "algorithm.yaml:3:3",
        ),
    ],
    ids=["search", "prequential", "python"],
)
def test_keys_that_would_change_what_a_case_does_are_refused(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pairs: tuple[str, str], error: str
) -> None:
    change(job, name, *pairs)
    job.with_name("interpreter").symlink_to(sys.executable)
    monkeypatch.chdir(job.parent)
    found = errors_of(ianvs.validate, job.name, workspace=tmp_path / "ws")
    assert found == [("unsupported-by-contract", error)]


def test_algorithms_of_two_contracts_in_one_job_are_refused(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.with_name("native.yaml").write_text(NATIVE)
    change(job, job.name, "  rank:", "      - {name: finetune, url: ./native.yaml}\n  rank:")
    monkeypatch.chdir(job.parent)
    assert errors_of(load_job, Path(job.name)) == [("mixed-contracts", "benchmarkingjob.yaml:8:5")]


def test_a_contract_that_can_not_be_imported_stops_no_other_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path / "site", monkeypatch, "broken_contract", "1 / 0\n", "[ianvs.contracts]\nbroken = broken_contract:B\n"
    )
    assert load_job(write_job(tmp_path)).algorithms[0].contract == "native"
    assert errors_of(contract_named, "broken") == [("unloadable-plugin", "")]
    assert errors_of(contract_named, "lost") == [("missing-package", "")]
