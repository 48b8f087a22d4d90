"""The command computes its own numbers on one thread."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from ianvs.cli import main

main(["metrics"])
import numpy
from threadpoolctl import threadpool_info

print([pool["num_threads"] for pool in threadpool_info() if pool["internal_api"] == "openblas"], file=sys.stderr)
"""


@pytest.mark.parametrize("said", [None, "2"])
def test_numpys_library_has_one_thread_unless_the_user_says_otherwise(said: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    if said is not None:
        environment["OPENBLAS_NUM_THREADS"] = said
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    found = done.stderr.strip()
    if found == "[]":
        pytest.skip("numpy is built on another library here")
    assert set(eval(found)) <= ({1} if said is None else {min(int(said), os.cpu_count() or 1)})
