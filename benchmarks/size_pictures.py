"""Data of the field's own sizes: 1.25 million small pictures, street scenes as many as Cityscapes', a large table.

    python benchmarks/size_pictures.py [--tenth] [--only small,streets,table] [--keep FOLDER]

Makes its data itself: hard links to a few pictures, a generated table. For each it prints what was measured beside
the target of issue 36: CPU seconds, wall-clock, the peak of anonymous and shared memory (of the largest process, the
supervisor, or all together; mapped files are nobody's), disk. --tenth: a tenth of each size. --keep: where data and
workspaces stay.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

_SPEED = "  reading, of a plain DataLoader's speed"
LINKS = 50_000  # hard links to one file, of which ext4 allows 65 000

JOB = """
benchmarkingjob:
  name: size
  workspace: {workspace}
  testenv: {folder}/testenv.yaml
  threads: 2
  seeds: [0]
  test_object:
    type: algorithms
    algorithms: [{{name: first, url: {folder}/algorithm.yaml}}]
  rank: {{sort_by: [{{{score}: descend}}]}}
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules: [{type: basemodel, name: First, url: ./plugin.py}]
"""
FIRST_BATCH = '''
import json, time
import numpy as np

class First:
    """Notes when its first batch came, and learns nothing."""

    def train(self, train_data, *, round, folder):
        for _ in train_data.loader(8, shuffle=False):
            break
        with open(folder / "first.json", "a") as file:
            file.write(json.dumps(time.time()) + "\\n")

    def predict(self, data, *, classes_seen):
        if not classes_seen:
            raise RuntimeError("untrained")
        ANSWER

    def save(self, path):
        return path

    def load(self, path): ...
'''
CLASSES = "return np.zeros(len(data), np.int64)"
PIXELS = "return np.zeros((len(data), *data[0].shape[:2]), np.uint8)"
RUN = """
import json, sys, time
import ianvs
from ianvs.running.scheduler.case_loop import Listener

class Begun(Listener):
    def started(self, case):
        print("started", time.time(), flush=True)

results = ianvs.run(sys.argv[1], listener=Begun())
for case in results:
    assert case.status == "finished", case.failure
    print("first", json.loads((case.directory / "files" / "first.json").read_text().split()[0]), flush=True)
"""


@dataclass
class Used:
    """peaks: bytes of anonymous and shared memory, of each process by id. together: of all at one time."""

    seconds: float = 0.0
    cpu: float = 0.0
    peaks: dict[int, int] = field(default_factory=dict)
    together: int = 0
    first: int = 0  # process id
    out: str = ""

    @property
    def largest(self) -> int:
        return max(self.peaks.values(), default=0)

    @property
    def supervisor(self) -> int:
        return self.peaks.get(self.first, 0)


@dataclass(frozen=True)
class Row:
    what: str
    value: float
    target: float
    unit: str
    least: bool = False  # whether the target is the least, not the most

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.least else self.value <= self.target

    def __str__(self) -> str:
        sign = ">=" if self.least else "<="
        said = f"{self.what:<58}{self.value:>9.2f} {self.unit:<6}{sign} {self.target:<8g}"
        return said + ("met" if self.met else "NOT MET")


def own_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process; of what it shares with its parent since a fork, all."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        held = [line.split()[1] for line in lines if line.startswith(("RssAnon", "RssShmem"))]
        return sum(map(int, held)) * 1024
    return 0


def proportional_bytes(pid: int) -> int:
    """The same, with each shared page counted by its share."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon", "Pss_Shmem")))
    return 0


def below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return list(dict.fromkeys(found))


def measured(command: Sequence[str], environment: dict[str, str] | None = None) -> Used:
    """What `command` takes, with all that it starts. Raises CalledProcessError."""
    used = Used()
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
        used.first = process.pid
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.1):
                living = below(process.pid)
                for pid in living:
                    used.peaks[pid] = max(used.peaks.get(pid, 0), own_bytes(pid))
                used.together = max(used.together, sum(map(proportional_bytes, living)))

        watcher = threading.Thread(target=look)
        watcher.start()
        code = process.wait()
        ended.set()
        watcher.join()
        out.seek(0)
        used.out = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used.seconds = time.perf_counter() - start
    used.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if code:
        raise subprocess.CalledProcessError(code, command, used.out)
    return used


