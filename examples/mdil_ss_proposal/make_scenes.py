"""Draws street scenes of three domains into dataset/, laid out and indexed as the proposal says.

python make_scenes.py              lines such as rgb/train/CS/00000.png gtFine/train/CS/00000_TrainIds.png
python make_scenes.py --one-place  lines such as rgb/train/20220420_garden/00000.png ...: no path holds a domain
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from ianvs.testenv.datasets.streets import STREETS_CLASSES, make_streets

HERE = Path(__file__).parent / "dataset"
SIZE = (28, 44)  # height, width: no multiples of 8, like real images
COUNTS = {"train": 25, "test": 8}  # scenes of each domain


def make_scenes(folder: Path, one_place: bool = False) -> None:
    """Write train_data/ and test_data/ with their index.txt. Ids are shared by all domains; 255 is ignored."""
    names = list(dict.fromkeys(name for classes in STREETS_CLASSES.values() for name in classes))
    for part, count in COUNTS.items():
        home, lines = folder / f"{part}_data", []
        for domain, classes in STREETS_CLASSES.items():
            ids = np.full(256, 255, dtype=np.uint8)
            ids[: len(classes)] = [names.index(name) for name in classes]
            for picture, labels in zip(*make_streets(domain, count, SIZE, part=part)):
                stem = f"{part}/{'20220420_garden' if one_place else domain}/{len(lines):05d}"
                pair = (f"rgb/{stem}.png", f"gtFine/{stem}_TrainIds.png")
                for name, pixels in zip(pair, (picture, ids[labels])):
                    (home / name).parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(pixels).save(home / name)
                lines.append(" ".join(pair))
        (home / "index.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--one-place", action="store_true", help="name no domain in the paths")
    make_scenes(HERE, parser.parse_args().one_place)
