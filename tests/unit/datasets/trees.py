"""Small trees in the layouts of the datasets as they are downloaded."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

SHAPE = (16, 32)


def picture(path: Path, shape: tuple[int, int] = SHAPE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((*shape, 3), 120, dtype=np.uint8)).save(path)
    return path


def labels(path: Path, ids: list[int], shape: tuple[int, int] = SHAPE) -> Path:
    """A single-channel 8-bit label picture that holds `ids` over and over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.resize(np.array(ids, dtype=np.uint8), shape)).save(path)
    return path


def labels_16_bit(path: Path, ids: list[int], shape: tuple[int, int] = SHAPE, channels: int = 3) -> Path:
    """As SYNTHIA's: big-endian 16-bit PNG, the id in the first channel, an instance in the second. No library used."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full((*shape, channels), 777, dtype=">u2")
    values[..., 0] = np.resize(np.array(ids), shape)
    rows = b"".join(b"\0" + row.tobytes() for row in values)
    head = struct.pack(">IIBBBBB", shape[1], shape[0], 16, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data)) for tag, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def cityscapes(root: Path, suffix: str = "labelTrainIds", ids: list[int] | None = None) -> Path:
    """Two training pictures of two cities, one validation picture, and a test picture that is never used."""
    for split, city, number in (
        ("train", "aachen", 0),
        ("train", "ulm", 7),
        ("val", "munster", 1),
        ("test", "bonn", 2),
    ):
        stem = f"{city}/{city}_{number:06d}_000019"
        picture(root / "leftImg8bit" / split / f"{stem}_leftImg8bit.png")
        labels(root / "gtFine" / split / f"{stem}_gtFine_{suffix}.png", [*range(19), 255] if ids is None else ids)
        labels(root / "gtFine" / split / f"{stem}_gtFine_instanceIds.png", [0])
        (root / "gtFine" / split / f"{stem}_gtFine_polygons.json").write_text("{}")
    return root


def synthia(root: Path, count: int = 10, ids: list[int] | None = None, channels: int = 3) -> Path:
    for number in range(count):
        picture(root / "RGB" / f"{number:07d}.png")
        labels_16_bit(root / "GT/LABELS" / f"{number:07d}.png", ids or list(range(23)), channels=channels)
    return root


def cloud_robotics(root: Path, ids: list[int] | None = None) -> Path:
    for split, count in (("train", 2), ("val", 1), ("test", 1)):
        for scene in ("20220420_front", "20220420_garden"):
            for number in range(count):
                picture(root / "rgb" / split / scene / f"{number:05d}.png")
                labels(root / "gtFine" / split / scene / f"{number:05d}_TrainIds.png", ids or [*range(30), 255])
    return root


def bdd100k(root: Path) -> Path:
    for split, name in (("train", "0004a4c0"), ("train", "00054602"), ("val", "7d06fefd")):
        picture(root / "seg/images" / split / f"{name}.jpg")
        labels(root / "seg/labels" / split / f"{name}_train_id.png", [*range(19), 255])
    picture(root / "seg/images/test/cabc30fc.jpg")
    return root


def idd(root: Path, ids: list[int] | None = None) -> Path:
    for split, drive in (("train", "201"), ("val", "119")):
        picture(root / "leftImg8bit" / split / drive / "frame0_leftImg8bit.png")
        labels(root / "gtFine" / split / drive / "frame0_gtFine_labellevel3Ids.png", ids or [*range(26), 255])
    return root


def camvid(root: Path) -> Path:
    for split in ("train", "test"):
        for sequence in ("0001TP", "0016E5"):
            picture(root / "rgb" / split / sequence / f"{sequence}_{split}.jpg")
            labels(root / "gt" / split / sequence / f"{sequence}_{split}_TrainIds.png", list(range(12)))
    return root