def links(folder: Path, names: Iterator[Path], make: Callable[[int], bytes], suffix: str, different: int) -> None:
    """A hard link to one of a few files at each of `names`."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: list[Path] = []
    for index, name in enumerate(names):
        source = index % different + different * (index // (different * LINKS))
        while source >= len(sources):
            path = folder / f"source{len(sources)}{suffix}"
            path.write_bytes(make(len(sources)))
            sources.append(path)
        os.link(sources[source], name)


def png(pixels: np.ndarray) -> bytes:
    import io

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def noise(number: int) -> bytes:
    return png(np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8))


def other_noise(number: int) -> bytes:
    return noise(10_000 + number)


def small(folder: Path, count: int) -> str:
    """An index of `count` pictures of 8 x 8, of a thousand classes, with a test part of a fiftieth."""
    data = folder / "data"
    if not data.is_dir():
        for part, number in (("train", count), ("test", count // 50)):
            each = [data / part / f"{first:03d}" for first in range(min(250, number // 200 + 1))]
            for one in each:
                one.mkdir(parents=True)
            names = [each[index % len(each)] / f"{index:07d}.png" for index in range(number)]
            links(data / f"{part}_sources", iter(names), noise if part == "train" else other_noise, ".png", 40)
            with (data / f"{part}.txt").open("w") as index_file:
                for index, name in enumerate(names):
                    index_file.write(f"{name.relative_to(data)} {index % 1000}\n")
    dataset = f"{{train_index: {data}/train.txt, test_index: {data}/test.txt, storage: encoded}}"
    return f"dataset: {dataset}\n  scenario: {{name: class-incremental, rounds: 10}}\n  metrics: [accuracy]"


def streets(folder: Path, train: int, test: int) -> str:
    """Street scenes of 2048 x 1024 with label pictures of 19 classes, as many as Cityscapes has."""
    data = folder / "data"
    if not data.is_dir():
        draws = np.random.default_rng(0)

        def scene(number: int) -> bytes:
            coarse = draws.integers(0, 256, (64, 128, 3), np.uint8)
            smooth = np.asarray(Image.fromarray(coarse).resize((2048, 1024), Image.Resampling.BICUBIC)).astype(np.int16)
            return png(np.clip(smooth + draws.integers(-3, 4, smooth.shape), 0, 255).astype(np.uint8))

        def label(number: int) -> bytes:
            coarse = Image.fromarray(draws.integers(0, 19, (32, 64), np.uint8))
            return png(np.asarray(coarse.resize((2048, 1024), Image.Resampling.NEAREST)))

        for part, number in (("train", train), ("test", test)):
            (data / part).mkdir(parents=True)
            names = [data / part / f"{index:05d}" for index in range(number)]
            links(data / f"{part}_scenes", (name.with_suffix(".png") for name in names), scene, ".png", 8)
            links(data / f"{part}_labels", (name.with_suffix(".label.png") for name in names), label, ".png", 8)
            lines = (f"{part}/{name.name}.png {part}/{name.name}.label.png" for name in names)
            (data / f"{part}.txt").write_text("\n".join(lines))
    classes = "[" + ", ".join(f"c{index}" for index in range(19)) + "]"
    return (
        f"dataset: {{train_index: {data}/train.txt, test_index: {data}/test.txt, classes: {classes}}}\n"
        "  incremental_rounds: 2\n  metrics: [mIoU]"
    )


def table(folder: Path, rows: int) -> str:
    """A csv of `rows` x 50 numbers and a class."""
    data = folder / "data"
    if not data.is_dir():
        data.mkdir(parents=True)
        draws = np.random.default_rng(0)
        for part, number in (("train", rows), ("test", rows // 50)):
            with (data / f"{part}.csv").open("w") as file:
                file.write(",".join(f"f{column}" for column in range(50)) + ",label\n")
                block = [",".join(f"{v:.5g}" for v in row) for row in draws.normal(size=(2000, 50))]
                for index in range(number):
                    file.write(f"{block[index % 2000]},{index % 10}\n")
    return (
        f"dataset: {{train_data: {data}/train.csv, test_data: {data}/test.csv}}\n"
        "  scenario: {name: class-incremental, rounds: 5}\n  metrics: [accuracy]"
    )


def write_job(folder: Path, testenv: str, answer: str, score: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "testenv.yaml").write_text(f"testenv:\n  {testenv}\n")
    (folder / "algorithm.yaml").write_text(ALGORITHM)
    (folder / "plugin.py").write_text(FIRST_BATCH.replace("ANSWER", answer))
    (folder / "job.yaml").write_text(JOB.format(folder=folder, workspace=folder / "ws", score=score))
    return folder / "job.yaml"


def disk(folder: Path) -> int:
    """Bytes that files below `folder` take on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def checked(job: Path) -> Used:
    return measured([sys.executable, "-m", "ianvs", "validate", str(job)])


def begun(job: Path) -> tuple[Used, float]:
    """(what a run takes, seconds from the beginning of its case to the first batch)"""
    used = measured([sys.executable, "-c", RUN, str(job)])
    times = {words[0]: float(words[1]) for line in used.out.splitlines() if len(words := line.split()) == 2}
    return used, times["first"] - times["started"]


