"""The same work by a bare loop, by ianvs and by its peers, side by side, in processor seconds.

    python benchmarks/peers.py
    python benchmarks/peers.py --avalanche PYTHON --mammoth FOLDER    # of an environment with ianvs[peers], a checkout

The bare loop is what anybody writes with PyTorch's DataLoader: a ratio of 1. Each tool trains five rounds of two new
classes each, one network, one method, and asks all test sets after every round; on the digits for ten seeds. ianvs does
it by its command, with everything that it does: planning, a process for each case, storing, scoring, ranking,
reports.

whole: processor seconds of the process and its children, from its start to its end, without those that PyTorch takes to
be imported and to make its first optimiser ("start", measured in the same way), by the bare loop's. training: what the
tool spends in its own training calls, by the bare loop's. Runs take turns on one core; medians of --repeats. On the
digits the weights of ianvs have to be those of the bare loop, bit for bit; the pictures are trained in another layout
in memory, which changes last bits, and peers draw other orders: there the accuracies are to be looked at. Each tool has
run once before, so that Python finds its byte code.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent / "peer_runs"))
from with_ianvs import command_of, outcome_of
from work import Work

RUNS = Path(__file__).parent / "peer_runs"
METHODS = ("naive", "replay", "lwf", "ewc", "cumulative")


@dataclass(frozen=True)
class Outcome:
    whole: float
    training: float
    accuracy: float
    weights: list[torch.Tensor] | None = None


@dataclass(frozen=True)
class Tool:
    name: str
    run: Callable[[Work, Path], Outcome]
    methods: tuple[str, ...] = METHODS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", choices=("digits", "pictures"), nargs="*", default=["digits", "pictures"])
    parser.add_argument("--methods", choices=METHODS, nargs="*", default=METHODS)
    parser.add_argument("--avalanche", metavar="PYTHON", help="of an environment that has avalanche-lib")
    parser.add_argument("--mammoth", metavar="FOLDER", type=Path, help="a checkout, at commit 7ab9db9")
    parser.add_argument("--samples", type=int, default=20_000, help="of the pictures")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core, for all that is started here, too
    tools = [Tool("bare", script("bare.py")), Tool("ianvs", by_command)]
    if options.avalanche:
        tools.append(Tool("avalanche", script("with_avalanche.py", options.avalanche)))
    if options.mammoth:
        mammoth = script("with_mammoth.py", path=options.mammoth.resolve())
        tools.append(Tool("mammoth", mammoth, ("naive", "replay")))
    with tempfile.TemporaryDirectory() as folder:
        for data in options.data:
            (digits if data == "digits" else pictures)(Path(folder), options.samples)
            for tool in tools:
                with tempfile.TemporaryDirectory() as nowhere:
                    tool.run(Work(folder, data, options.methods[0], 1, 1), Path(nowhere))
            for method in options.methods:
                work = Work(folder, data, method, *((20, 10) if data == "digits" else (1, 1)))
                compare(work, [tool for tool in tools if method in tool.methods], options.repeats)


def compare(work: Work, tools: list[Tool], repeats: int) -> None:
    start = Tool("start", script("start_only.py"))
    found: dict[str, list[Outcome]] = {}
    for repeat in range(repeats):
        for tool in [start, *tools] if repeat % 2 else [*reversed(tools), start]:
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault(tool.name, []).append(tool.run(work, Path(folder)))
    begun = statistics.median(one.whole for one in found.pop("start"))
    bare = found["bare"]
    print(f"\n{work.data}, {work.method}: the start takes {begun:.2f} s, the bare loop {middle(bare, 'whole'):.2f} s")
    for name in (tool.name for tool in tools):
        pairs = list(zip(found[name], bare, strict=True))
        whole = [(one.whole - begun) / (other.whole - begun) for one, other in pairs]
        training = [one.training / other.training for one, other in pairs]
        print(
            f"  {name:10} whole {shown(whole)}   training {shown(training)}"
            f"   {middle(found[name], 'training'):7.2f} s   accuracy {found[name][0].accuracy:.3f}",
            flush=True,
        )
    if work.data == "digits":
        a, b = (found[name][0].weights for name in ("bare", "ianvs"))
        assert a and b and all(torch.equal(x, y) for x, y in zip(a, b, strict=True)), "the weights are not the same"


def middle(outcomes: list[Outcome], name: str) -> float:
    return statistics.median(getattr(one, name) for one in outcomes)


def shown(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def script(name: str, python: str = sys.executable, path: Path | None = None) -> Callable[[Work, Path], Outcome]:
    """Runs one of peer_runs/, in the folder `path` where the tool is no package."""

    def run(work: Work, folder: Path) -> Outcome:
        work.write(folder / "work.json")
        environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
        command = [python, str(RUNS / name), str(folder / "work.json"), str(folder / "out.json")]
        whole = processor_seconds(command, path or folder, environment)
        told = json.loads((folder / "out.json").read_text())
        weights = folder / "out.pt"
        return Outcome(whole, **told, weights=torch.load(weights) if weights.exists() else None)

    return run


def by_command(work: Work, folder: Path) -> Outcome:
    """`ianvs -f` of a job that is written for it."""
    whole = processor_seconds(command_of(work, folder), folder, dict(os.environ))
    accuracy, training, weights = outcome_of(folder)
    return Outcome(whole, training, accuracy, weights)


def processor_seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Of the process and all its children, which it has waited for. Byte code is kept, as Python does by itself."""
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def digits(folder: Path, samples: int) -> None:
    """scikit-learn's, every fifth for testing."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x, y = np.round(found.images * 255 / 16).astype(np.uint8)[..., None], found.target
    test = np.arange(len(y)) % 5 == 0
    np.savez(folder / "train.npz", x=x[~test], y=y[~test])
    np.savez(folder / "test.npz", x=x[test], y=y[test])


def pictures(folder: Path, samples: int) -> None:
    """Noise of 32 x 32 pixels over a pattern for each of ten classes; a tenth as many for testing."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 256, (10, 32, 32, 3))
    for name, count in (("train", samples), ("test", samples // 10)):
        y = np.arange(count) % 10
        x = np.clip(0.3 * patterns[y] + rng.normal(90, 60, (count, 32, 32, 3)), 0, 255).astype(np.uint8)
        np.savez(folder / f"{name}.npz", x=x, y=y)


if __name__ == "__main__":
    main()
