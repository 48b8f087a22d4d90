"""What a copy has read is not seen by its learner: times of access are made the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from ianvs.processes.sealing.leftovers import level_access_times


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user can't give a folder to somebody else")
def test_a_folder_of_another_user_is_no_error() -> None:
    shared = Path(tempfile.mkdtemp())  # as /dev/shm is: root's, and everybody may write there
    shared.chmod(0o777)
    if (pid := os.fork()) == 0:
        code = 1
        try:
            os.setuid(65534)
            (shared / "own").write_text("")
            os.utime(shared / "own", (0, 0))
            level_access_times([shared])
            code = 0 if (shared / "own").stat().st_atime > 0 else 2
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    shutil.rmtree(shared)
    assert os.waitstatus_to_exitcode(status) == 0
