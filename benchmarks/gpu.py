"""What a card is used for: a bare loop, ours, ours compiled, and several cases that share it.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --device cpu --quick      # tries the script where there is no card

Each row trains the same residual network on the same random pictures. `bare` is a loop over tensors that lie on the
card, with torch's own fused SGD: a ratio of 1. `ours` is one round of Finetune; `bf16`, `tf32` and `compiled` the same
with these options. `n cases` are n processes that train at once on one card: their ratio is the time of all of them by
n bare loops one after the other, so that 1/n would be perfect sharing. Medians of --repeats, after a warm-up that takes
in starting, compiling and choosing kernels. At last a whole job runs, with somebody's own code that uses workers: it is
killed in its third round, resumed, and compared with one that was not.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import ianvs
from ianvs.authoring import TorchLearner, resnet
from ianvs.results.stored.provenance import collect

JOB = {
    "job.yaml": """
benchmarkingjob:
  name: card
  workspace: {folder}/workspace
  testenv: {folder}/testenv.yaml
  seeds: [0]
  device: {device}
  test_object:
    type: algorithms
    algorithms:
      - {{name: finetune, url: {folder}/finetune.yaml}}
      - {{name: own, url: {folder}/own.yaml}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
""",
    "testenv.yaml": """
testenv:
  dataset: {{name: digits}}
  scenario: {{name: class-incremental, rounds: 5}}
  metrics: [accuracy]
""",
    "finetune.yaml": """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Finetune
      hyperparameters: [{{epochs: {{values: [1]}}}}, {{network: {{values: [resnet]}}}}]
""",
    "own.yaml": """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - {{type: basemodel, name: Own, url: ./own.py}}
""",
    "own.py": """
import os
import torch
from torch.utils.data import DataLoader, TensorDataset


class Own:
    def __init__(self):
        self.network = torch.nn.Linear(64, 10)

    def loader(self, *columns):
        return DataLoader(TensorDataset(*columns), batch_size=64, num_workers=2, pin_memory=torch.cuda.is_available())

    def train(self, train_data, valid_data=None, *, round, device):
        if round == 3 and os.environ.get("KILLED") == "1":
            os.kill(os.getpid(), 9)
        self.network.to(device)
        optimizer = torch.optim.SGD(self.network.parameters(), 0.01)
        x, y = torch.as_tensor(train_data.x).flatten(1).float() / 16, torch.as_tensor(train_data.y)
        for batch, labels in self.loader(x, y):
            with torch.autocast(device, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(self.network(batch.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def predict(self, data, *, device):
        self.network.to(device)
        x = torch.as_tensor(data.x).flatten(1).float() / 16
        with torch.no_grad():
            return torch.cat([self.network(batch.to(device)).argmax(1) for (batch,) in self.loader(x)])

    def save(self, path):
        torch.save(self.network.state_dict(), path)

    def load(self, path):
        self.network.load_state_dict(torch.load(path, map_location="cpu"))
""",
}
"""A job of ours and of somebody's own code with workers, which can be killed in its third round."""

CLASSES = 10
SHARED = (2, 4, 8)


@dataclass(frozen=True)
class Work:
    """What a row does. samples: pictures of size x size. widths: channels of the network."""

    device: str
    samples: int
    size: int
    widths: tuple[int, ...]
    batch: int
    epochs: int

    def data(self) -> Pictures:
        draw = np.random.default_rng(0)
        x = draw.integers(0, 256, (self.samples, self.size, self.size, 3), dtype=np.uint8)
        return Pictures(x, draw.integers(0, CLASSES, self.samples))


@dataclass
class Pictures:
    """A round, as the benchmark hands it over."""

    x: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.y)

    def tensors(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(self.x).permute(0, 3, 1, 2).to(device), torch.from_numpy(self.y).to(device)


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def bare(work: Work) -> Callable[[], None]:
    """The loop that anybody would write who has all data on the card."""
    x, y = work.data().tensors(work.device)
    torch.manual_seed(0)
    network = resnet((3, work.size, work.size), CLASSES, work.widths).to(work.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, fused=True)

    def run() -> None:
        network.train()
        for _ in range(work.epochs):
            for index in torch.randperm(len(y), device=work.device).split(work.batch):
                part = x[index].float() / 127.5 - 1
                loss = cross_entropy(network(part.contiguous(memory_format=torch.channels_last)), y[index])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
        synchronise(work.device)

    return run


def ours(work: Work, **options: Any) -> Callable[[], None]:
    """A round of Finetune."""
    data = work.data()
    training = {"epochs": work.epochs, "batch_size": work.batch, "learning_rate": 0.05}
    learner = TorchLearner(network="resnet", widths=work.widths, **training, **options)

    def run() -> None:
        learner.train(data, None, num_classes=CLASSES, classes_seen=range(CLASSES), device=work.device)
        synchronise(work.device)

    return run


def seconds(run: Callable[[], None], repeats: int) -> float:
    run()  # warms up
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def one_of_several(work: Work, repeats: int, together: Any, said: Any) -> None:
    """A process beside others: trains when all are ready, and says when it began and ended."""
    torch.set_num_threads(1)
    run = ours(work)
    run()
    for _ in range(repeats):
        together.wait()
        began = time.monotonic()
        run()
        said.put((began, time.monotonic()))
        together.wait()


def shared(work: Work, count: int, repeats: int) -> float:
    """Seconds from the first begin to the last end of `count` processes that train at once; the median of repeats."""
    spawn = multiprocessing.get_context("spawn")
    together, said = spawn.Barrier(count), spawn.Queue()
    others = [spawn.Process(target=one_of_several, args=(work, repeats, together, said)) for _ in range(count)]
    for other in others:
        other.start()
    found = []
    for _ in range(repeats):
        times = [said.get(timeout=3600) for _ in others]
        found.append(max(end for _, end in times) - min(begin for begin, _ in times))
    for other in others:
        other.join()
    return statistics.median(found)


def machine(device: str) -> str:
    processor: Any = collect(packages=())["cpu"]
    name = torch.cuda.get_device_name() if device == "cuda" else processor["model"]
    return f"{name}, torch {torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}"


def whole_run(device: str) -> Iterator[str]:
    """A job on the device: killed, resumed, and what its memory columns say; the answers are those of one that was not
    killed."""
    accuracies = []
    for killed in ("1", "0"):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in JOB.items():
                (Path(folder) / name).write_text(
                    text if name == "own.py" else text.format(folder=folder, device=device)
                )
            os.environ["KILLED"] = killed
            began, found = time.perf_counter(), list(ianvs.run(Path(folder) / "job.yaml"))
            if killed == "1":
                failed = [one.case.algorithm for one in found if one.status == "failed"]
                assert failed == ["own"], failed
                os.environ["KILLED"] = "0"
                found = list(ianvs.run(Path(folder) / "job.yaml"))
            took = time.perf_counter() - began
            assert [one.failure for one in found] == [None] * len(found)
            accuracies.append([one.metrics["accuracy"] for one in found])
            for one in found:
                last, after = one.rounds[-1], one.provenance.get("resumed_after_round")
                gpu = "-" if last.peak_gpu_bytes is None else f"{last.peak_gpu_bytes / 1e6:.0f} MB"
                host = f"{(last.peak_memory_bytes or 0) / 1e6:.0f} MB"
                resumed = "" if after is None else f", resumed after round {after}"
                mark = one.doubt or "none"
                yield f"{one.case.algorithm}: host {host}, card {gpu}, mark {mark}{resumed}"
            yield f"whole run: {took:.1f} s"
    yield f"answers after a kill: {'the same' if accuracies[0] == accuracies[1] else f'others: {accuracies}'}"


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a little of everything, to see that it runs")
    parser.add_argument("--no-compile", action="store_true", help="leave out the compiled row")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.quick:
        work, repeats, counts = Work(given.device, 64, 8, (8, 8), 32, 1), 1, SHARED[:1]
    else:
        work, repeats, counts = Work(given.device, 10000, 32, (32, 64, 128), 128, 2), given.repeats, SHARED
    print(machine(given.device))
    print(
        f"{work.samples} pictures {work.size}x{work.size}, batches of {work.batch}, {work.epochs} epochs, n = {repeats}"
    )
    plain = seconds(bare(work), repeats)

    def show(name: str, took: float, ratio: float) -> None:
        """At once: what was measured before the script is cut off is not lost."""
        print(f"{name:16s} {took:9.3f} s   ratio {ratio:6.3f}", flush=True)

    show("bare", plain, 1.0)
    kinds: dict[str, dict[str, Any]] = {"ours": {}, "ours, bf16": {"precision": "bf16"}}
    if given.device == "cuda":
        kinds["ours, tf32"] = {"precision": "tf32"}
    if not given.no_compile:
        kinds["ours, compiled"] = {"compile": True}
    for name, options in kinds.items():
        took = seconds(ours(work, **options), repeats)
        show(name, took, took / plain)
    for count in counts:
        took = shared(work, count, repeats)
        show(f"{count} cases", took, took / (count * plain))
    for line in whole_run(given.device):
        print(line, flush=True)


if __name__ == "__main__":
    main()
