"""Whether there is a Slurm to test with, such as that of `tests/nightly/clusters/slurm/cluster up`."""

import shutil
import subprocess
from functools import cache

import pytest


@cache
def _answers() -> bool:
    return shutil.which("sinfo") is not None and subprocess.run(["sinfo"], capture_output=True).returncode == 0


def need_slurm() -> None:
    if not _answers():
        pytest.skip("there is no Slurm here: `sudo tests/nightly/clusters/slurm/cluster up` makes one")
