"""Detection at COCO's size: 118 000 pictures with 860 000 boxes to learn from, 5 000 with 100 answers each, 80 classes.

The pictures are hard links to a few of 8 x 8; their boxes are in COCO's layout. The learner takes the labels of its
round, and its answers are drawn.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.detection import generated
from benchmarks.sizes.measuring import RUN_ONE, Row, ianvs, measured
from benchmarks.sizes.pictures import JOB, links, png

PLUGIN = '''
import json, time
import numpy as np

class Boxes:
    """Takes the labels of a round, learns nothing, and answers a hundred drawn boxes to each picture."""

    def train(self, train_data, *, folder):
        self.note(folder, called=time.time())
        boxes = sum(len(label["labels"]) for label in train_data.y)
        self.note(folder, labels=time.time(), boxes=boxes)

    def predict(self, data):
        draw = np.random.default_rng(len(data))
        corners = draw.uniform(0, 4, (len(data), 100, 2))
        boxes = np.concatenate([corners, corners + draw.uniform(0, 4, (len(data), 100, 2))], axis=2)
        labels, scores = draw.integers(0, 80, (len(data), 100)), draw.random((len(data), 100))
        return [{"boxes": b, "labels": c, "scores": s} for b, c, s in zip(boxes, labels, scores)]

    def note(self, folder, **told):
        file = folder / "noted.json"
        file.write_text(json.dumps({**(json.loads(file.read_text()) if file.exists() else {}), **told}))

    def save(self, path):
        return path

    def load(self, path): ...
'''
RUN = f"""{RUN_ONE}
examined = sum(one.eval_seconds for one in case.rounds)
print(noted["labels"] - begun.at, noted["labels"] - noted["called"], noted["boxes"], examined, time.time() - begun.at)
"""

CLASSES = 80
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules: [{type: basemodel, name: Boxes, url: ./plugin.py}]
"""


def coco(data: Path, train: int, test: int) -> str:
    """Two json files in COCO's layout, and their pictures."""
    draws = np.random.default_rng(0)
    for seed, (part, count) in enumerate((("train", train), ("test", test))):
        folder = data / part
        folder.mkdir(parents=True)
        names = [folder / f"{index:012d}.png" for index in range(count)]
        links(names, lambda: png(draws.integers(0, 256, (8, 8, 3), np.uint8)), 40)
        truths, _ = generated(count, 1, CLASSES, seed)
        images = [{"id": index, "file_name": name.name, "width": 8, "height": 8} for index, name in enumerate(names)]
        annotations = [
            {"id": index, "image_id": picture, "category_id": label, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for index, (picture, label, box) in enumerate(
                zip(*(truths[key].tolist() for key in ("pictures", "labels", "boxes")), strict=True)
            )
        ]
        kinds = [{"id": index, "name": f"c{index}"} for index in range(CLASSES)]
        told = {"images": images, "annotations": annotations, "categories": kinds}
        (data / f"{part}.json").write_text(json.dumps(told))
    files = ", ".join(f"{part}_annotations: {part}.json, {part}_pictures: {part}" for part in ("train", "test"))
    dataset = f"{{name: coco, root: {data}, {files}}}"
    return f"testenv:\n  dataset: {dataset}\n  scenario: {{name: class-incremental, rounds: 1}}\n  metrics: [AP50]\n"


def rows(folder: Path, share: float) -> Iterator[Row]:
    """What validating takes, and a run of one round, at `share` of its size."""
    (folder / "testenv.yaml").write_text(coco(folder / "data", int(118_000 * share), int(5_000 * share)))
    (folder / "algorithm.yaml").write_text(ALGORITHM)
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "job.yaml").write_text(JOB.format(folder=folder, score="AP50"))
    cost = ianvs("validate", folder / "job.yaml", folder=folder)
    yield Row("boxes of COCO, validate", {"CPU s": cost.seconds, "MB in a process": cost.process / 1e6}, {})
    cost = measured([sys.executable, "-c", RUN, str(folder / "job.yaml")], folder)
    first, handed, boxes, examined, case = map(float, cost.said.splitlines()[-1].split())
    figures = {
        "boxes": boxes,
        "seconds to the labels": first,
        "of them in train()": handed,
        "seconds of two examinations": examined,
        "seconds of the case": case,
        "CPU s": cost.seconds,
        "MB in a process": cost.process / 1e6,
        "MB in the supervisor": cost.first / 1e6,
        "MB in all": cost.tree / 1e6,
    }
    most = 150 + 850 * share  # the supervisor reads the file, too
    limits = {"MB in a process": most, "MB in the supervisor": most}
    yield Row("boxes of COCO, a run of one round", figures, limits)
