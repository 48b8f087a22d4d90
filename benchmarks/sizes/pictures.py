"""Pictures and a table that are larger than memory: 1.25 million pictures of 8 x 8, street scenes as many as Cityscapes
has (2 975 and 500 of 2048 x 1024, with label pictures), a csv and a parquet of 2 million x 50.

The pictures are hard links to a few files. The learner notes when its first batch came, and learns nothing.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.sizes.measuring import RUN_ONE, Cost, Row, disk, ianvs, measured

LINKS = 50_000  # to one file, of which ext4 allows 65 000
SUPERVISOR_MB = 150.0
SPEED = 0.9  # of a plain DataLoader, the least at which a loader is to read

JOB = """
benchmarkingjob:
  name: size
  workspace: {folder}/workspace
  testenv: {folder}/testenv.yaml
  threads: 2
  seeds: [0]
  test_object: {{type: algorithms, algorithms: [{{name: first, url: {folder}/algorithm.yaml}}]}}
  rank: {{sort_by: [{{{score}: descend}}]}}
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules: [{type: basemodel, name: First, url: ./plugin.py}]
"""
PLUGIN = '''
import json, time
import numpy as np

class First:
    """Notes when its first batch came, or how long it takes to read some, and learns nothing."""

    def train(self, train_data, *, round, folder):
        began, seen, found = time.perf_counter(), 0, None
        for x, _ in train_data.loader({batch}, shuffle=False):
            found, seen = found or time.time(), seen + len(x)
            if time.perf_counter() - began >= {seconds}:
                break
        if round == 1:
            each = (time.perf_counter() - began) / seen
            (folder / "noted.json").write_text(json.dumps({{"first": found, "each": each}}))

    def predict(self, data, *, classes_seen):
        if not classes_seen:
            raise RuntimeError("untrained")
        return np.zeros((len(data), *{shape}), np.{dtype})

    def save(self, path):
        return path

    def load(self, path): ...
'''
RUN = f"""{RUN_ONE}
print(noted["first"] - begun.at, noted["each"])
"""
PLAIN = """
import sys, time
import numpy as np, torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

class Plain(Dataset):
    def __init__(self, folder):
        self.pairs = [[f"{folder}/{name}" for name in line.split()] for line in open(folder + "/train.txt")]
    def __len__(self):
        return len(self.pairs)
    def __getitem__(self, i):
        return tuple(torch.from_numpy(np.array(Image.open(name))) for name in self.pairs[i])

torch.set_num_threads(2)
began, seen = time.perf_counter(), 0
for x, _ in DataLoader(Plain(sys.argv[1]), batch_size=4, num_workers=2):
    seen += len(x)
    if time.perf_counter() - began >= float(sys.argv[2]):
        break
print((time.perf_counter() - began) / seen)
"""


def write_job(folder: Path, testenv: str, *, pixels: bool = False, batch: int = 8, seconds: float = 0.0) -> Path:
    """A job whose learner reads for so many `seconds`, at least one batch. pixels: it answers with label pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    shape, dtype = ("data[0].shape[:2]", "uint8") if pixels else ("()", "int64")
    (folder / "testenv.yaml").write_text(f"testenv:\n  {testenv}\n")
    (folder / "algorithm.yaml").write_text(ALGORITHM)
    (folder / "plugin.py").write_text(PLUGIN.format(batch=batch, seconds=seconds, shape=shape, dtype=dtype))
    (folder / "job.yaml").write_text(JOB.format(folder=folder, score="mIoU" if pixels else "accuracy"))
    return folder / "job.yaml"