READER = """
import json, sys, time
import numpy as np
from PIL import Image

class First:
    def train(self, train_data, *, round, folder):
        if round > 1:
            return
        import resource
        began, seen, pace = time.perf_counter(), 0, []
        for x, _ in train_data.loader(4, shuffle=False):
            seen += len(x)
            if time.perf_counter() - began > SECONDS:
                break
        ours = seen / (time.perf_counter() - began)
        with open(folder / "first.json", "w") as file:
            file.write(json.dumps(ours))

    def predict(self, data, *, classes_seen):
        if not classes_seen:
            raise RuntimeError("untrained")
        return np.zeros((len(data), *data[0].shape[:2]), np.uint8)

    def save(self, path):
        return path

    def load(self, path): ...
"""
PLAIN = """
import sys, time
import numpy as np, torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

class Plain(Dataset):
    def __init__(self, folder, index):
        self.pairs = [line.split() for line in open(folder + "/" + index)]
        self.folder = folder
    def __len__(self):
        return len(self.pairs)
    def __getitem__(self, i):
        x, y = (np.asarray(Image.open(self.folder + "/" + name)) for name in self.pairs[i])
        return torch.from_numpy(x.copy()), torch.from_numpy(y.copy())

torch.set_num_threads(2)
began, seen = time.perf_counter(), 0
for x, _ in DataLoader(Plain(sys.argv[1], "train.txt"), batch_size=4, num_workers=2):
    seen += len(x)
    if time.perf_counter() - began > float(sys.argv[2]):
        break
print(seen / (time.perf_counter() - began))
"""


def reading(folder: Path, testenv: str, seconds: float) -> float:
    """How fast a loader of two threads reads, as a share of a plain DataLoader of two workers before and after it."""
    job = write_job(folder / "reading", testenv, PIXELS, "mIoU")
    (folder / "reading" / "plugin.py").write_text(READER.replace("SECONDS", str(seconds)))
    command = [sys.executable, "-c", PLAIN, str(folder / "data"), str(seconds / 2)]
    theirs = [float(measured(command).out.split()[-1])]
    used = measured([sys.executable, "-c", RUN, str(job)])
    theirs.append(float(measured(command).out.split()[-1]))
    ours = float(next(line.split()[1] for line in used.out.splitlines() if line.startswith("first")))
    print(f"  {ours:.1f} pictures a second, a plain DataLoader {theirs[0]:.1f} and {theirs[1]:.1f}")
    return 2 * ours / sum(theirs)


def rows_of(name: str, folder: Path, share: float, *, speed: bool = True) -> list[Row]:
    """What was measured. speed: whether the speed of reading is."""
    if name == "small":
        testenv = small(folder, int(1_250_000 * share))
        job = write_job(folder, testenv, CLASSES, "accuracy")
        validated = checked(job)
        ran, first = begun(job)
        return [
            Row("1.25 million pictures of 8 x 8: validate, CPU", validated.cpu, 30 * share, "s"),
            Row("  largest process", validated.largest / 1e6, 500, "MB"),
            Row("  supervisor", validated.supervisor / 1e6, 300, "MB"),
            Row("  first batch of a case after", first, 5, "s"),
            Row("  largest process of the run", ran.largest / 1e6, 500, "MB"),
            Row("  disk of the workspace", disk(folder / "ws") / 1e6, 500 * share, "MB"),
        ]
    if name == "streets":
        testenv = streets(folder, int(2975 * share), int(500 * share))
        job = write_job(folder, testenv, PIXELS, "mIoU")
        validated = checked(job)
        ran, first = begun(job)
        return [
            Row("street scenes of 2048 x 1024: validate, CPU", validated.cpu, 60, "s"),
            Row("  first batch of a case after", first, 10, "s"),
            Row("  all processes of the run together", ran.together / 1e6, 2000, "MB"),
            Row("  disk of the workspace", disk(folder / "ws") / 1e6, 100, "MB"),
        ] + ([Row(_SPEED, reading(folder, testenv, 20), 0.9, "", least=True)] if speed else [])
    job = write_job(folder, table(folder, int(2_000_000 * share)), CLASSES, "accuracy")
    validated = checked(job)
    ran, first = begun(job)
    return [
        Row("csv of 2 million x 50: validate, CPU", validated.cpu, 120 * max(share, 0.2), "s"),
        Row("  supervisor", max(validated.supervisor, ran.supervisor) / 1e6, 300, "MB"),
        Row("  largest process", validated.largest / 1e6, 1000, "MB"),
        Row("  first batch of a case after", first, 10, "s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenth", action="store_true")
    parser.add_argument("--only", default="small,streets,table")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in options.only.split(","):
            for row in rows_of(name, folder.absolute() / name, 0.1 if options.tenth else 1.0):
                print(row, flush=True)


if __name__ == "__main__":
    main()
