"""Whatever is damaged in a workspace: reports tell it and believe nothing of it, and one run brings all of it back."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import ianvs
from ianvs import api
from ianvs.base.errors import DamagedError
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

TIMES = [
    "Time",
    "Case_seconds",
    "Train_seconds",
    "Eval_seconds",
    "Train_cpu_seconds",
    "Eval_cpu_seconds",
    "Peak_memory_mb",
]
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 3, first: 4}
metrics: [{name: accuracy}, {name: BWT}]
"""
COUNT = 200  # corruptions in all; tests that are not slow take some of them


@dataclass(frozen=True)
class Prepared:
    """A job; a workspace where it has ended and one where it was cut off after round 2; and its leaderboard."""

    job: Path
    workspaces: tuple[Path, Path]
    leaderboard: str


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    flag = folder / "flag"
    plugin = edited(
        MAJORITY,
        "        for label in",
        f"        if round == 3 and __import__('pathlib').Path({str(flag)!r}).exists():\n"
        "            raise RuntimeError\n"
        "        for label in",
    )
    job = write_job(folder, engine="local", plugin=plugin, testenv=TESTENV, hyperparameters="- bias: {values: [0]}")
    whole, half = folder / "whole", folder / "half"
    run(job, whole)
    flag.touch()
    run(job, half)
    flag.unlink()
    for result in half.glob("cases/*/result.json"):
        result.unlink()
    return Prepared(job, (whole, half), leaderboard(whole))


def run(job: Path, workspace: Path) -> ianvs.Results:
    return ianvs.run(job, workspace=workspace, engine="inline")


def leaderboard(workspace: Path) -> str:
    frame = pd.read_csv(workspace / "test" / "rank" / "all_rank.csv")
    return frame.drop(columns=[name for name in TIMES if name in frame]).to_csv()


def remove(path: Path, dice: random.Random) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def truncate(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: dice.randrange(len(content) + 1)])


def zero(path: Path, dice: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(3 if content else 0):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def flip_quietly(path: Path, dice: random.Random) -> None:
    """As a disk does: size and times stay."""
    before = path.stat()
    flip(path, dice)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path, dice: random.Random) -> None:
    path.write_text(dice.choice(["{}", "[]", "null", "3", '{"status": "finished"}', '{"case": {}, "identity": {}}']))


def become_a_folder(path: Path, dice: random.Random) -> None:
    path.unlink()
    path.mkdir()


def swap(path: Path, dice: random.Random) -> None:
    others = [other for other in path.parents[2].rglob(f"*{path.suffix}") if other.is_file() and other != path]
    if others:
        other = dice.choice(sorted(others))
        mine, theirs = path.read_bytes(), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(mine)


def empty(path: Path, dice: random.Random) -> None:
    shutil.rmtree(path)
    path.mkdir()


OF_FILES: tuple[Callable[[Path, random.Random], None], ...] = (
    remove, truncate, zero, flip, flip_quietly, replace, become_a_folder, swap,
)  # fmt: skip
OF_FOLDERS = (remove, empty)


def corrupt(workspace: Path, dice: random.Random) -> str:
    """Damage something that is stored; what, in words."""
    kind = dice.choice(["cases", "cases", "cases", "exams", "cache", "test"])
    folders = dice.random() < 0.15
    found = [path for path in sorted((workspace / kind).rglob("*")) if path.is_dir() == folders]
    # A table that is none of ours is another program's, and stays: our reports then lie elsewhere.
    found = [path for path in found if path.suffix != ".lock" and "rank" not in path.parts]
    path = dice.choice(found or [workspace / kind])
    operation = dice.choice(OF_FOLDERS if path.is_dir() else OF_FILES)
    operation(path, dice)
    return f"{operation.__name__} {path.relative_to(workspace)}"


def reported(job: Path, workspace: Path) -> ianvs.Results | None:
    """None: a file that looks as it was stored is not, and has stopped the report."""
    try:
        return api.report(job, workspace=workspace)
    except DamagedError as error:
        assert error.path.exists()
        return None


def check(prepared: Prepared, folder: Path, number: int) -> None:
    dice = random.Random(number)
    workspace = folder / "ws"
    shutil.copytree(prepared.workspaces[number % 3 == 0], workspace)
    done = [corrupt(workspace, dice) for _ in range(dice.choice([1, 1, 2]))]
    told = reported(prepared.job, workspace)
    for row in told.leaderboard.rows if told else ():
        cells = [told.leaderboard.cell(row, column) for column in told.leaderboard.columns if column.kind == "metric"]
        assert not row.status.startswith("finished") or None not in cells, done
    ended = [path for path in workspace.glob("cases/*/result.json") if path.is_file()]
    if told and len(ended) == 2 and not told.leaderboard.rows[0].complete:
        assert any("not believed" in str(note) for note in told.leaderboard.notes), done
    results = run(prepared.job, workspace)
    assert results.exit_code == 0, done
    assert leaderboard(workspace) == prepared.leaderboard, done
    assert [planned.action for planned in ianvs.plan(prepared.job, workspace=workspace)] == ["nothing"] * 2, done


@pytest.mark.slow
def test_any_byte_of_any_json_of_a_case_may_change(prepared: Prepared, tmp_path: Path) -> None:
    """A few bytes of each file: the report shows no other number, and one run brings the same board."""
    original = prepared.workspaces[0]
    dice = random.Random(1)
    for file in sorted(original.glob("cases/*/*.json"))[:4]:
        for at in dice.sample(range(file.stat().st_size), 3):
            workspace = tmp_path / f"{file.name}-{at}"
            shutil.copytree(original, workspace)
            changed = workspace / file.relative_to(original)
            text = file.read_bytes()
            changed.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
            reported(prepared.job, workspace)
            assert run(prepared.job, workspace).exit_code == 0, changed
            assert leaderboard(workspace) == prepared.leaderboard, changed


@pytest.mark.parametrize("number", range(12))
def test_a_damaged_workspace_is_found_out_and_healed(prepared: Prepared, tmp_path: Path, number: int) -> None:
    check(prepared, tmp_path, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12, COUNT))
def test_two_hundred_damaged_workspaces(prepared: Prepared, tmp_path: Path, number: int) -> None:
    check(prepared, tmp_path, number)