def links(names: Sequence[Path], make: Callable[[], bytes], different: int) -> None:
    """A hard link at each of `names`, to files of which there are `different` ones, or more where one has too many."""
    count = max(different, -(-len(names) // LINKS))
    sources = names[:count]
    for one in sources:
        one.write_bytes(make())
    for index, name in enumerate(names[count:]):
        os.link(sources[index % count], name)


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def small(data: Path, train: int, test: int) -> str:
    """An index of pictures of 8 x 8, of a thousand classes."""
    draws = np.random.default_rng(0)
    for part, count in (("train", train), ("test", test)):
        folders = [data / part / f"{first:03d}" for first in range(min(250, count // 200 + 1))]
        for one in folders:
            one.mkdir(parents=True)
        names = [folders[index % len(folders)] / f"{index:07d}.png" for index in range(count)]
        links(names, lambda: png(draws.integers(0, 256, (8, 8, 3), np.uint8)), 40)
        lines = (f"{name.relative_to(data)} {index % 1000}\n" for index, name in enumerate(names))
        (data / f"{part}.txt").write_text("".join(lines))
    dataset = f"{{train_index: {data}/train.txt, test_index: {data}/test.txt, storage: encoded}}"
    return f"dataset: {dataset}\n  scenario: {{name: class-incremental, rounds: 10}}\n  metrics: [accuracy]"


def streets(data: Path, train: int, test: int) -> str:
    """An index of street scenes of 2048 x 1024 with label pictures of 19 classes."""
    draws = np.random.default_rng(0)

    def scene() -> bytes:
        coarse = Image.fromarray(draws.integers(0, 256, (64, 128, 3), np.uint8))
        smooth = np.asarray(coarse.resize((2048, 1024), Image.Resampling.BICUBIC)).astype(np.int16)
        return png(np.clip(smooth + draws.integers(-3, 4, smooth.shape), 0, 255).astype(np.uint8))

    def label() -> bytes:
        coarse = Image.fromarray(draws.integers(0, 19, (32, 64), np.uint8))
        return png(np.asarray(coarse.resize((2048, 1024), Image.Resampling.NEAREST)))

    for part, count in (("train", train), ("test", test)):
        (data / part).mkdir(parents=True)
        for suffix, make in ((".png", scene), (".label.png", label)):
            links([data / part / f"{index:05d}{suffix}" for index in range(count)], make, 8)
        lines = (f"{part}/{index:05d}.png {part}/{index:05d}.label.png\n" for index in range(count))
        (data / f"{part}.txt").write_text("".join(lines))
    classes = ", ".join(f"c{index}" for index in range(19))
    dataset = f"{{train_index: {data}/train.txt, test_index: {data}/test.txt, classes: [{classes}]}}"
    return f"dataset: {dataset}\n  incremental_rounds: 2\n  metrics: [mIoU]"


def table(data: Path, train: int, test: int) -> str:
    """A csv of 50 numbers and a class in each row."""
    data.mkdir(parents=True)
    draws = np.random.default_rng(0)
    for part, count in (("train", train), ("test", test)):
        block = [",".join(f"{value:.5g}" for value in row) for row in draws.normal(size=(2000, 50))]
        with (data / f"{part}.csv").open("w") as file:
            file.write(",".join(f"f{column}" for column in range(50)) + ",label\n")
            file.writelines(f"{block[index % 2000]},{index % 10}\n" for index in range(count))
    dataset = f"{{train_data: {data}/train.csv, test_data: {data}/test.csv}}"
    return f"dataset: {dataset}\n  scenario: {{name: class-incremental, rounds: 5}}\n  metrics: [accuracy]"


def parquet(data: Path, train: int, test: int) -> str:
    """A parquet file of 50 numbers and a class in each row, written in groups of 100 000 rows."""
    import pyarrow as arrow
    import pyarrow.parquet

    data.mkdir(parents=True)
    draws = np.random.default_rng(0)
    schema = arrow.schema([*((f"f{column}", arrow.float64()) for column in range(50)), ("label", arrow.int64())])
    for part, count in (("train", train), ("test", test)):
        with pyarrow.parquet.ParquetWriter(data / f"{part}.parquet", schema) as file:
            for start in range(0, count, 100_000):
                rows = min(100_000, count - start)
                columns = [*draws.normal(size=(50, rows)), np.arange(start, start + rows) % 10]
                file.write_table(arrow.table(columns, schema=schema))
    dataset = f"{{train_data: {data}/train.parquet, test_data: {data}/test.parquet}}"
    return f"dataset: {dataset}\n  scenario: {{name: class-incremental, rounds: 5}}\n  metrics: [accuracy]"


def ran(job: Path) -> tuple[Cost, float, float]:
    """(the cost of a run, seconds from the beginning of its case to the first batch, seconds to read a picture)"""
    cost = measured([sys.executable, "-c", RUN, str(job)], job.parent)
    first, each = map(float, cost.said.splitlines()[-1].split())
    return cost, first, each


def costs(what: str, job: Path, cpu: float, first: float, memory: float, size: float) -> Iterator[Row]:
    """Of validating and of running a job. The most: CPU s to validate, seconds to the first batch, MB in a process, MB
    of the workspace."""
    cost = ianvs("validate", job, folder=job.parent)
    limits = {"MB in a process": memory, "MB in the supervisor": SUPERVISOR_MB}
    yield Row(f"{what}, validate", {"CPU s": cost.seconds, **_memory(cost)}, {"CPU s": cpu, **limits})
    cost, seconds, _ = ran(job)
    yield Row(f"{what}, run up to the first batch", {"seconds": seconds, **_memory(cost)}, {"seconds": first, **limits})
    yield Row(f"{what}, workspace", {"MB": disk(job.parent / "workspace") / 1e6}, {"MB": size})


def _memory(cost: Cost) -> dict[str, float]:
    return {
        "MB in a process": cost.process / 1e6,
        "MB in the supervisor": cost.first / 1e6,
        "MB in all": cost.tree / 1e6,
    }


def speed(folder: Path, data: Path, testenv: str, seconds: float) -> Row:
    """Of a loader of two threads, between two runs of a plain DataLoader of two workers over the same files."""
    job = write_job(folder, testenv, pixels=True, batch=4, seconds=seconds)
    command = [sys.executable, "-c", PLAIN, str(data), str(seconds / 2)]
    before = float(measured(command, folder).said.split()[-1])
    _, _, ours = ran(job)
    plain = (before + float(measured(command, folder).said.split()[-1])) / 2
    figures = {"seconds": 100 * ours, "seconds of a plain DataLoader": 100 * plain}
    return Row("a hundred street scenes, read by two threads", figures, {"seconds": 100 * plain / SPEED})


def rows(folder: Path, share: float) -> Iterator[Row]:
    """What each takes, at `share` of its size."""
    testenv = small(folder / "small", int(1_250_000 * share), int(25_000 * share))
    job = write_job(folder / "small_job", testenv)
    yield from costs("1.25 million pictures of 8 x 8", job, 30 * share, 5, 380 + 120 * share, 10 + 500 * share)
    testenv = streets(folder / "streets", int(2975 * share), int(500 * share))
    job = write_job(folder / "streets_job", testenv, pixels=True)
    yield from costs("street scenes of 2048 x 1024", job, 60, 10, 1000, 60)
    yield speed(folder / "speed_job", folder / "streets", testenv, 20 * share)
    job = write_job(folder / "table_job", table(folder / "table", int(2_000_000 * share), int(40_000 * share)))
    yield from costs("csv of 2 million x 50", job, 24 + 96 * share, 10, 450 + 550 * share, 1000 * share)
    testenv = parquet(folder / "parquet", int(2_000_000 * share), int(40_000 * share))
    job = write_job(folder / "parquet_job", testenv)
    yield from costs("parquet of 2 million x 50", job, 24 + 96 * share, 10, 450 + 550 * share, 1000 * share)
