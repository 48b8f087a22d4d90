"""Memory that a learner's process has freed is used again instead of being asked for anew."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

import ianvs
from tests.jobs import write_job

PROGRAM = """
import resource
import numpy as np
from ianvs.processes.engines.forked import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use():  # as the activations of a step: some megabytes at once, and all of them freed
    some = [np.ones(1 << 18) for _ in range(4)]

{call}
use()
before = faults()
for _ in range(20):
    use()
print(faults() - before)
"""


def pages_asked_for(call):
    program = PROGRAM.format(call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_freed_memory_is_used_again():
    assert pages_asked_for("") > 10 * pages_asked_for("keep_freed_memory()")


PLUGIN = """
import resource
import numpy as np

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use():
    some = [np.ones(1 << 18) for _ in range(4)]

class Plugin:
    def train(self, data):
        use()
        before = faults()
        for _ in range(20):
            use()
        assert faults() - before < 4000, faults() - before  # of 40 960 pages

    def predict(self, data): return [0] * len(data)
    def save(self, path): path.write_text("")
    def load(self, path): ...
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_a_case_uses_freed_memory_again(tmp_path: Path) -> None:
    job = write_job(tmp_path, engine="local", plugin=PLUGIN, name="Plugin", hyperparameters="", job="seeds: [0]")
    [case] = ianvs.run(job)
    assert case.status == "finished", case.failure
