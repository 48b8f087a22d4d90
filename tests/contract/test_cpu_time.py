"""The CPU seconds of tests, as tests/cpu_time.py tells them at the end of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, sys, time
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

def test_cheap(): time.sleep(0.3)

def test_near_the_limit(): burn(0.3)

@pytest.fixture
def dear(): burn(0.5)

def test_whose_fixture_is_dear(dear): pass

def test_whose_process_is_dear():
    code = "import time\\nwhile time.process_time() < 0.6: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

@pytest.mark.slow
def test_marked(): burn(0.6)
"""


def ran(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of pytest on TESTS."""
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: dear\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.cpu_time", "-p", "no:cacheprovider", *arguments, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    return done.returncode, done.stdout


@pytest.mark.slow
def test_what_is_above_the_limit_and_not_marked_slow_is_named(tmp_path: Path) -> None:
    status, told = ran(tmp_path, "-n", "2", "--cpu-limit", "0.2")
    assert status == pytest.ExitCode.OK
    names = r"WARNING \S+::(test_\w+): (?:0|1) CPU seconds, above the limit of 0\.2\. Make it cheaper"
    assert set(re.findall(names, told)) == {
        "test_near_the_limit",
        "test_whose_fixture_is_dear",
        "test_whose_process_is_dear",
    }


def test_what_tests_use_is_told_without_a_limit_too(tmp_path: Path) -> None:
    status, told = ran(tmp_path, "-n", "0")
    assert status == pytest.ExitCode.OK
    total, count = re.findall(r"^ +([\d.]+)s (\d+) tests", told, re.M)[0]
    each = {name: float(seconds) for seconds, name in re.findall(r"^ +([\d.]+)s \S+::(test_\w+)", told, re.M)}
    assert int(count) == len(each) == 5
    assert float(total) == pytest.approx(sum(each.values()), abs=0.05)
    assert each["test_cheap"] < 0.2  # waiting costs nothing
    assert min(each["test_whose_fixture_is_dear"], each["test_whose_process_is_dear"], each["test_marked"]) >= 0.45
