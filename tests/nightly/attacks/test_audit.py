"""`sealing: audit` lets copies do what they like, and tells what sealed ones could not."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult, Sealing
from ianvs.processes.sealing.seal import open_walls
from ianvs.results.report.statements import sealing_note
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, write_job
from tests.kernel import filters_calls

pytestmark = pytest.mark.skipif(not filters_calls(), reason="the kernel has no seccomp")

ASKING = edited(
    MAJORITY,
    "    def predict(self, data):\n",
    "    def predict(self, data):\n        import os, socket\n        socket.socket().close()\n"
    "        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n",
)
THREADED = "        import threading as t\n        t.Thread(target=t.Event().wait, daemon=True).start()\n"


def run(folder: Path, source: str, sealing: str) -> CaseResult:
    exam = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 2}\nmetrics: [accuracy]"
    job = f"seeds: [0]\nsealing: {sealing}"
    [found] = ianvs.run(write_job(folder, plugin=source, hyperparameters="", testenv=exam, job=job))
    return found


@pytest.mark.parametrize("copies", ["forks", "new processes"])
def test_an_audit_lists_what_would_be_denied_and_denies_nothing(tmp_path: Path, copies: str) -> None:
    source = ASKING if copies == "forks" else edited(ASKING, "        self.bias,", f"{THREADED}        self.bias,")
    found = run(tmp_path, source, "audit")
    assert found.status == "finished", found.failure
    assert found.sealing.copies == copies
    counts = dict(found.sealing.denied)
    # As many examinations; a fork answers in the try of save(), too.
    assert counts["socket"] == counts["execve"] == (4 if copies == "forks" else 3)
    assert "audit: " in (found.directory / "log.txt").read_text()
    assert "socket" in sealing_note({found.sealing}, "")


def test_what_an_audit_lists_ends_a_sealed_case(tmp_path: Path) -> None:
    found = run(tmp_path, ASKING, "normal")
    assert found.failure is not None
    assert "not permitted" in found.failure.message


def test_an_audit_of_who_asks_for_nothing_says_so(tmp_path: Path) -> None:
    found = run(tmp_path, MAJORITY, "audit")
    assert found.sealing.denied == ()
    printed(sealing_note({found.sealing}, ""))


def test_a_wall_that_is_missing_is_named() -> None:
    for given in ({"filtered": False, "card": False}, {"filtered": True, "card": True}):
        sealing = Sealing("normal", "forks", closed=True, missing=open_walls(**given))
        printed(sealing_note({sealing, Sealing("normal", "forks", closed=True)}, ""))
    assert open_walls(filtered=True, card=False) == ()


@pytest.mark.slow
def test_an_audited_and_an_open_case_are_not_called_sealed(tmp_path: Path) -> None:
    for sealing in ("audit", "open"):
        assert sealing_note({run(tmp_path / sealing, MAJORITY, sealing).sealing}, "").startswith("Not sealed")
    assert sealing_note({run(tmp_path / "normal", MAJORITY, "normal").sealing}, "").startswith("Sealed: ")
