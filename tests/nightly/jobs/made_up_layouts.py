"""Data sets of the papers with images of noise, in the folders and files that they are downloaded in."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
TASKS = ("C-STANCE", "FOMC", "MeetingBank", "Py150", "ScienceQA", "NumGLUE-cm", "NumGLUE-ds", "20Minuten")
RNG = np.random.default_rng(0)


def image(path: Path, size: int = 24) -> None:
    """A small photograph of noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 256, (size, size + 4, 3), dtype=np.uint8)).save(path)


def class_folders(root: Path, classes: int, train: int = 2) -> None:
    """train/CLASS and test/CLASS: ImageNet-R and VTAB of LAMDA-PILOT, CUB."""
    for number in range(classes):
        for part, count in (("train", train), ("test", 1)):
            for index in range(count):
                image(root / part / f"n{number:03d}" / f"{index}.jpg")


def domainnet(root: Path, classes: int = 345) -> None:
    """DOMAIN/CLASS/*.jpg and DOMAIN_train.txt, whose lines are a path and a number of the class."""
    lines: dict[str, list[str]] = {}
    for number in range(classes):
        for part, domain in (("train", DOMAINS[number % 6]), ("test", DOMAINS[(number + 1) % 6])):
            name = f"{domain}/class_{number:03d}/{part}.jpg"
            image(root / name, 12)
            lines.setdefault(f"{domain}_{part}.txt", []).append(f"{name} {number}")
    for name, rows in lines.items():
        (root / name).write_text("\n".join(rows) + "\n")


def voc(root: Path, classes: int = 20, images: int = 2) -> None:
    """JPEGImages, SegmentationClassAug and splits, without the slashes that their paths begin with (see the job)."""
    for part, count in (("train_aug", images), ("val", 1)):
        rows = []
        for number in range(1, classes + 1):
            for index in range(count):
                name = f"2007_{part}{number:03d}{index}"
                image(root / "JPEGImages" / f"{name}.jpg", 32)
                mask = np.zeros((32, 36), dtype=np.uint8)
                mask[4:20, 4:20], mask[4:20, 20:22] = number, 255
                (root / "SegmentationClassAug").mkdir(exist_ok=True)
                Image.fromarray(mask).save(root / "SegmentationClassAug" / f"{name}.png")
                rows.append(f"JPEGImages/{name}.jpg SegmentationClassAug/{name}.png")
        (root / "splits").mkdir(exist_ok=True)
        (root / "splits" / f"{part}.txt").write_text("\n".join(rows) + "\n")


def ade(root: Path) -> None:
    """images/training, annotations/training: 150 classes from 1 on, 0 is other."""
    for part, folder in (("training", "training"), ("validation", "validation")):
        rows = []
        for number in range(1, 151):
            name = f"ADE_{part}_{number:08d}"
            image(root / "images" / folder / f"{name}.jpg", 16)
            mask = np.zeros((16, 20), dtype=np.uint8)
            mask[4:12, 4:12] = number
            (root / "annotations" / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask).save(root / "annotations" / folder / f"{name}.png")
            rows.append(f"images/{folder}/{name}.jpg annotations/{folder}/{name}.png")
        (root / "splits").mkdir(exist_ok=True)
        (root / "splits" / f"{part}.txt").write_text("\n".join(rows) + "\n")


def trace(root: Path) -> None:
    """TASK/train.json and test.json of TRACE: lists of prompts and answers."""
    for number, task in enumerate(TASKS):
        for part in ("train", "test"):
            records = [{"prompt": f"{task} {index}", "answer": "AB"[(index + number) % 2]} for index in range(4)]
            (root / task).mkdir(parents=True, exist_ok=True)
            (root / task / f"{part}.json").write_text(json.dumps(records))
