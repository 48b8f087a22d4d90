"""Terminals that can't show every character, and Ctrl-C before the command has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ianvs
from tests.jobs import write_job

PRESSED = """
import sys

class Pressed:
    def find_spec(self, name, *_):
        if name == "ianvs.cli.command_line":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from ianvs.__main__ import main
raise SystemExit(main())
"""


@pytest.mark.slow
def test_an_ascii_terminal_gets_a_table_in_ascii(tmp_path: Path) -> None:
    job = write_job(tmp_path, job="seeds: [0, 1, 2]", engine="local")
    job.write_text(job.read_text().replace("name: test", "name: größe"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ianvs", "-f", str(job)]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert b" +- " in done.stdout
    assert (done.stdout + done.stderr).isascii()
    assert b"gr??e" in done.stderr, done.stderr


def test_ctrl_c_while_the_command_is_imported_ends_in_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(("shell", "lines"), [(SimpleNamespace(kernel=object()), 2), (object(), 0), (None, 0)])
def test_a_notebook_shows_how_a_run_goes_and_a_script_does_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shell: object,
    lines: int,
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    ianvs.run(write_job(tmp_path, job="seeds: [0]", hyperparameters=""))
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if "1 of 1 case" in line or "[1/1]" in line]) == lines, said
