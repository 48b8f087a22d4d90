"""What TorchLearner costs over a plain PyTorch loop that does the same steps.

    python benchmarks/overhead.py

Prints, for each network, the seconds of both and the ratio of ours to the loop's: both run in turn in this process,
on one thread, from the same seed, and end with the same weights. The target is a ratio of at most 1.05.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for tests.testalgorithms

from ianvs.testalgorithms.finetune.basemodel import Finetune  # noqa: E402
from tests.unit.testalgorithms.exam_of_arrays import Exam, digits, examine, pictures  # noqa: E402
from tests.unit.testalgorithms.plain_loop import plain_loop, small_mlp, small_resnet  # noqa: E402


def compare(
    name: str, exam: Exam, make_net: Callable[[int], Any], ours: dict[str, Any], training: dict[str, Any], repeats: int
) -> float:
    """Median over repeats of the ratio of the two durations, each pair measured side by side."""

    def our_run() -> Any:
        return examine(Finetune(**ours, **training), exam, seed=0)

    def plain_run() -> Any:
        return plain_loop(exam, make_net, seed=0, **training)

    ends = [run()[2][-1] for run in (our_run, plain_run)]  # warms up, too
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True)), "the two did not do the same work"
    pairs = []
    for repeat in range(repeats):
        runs = (our_run, plain_run) if repeat % 2 else (plain_run, our_run)
        seconds = {run: _seconds(run) for run in runs}
        pairs.append((seconds[our_run], seconds[plain_run]))
    ratio = statistics.median(a / b for a, b in pairs)
    ours_s, plain_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    spread = f"{min(a / b for a, b in pairs):.3f} to {max(a / b for a, b in pairs):.3f}"
    print(f"{name:28s} ours {ours_s:7.3f} s   plain {plain_s:7.3f} s   ratio {ratio:.3f}   ({spread}, n = {repeats})")
    return ratio


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    mlp = {"epochs": 20, "batch_size": 32, "learning_rate": 0.05}
    compare("digits, MLP, 20 epochs", digits(), small_mlp, {}, mlp, repeats)
    resnet = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
    exam = pictures(samples=192, size=32)
    compare("32x32 pictures, small ResNet", exam, small_resnet, {"network": "resnet"}, resnet, repeats)


if __name__ == "__main__":
    main()
