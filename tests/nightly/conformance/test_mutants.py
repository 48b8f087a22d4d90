"""The comparison can fail: every slip of every method is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly.conformance.every_method import EVERY, SHAPES
from tests.nightly.conformance.mutants import FEWEST, checks


def test_every_method_stands_beside_a_statement_of_it_and_has_slips():
    compared = {check.method for _, _, check in checks()}
    # Methods for boxes and several labels are compared in tests of their own, and a control is of no paper.
    elsewhere = {one.method for one in (*SHAPES.values(), EVERY["language, shuffled pictures"])}
    assert {one.method for one in EVERY.values()} - elsewhere <= compared
    assert all(len(check.mutants) >= FEWEST for _, _, check in checks())


@pytest.mark.slow
def test_no_slip_goes_unnoticed():
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run(
        [sys.executable, "-m", "tests.nightly.conformance.mutants"], cwd=root, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    (root / "build").mkdir(exist_ok=True)
    (root / "build" / "mutants.md").write_text(run.stdout, encoding="utf-8")
