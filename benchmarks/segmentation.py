"""Pictures per second of continual segmentation: ours, the limit, and what people write.

    python benchmarks/segmentation.py
    python benchmarks/segmentation.py --device cuda --height 512 --width 1024 --network erfnet --amp

Three ways to train one domain with the same network, optimiser and loss, and to predict it, in turn in this process:
ours    SegmentationLearner, as a benchmark calls it: with augmentation, class weights and prediction in the exam's ids.
device  a plain loop over tensors that lie on the device, augmentation by one flip of the batch: the limit.
decode  a torch DataLoader whose two workers decode PNG files of the size that a camera gave them (--source) with PIL,
        and resize, flip and shift each picture, every time it is asked for.

The target is at least 0.95 of the device loop.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for testalgorithms

from ianvs.testalgorithms.nets import ErfNet  # noqa: E402
from ianvs.testalgorithms.segmentation.finetune.basemodel import FineTuning  # noqa: E402

CLASSES = 19


class View:
    """Pictures as the benchmark hands them over."""

    def __init__(self, x: np.ndarray, y: np.ndarray | None) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def tensors(self, device: str = "cpu") -> Any:
        x = torch.from_numpy(self.x).permute(0, 3, 1, 2).to(device)
        return x if self.y is None else (x, torch.from_numpy(self.y).to(device))


class Files(Dataset):
    """PNG files, decoded whenever they are asked for."""

    def __init__(self, folder: Path, size: tuple[int, int], augment: bool) -> None:
        self.size = size[::-1]  # PIL's order
        self.pictures, self.labels = sorted(folder.glob("x*.png")), sorted(folder.glob("y*.png"))
        self.augment = augment

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture, label = Image.open(self.pictures[index]), Image.open(self.labels[index])
        x = np.array(picture.resize(self.size, Image.Resampling.BILINEAR))
        y = np.array(label.resize(self.size, Image.Resampling.NEAREST))
        if self.augment:
            if np.random.rand() < 0.5:
                x, y = x[:, ::-1], y[:, ::-1]
            right, down = np.random.randint(-2, 3, 2)
            x, y = (np.roll(part, (down, right), (0, 1)) for part in (x, y))
        pixels = torch.from_numpy(np.ascontiguousarray(x)).permute(2, 0, 1).float() / 255
        return pixels, torch.from_numpy(np.ascontiguousarray(y)).long()


def plain_train(network: Any, batches: Iterator[tuple[Tensor, Tensor]], weights: Tensor, amp: bool) -> None:
    """What everybody writes, on batches that are ready."""
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, weight_decay=1e-4, fused=True)
    for x, y in batches:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=amp):
            logits = network(x)
        loss = cross_entropy(logits.float(), y, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()


def plain_predict(network: Any, batches: Iterator[Tensor], amp: bool) -> list[Tensor]:
    """The likeliest class of each pixel."""
    network.eval()
    found = []
    with torch.inference_mode():
        for x in batches:
            with torch.autocast(x.device.type, torch.bfloat16, enabled=amp):
                found.append(network(x)[:, :CLASSES].argmax(1).to(torch.uint8))
    return found


class Ways:
    """The three ways, on the same pictures."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.a, self.folder = arguments, folder
        self.device = torch.device(arguments.device)
        draw = np.random.default_rng(0)
        shape = (arguments.pictures, arguments.height, arguments.width)
        coarse = draw.integers(0, CLASSES, (shape[0], shape[1] // 8, shape[2] // 8), dtype=np.uint8)
        self.y = np.repeat(np.repeat(coarse, 8, 1), 8, 2)
        self.x = (self.y[..., None] * 10 + draw.integers(0, 60, (*shape, 3))).astype(np.uint8)
        for i, (x, y) in enumerate(zip(self.x, self.y, strict=True)):
            original = arguments.source[::-1]
            Image.fromarray(x).resize(original, Image.Resampling.BICUBIC).save(folder / f"x{i:05d}.png")
            Image.fromarray(y).resize(original, Image.Resampling.NEAREST).save(folder / f"y{i:05d}.png")
        self.weights = torch.ones(CLASSES + 1, device=self.device)
        options = {"network": arguments.network, "batch_size": arguments.batch, "amp": arguments.amp}
        self.learner = FineTuning(epochs=arguments.epochs, compile=arguments.compile, **options)
        self.net = ErfNet([CLASSES + 1], self.learner.shape).to(self.device, memory_format=torch.channels_last)
        self.stepped = torch.compile(self.net) if arguments.compile else self.net
        x, y = View(self.x, self.y).tensors(arguments.device)
        self.ready = [
            (part.float().div(255).contiguous(memory_format=torch.channels_last), labels.long())
            for part, labels in zip(x.split(arguments.batch), y.split(arguments.batch), strict=True)
        ]

    def ours_train(self) -> None:
        given = {"num_classes": CLASSES, "new_classes": tuple(range(CLASSES)), "round": 1, "task": 0}
        self.learner.train(View(self.x, self.y), device=self.a.device, **given)

    def ours_predict(self) -> None:
        self.learner.predict(View(self.x, None), num_classes=CLASSES, task=0, device=self.a.device)

    def device_train(self) -> None:
        batches = ((x.flip(-1), y.flip(-1)) for _ in range(self.a.epochs) for x, y in self.ready)
        plain_train(self.stepped, batches, self.weights, self.a.amp)

    def device_predict(self) -> None:
        plain_predict(self.net, (x for x, _ in self.ready), self.a.amp)

    def decode_train(self) -> None:
        batches = ((x, y) for _ in range(self.a.epochs) for x, y in self.decoded(augment=True))
        plain_train(self.stepped, batches, self.weights, self.a.amp)

    def decode_predict(self) -> None:
        plain_predict(self.net, (x for x, _ in self.decoded(augment=False)), self.a.amp)

    def decoded(self, augment: bool) -> Iterator[tuple[Tensor, Tensor]]:
        pinned = self.device.type == "cuda"
        loader = DataLoader(
            Files(self.folder, (self.a.height, self.a.width), augment),
            self.a.batch,
            shuffle=augment,
            num_workers=2,
            pin_memory=pinned,
        )
        for x, y in loader:
            x = x.to(self.device, non_blocking=True, memory_format=torch.channels_last)
            yield x, y.to(self.device, non_blocking=True)

    def seconds(self, run: Callable[[], None]) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def report(ways: Ways, what: str, passes: int, repeats: int) -> float:
    """Prints pictures per second of the three ways; returns the ratio of ours to the device loop."""
    runs = {name: getattr(ways, f"{name}_{what}") for name in ("ours", "device", "decode")}
    for run in runs.values():
        run()  # warms up
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats):
        for name in list(runs) if repeat % 2 else reversed(runs):
            taken[name].append(ways.seconds(runs[name]))
    pictures = ways.a.pictures * passes
    speed = {name: pictures / statistics.median(values) for name, values in taken.items()}
    ratios = {
        name: statistics.median(b / a for a, b in zip(taken["ours"], taken[name], strict=True))
        for name in ("device", "decode")
    }
    columns = "   ".join(f"{name} {value:9.1f}" for name, value in speed.items())
    print(
        f"{what:8s} pictures/s:   {columns}   ours/device {ratios['device']:.3f}   ours/decode {ratios['decode']:.2f}"
    )
    return ratios["device"]


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--network", default="erfnet_narrow", choices=["erfnet", "erfnet_narrow"])
    parser.add_argument("--height", type=int, default=96)
    parser.add_argument("--width", type=int, default=128)
    size = "height and width of the PNG files"
    parser.add_argument("--source", type=int, nargs=2, default=(720, 960), metavar=("H", "W"), help=size)
    parser.add_argument("--pictures", type=int, default=96)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=2, help="passes over the pictures in a measured run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="bfloat16")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        ways = Ways(arguments, Path(folder))
        print(
            f"{arguments.network}, {arguments.pictures} pictures of {arguments.height}x{arguments.width}, "
            f"batch {arguments.batch}, {arguments.device}, {arguments.threads} thread(s), n = {arguments.repeats}"
        )
        report(ways, "train", arguments.epochs, arguments.repeats)
        report(ways, "predict", 1, arguments.repeats)


if __name__ == "__main__":
    main()
