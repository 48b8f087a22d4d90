"""What an algorithm's cases take of a machine: which of them run beside one another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.cli.command_line import main
from ianvs.config.spec import ResourcesSpec
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.slots import Slot, Slots
from tests.errors import located, printed
from tests.jobs import MAJORITY, write_job


def test_cards_are_for_those_who_ask_and_cores_for_all() -> None:
    slots = Slots(5, (0, 1, 2), cpus=6, memory=16e9)
    pair, host = ResourcesSpec(gpus=2, cpus=2), ResourcesSpec(cpus=1, memory=10 * 10**9)
    on_cards = slots.take(wanted=pair)
    assert on_cards == Slot(0, alone=True, more=(1,))
    assert on_cards.environment == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert slots.take(wanted=pair) is None
    printed(slots.missing_resources(pair))
    on_host = slots.take(wanted=host)
    assert on_host == Slot(hidden=True)
    assert on_host.environment == {"CUDA_VISIBLE_DEVICES": ""}
    assert slots.take(wanted=host) is None
    printed(slots.missing_resources(host))
    assert slots.take() == Slot(2, alone=True)
    assert slots.take() is None, "no card is left for who says nothing"
    slots.give(on_cards)
    assert slots.take(wanted=pair) == Slot(0, alone=True, more=(1,))


def test_cores_are_counted_and_jobs_are_the_most() -> None:
    slots = Slots(3, cpus=8, threads=1)
    wide = ResourcesSpec(cpus=5)
    assert slots.take(wanted=wide) == Slot()
    assert slots.take(wanted=wide) is None
    printed(slots.missing_resources(wide))
    assert [slots.take(), slots.take(), slots.take()] == [Slot(), Slot(), None]


def mixed_job(folder: Path, resources: str, extra: str = "", plugin: str = MAJORITY, engine: str = "inline") -> Path:
    """Two algorithms; `resources` are those of the second."""
    settings = {"hyperparameters": "- bias: {values: [0]}", "job": f"seeds: [0, 1]\n{extra}", "engine": engine}
    path = write_job(folder, plugin=plugin, **settings)
    [first] = [one for one in folder.glob("*.yaml") if "algorithm:" in one.read_text().splitlines()[0]]
    (folder / "second.yaml").write_text(first.read_text().replace("[0]", "[1]") + f"\n  resources: {resources}\n")
    said = path.read_text()
    line = next(line for line in said.splitlines() if first.name in line)
    other = line.replace(first.name, "second.yaml").replace("name: ", "name: second_", 1)
    path.write_text(said.replace(line, f"{line}\n{other}"))
    return path


class Told(Listener):
    def __init__(self) -> None:
        self.running: set[str] = set()
        self.beside: list[set[str]] = []
        self.waited: list[str] = []

    def queued(self, case: Any, reason: str) -> None:
        self.waited.append(f"{case.case.algorithm}: {reason}")

    def started(self, case: Any) -> None:
        self.running.add(case.case.id)
        self.beside.append(set(self.running))

    def ended(self, case: Any, status: Any, failure: Any) -> None:
        self.running.discard(case.case.id)


@pytest.mark.slow
def test_who_needs_more_than_is_left_waits_and_that_is_seen(tmp_path: Path) -> None:
    path, told = mixed_job(tmp_path, "{cpus: 3}", "jobs: 4", engine="local"), Told()
    results = ianvs.run(path, listener=told)
    assert [found.status for found in results] == ["finished"] * 4
    assert {said.partition(":")[0] for said in told.waited} == {"second_majority"}
    wide = {found.case.id for found in results if found.case.algorithm.startswith("second")}
    assert all(len(beside & wide) <= 1 for beside in told.beside)
    assert any(len(beside) > 1 for beside in told.beside), "the others fill what is left"


def test_one_case_may_take_what_the_job_wants_at_a_time(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) + 2
    path = mixed_job(tmp_path, f"{{cpus: {cores}}}", f"jobs: {cores}", engine="local")
    results = ianvs.run(path, only="second_majority")
    assert [found.status for found in results] == ["finished"] * 2


def test_resources_are_planned_shown_and_no_part_of_what_a_case_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mixed_job(tmp_path, "{gpus: 1, cpus: 4, memory: 16GB, time: 2h}")
    before = [planned.case.id for planned in ianvs.plan(path)]
    main(["plan", "-f", str(path)])
    shown = capsys.readouterr().out
    assert all(amount in shown for amount in ("4 cpus", "1 gpus", "16 GB", "2 h"))
    second = tmp_path / "second.yaml"
    second.write_text(second.read_text().replace("16GB", "8 GB"))
    assert [planned.case.id for planned in ianvs.plan(path)] == before


@pytest.mark.parametrize(
    ("resources", "code"),
    [
        ("{memory: 900TB}", "insufficient-resources"),
        ("{memory: 16}", "wrong-type"),
        ("{time: 2 fortnights}", "invalid-value"),
        ("{cards: 1}", "unknown-key"),
    ],
)
def test_what_can_not_be_had_is_told_before_anything_runs(tmp_path: Path, resources: str, code: str) -> None:
    path = mixed_job(tmp_path, resources)
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            command(path)
        assert [found for found, _ in located(caught.value.problems)] == [code]


def test_gpus_on_a_machine_without_any_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    path = mixed_job(tmp_path, "{gpus: 1}")
    assert main(["validate", "-f", str(path)]) == 0
    told = capsys.readouterr()
    assert "no CUDA device on this machine: its cases use the CPU" in told.out + told.err
