"""What a test case costs beyond its plugin's own time: no-op cases over 5 rounds of digits, processes included.

    python benchmarks/supervisor.py [--cases 200] [--jobs 2] [--torch]

Prints processor seconds and wall-clock per case, and beside them the time to fork and end an empty process in the same
run, which no engine with a process per case can beat. --torch: the plugin imports torch, so that what is forked is
large.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from planning import JOB, PLUGIN, TESTENV

import ianvs

ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Nothing
      url: ./plugin.py
      hyperparameters:
        - a: {{values: [{values}]}}
"""


def empty_fork() -> float:
    """Seconds to fork this process, and to see the child end."""
    start = time.perf_counter()
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return (time.perf_counter() - start) / 50


def processor_seconds() -> float:
    """Of this process and all its children that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugin.py").write_text(("import torch\n" if options.torch else "") + PLUGIN)
        (folder / "testenv.yaml").write_text(TESTENV)
        (folder / "job.yaml").write_text(JOB.format(folder=folder))
        seconds, processor = {}, {}
        for cases in (1, options.cases):
            values = ", ".join(str(1000 * cases + number) for number in range(cases))
            (folder / "algorithm.yaml").write_text(ALGORITHM.format(values=values))
            start, before = time.perf_counter(), processor_seconds()
            ianvs.run(folder / "job.yaml", jobs=options.jobs)
            seconds[cases], processor[cases] = time.perf_counter() - start, processor_seconds() - before
        start_up, total = seconds[1], seconds[options.cases]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{options.cases} no-op cases with {options.jobs} jobs: {total:.1f} s, one alone {start_up:.1f} s")
        each = (processor[options.cases] - processor[1]) / (options.cases - 1)
        print(
            f"per case: {1000 * total / options.cases:.0f} ms, and {1000 * each:.0f} ms of processors without what is "
            f"paid once; an empty fork: {1000 * empty_fork():.1f} ms"
        )
        print(f"peak memory of the parent: {peak:.0f} MB")


if __name__ == "__main__":
    main()
