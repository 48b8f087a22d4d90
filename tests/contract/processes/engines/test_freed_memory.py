"""Memory that a learner's process has freed is used again instead of being asked for anew."""

import platform
import subprocess
import sys

import pytest

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
