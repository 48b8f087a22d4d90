"""Writes images of circles and squares, darker from site to site, and their index files.

An index file has a line per image, "path label"; paths are relative to it.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image


def picture(rng, label, light):
    x, y = np.meshgrid(np.arange(16), np.arange(16))
    shape = (x - 8) ** 2 + (y - 8) ** 2 < 30 if label == "circle" else (abs(x - 8) < 5) & (abs(y - 8) < 5)
    pixels = rng.normal(60, 20, (16, 16)) + 150 * shape
    return Image.fromarray((pixels * light).clip(0, 255).astype(np.uint8))


def main(folder):
    rng = np.random.default_rng(0)
    for part, count in (("train", 40), ("test", 15)):
        lines = []
        for site, light in (("morning", 1.0), ("evening", 0.5), ("night", 0.2)):
            for label in ("circle", "square"):
                for number in range(count):
                    path = folder / part / site / f"{label}-{number}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    picture(rng, label, light).save(path)
                    lines.append(f"{path.relative_to(folder)} {label}")
        (folder / f"{part}-index.txt").write_text("\n".join(lines) + "\n")


main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "data"))
