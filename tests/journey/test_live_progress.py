"""What a terminal shows while a job runs."""

import os
import pty
import re
import subprocess
import sys
import threading

import pytest

from tests.edits import edited
from tests.jobs import MAJORITY, write_job

SLOW = edited(MAJORITY, "        if round ==", "        __import__('time').sleep(0.4)\n        if round ==")


def shown(*command):
    """(exit code, what was written to a terminal of 100 columns, without its codes for colours and the cursor)."""
    ours, theirs = pty.openpty()
    written = bytearray()

    def read():
        try:
            while piece := os.read(ours, 1 << 12):
                written.extend(piece)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm", "NO_COLOR": "1"}
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, timeout=300)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_a_terminal_sees_each_case_go_from_round_to_round(tmp_path):
    fails = "- fail_in_round: {values: [null, 4]}"
    job = write_job(tmp_path, plugin=SLOW, hyperparameters=fails, job="seeds: [0]\njobs: 1", engine="local")
    code, screen = shown(sys.executable, "-m", "ianvs", "run", "-f", str(job))
    assert code == 1
    assert "2 of 2 cases" in screen
    for round_ in (1, 2, 3):
        assert f"round {round_}, " in screen
    assert re.search(r"cases\s+\S*\s+0/2", screen)
    assert re.search(r"cases\s+\S*\s+1/2", screen)
    said = r"majority \(fail_in_round=4\), seed 0: failed\b.* RuntimeError: plugin.py:\d+: "
    assert re.search(said, " ".join(screen.split()))


@pytest.mark.slow
def test_who_wants_quiet_sees_nothing(tmp_path):
    job = write_job(tmp_path, hyperparameters="", job="seeds: [0]\njobs: 1", engine="local")
    code, screen = shown(sys.executable, "-m", "ianvs", "run", "-f", str(job), "--quiet")
    assert (code, screen) == (0, "")
