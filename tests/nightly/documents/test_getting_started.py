"""Getting started: each file that it shows is written, each command run, each line of output looked for."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "getting_started.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def words(line: str) -> list[str]:
    return line.replace("±", " ").split()


def says(line: str, expected: str) -> bool:
    """Whether `line` begins with the words of `expected`, or holds it; scores may differ by what processors round."""
    if expected in line:
        return True
    found, wanted = words(line), words(expected)
    return len(found) >= len(wanted) and all(map(alike, found, wanted))


def alike(found: str, wanted: str) -> bool:
    try:
        return abs(float(found) - float(wanted)) <= 0.03
    except ValueError:
        return found == wanted


@pytest.mark.slow
def test_every_step_does_what_the_page_says(tmp_path):
    said, steps = [], 0
    for language, title, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "sh":
            command = [sys.executable, "-m", *shlex.split(text)]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            said, steps = (done.stdout + done.stderr).splitlines(), steps + 1
        elif language == "text":
            for expected in text.splitlines():
                assert any(says(line, expected) for line in said), (expected, said)
    assert steps == 8


@pytest.mark.parametrize(
    ("line", "expected", "found"),
    [
        ("  1 (1-2)  A   replay  0.920 ± 0.016  x", "1 (1-2)  A  replay  0.916 ± 0.016", True),
        ("  1 (1-2)  A   replay  0.820 ± 0.016", "1 (1-2)  A  replay  0.916 ± 0.016", False),
        ("  2 (1-2)  A   replay  0.920 ± 0.016", "1 (1-2)  A  replay  0.916 ± 0.016", False),
    ],
)
def test_lines_are_held_against_each_other(line, expected, found):
    assert says(line, expected) is found
