"""Tiny data in the layouts that the examples of KubeEdge Ianvs read.

A testenv names files, but not their content. The suffix tells the form; for lines of text, the words in the job's path
and testenv tell the meaning of the lines. Each layout below was derived from the loader of an example.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

_SAMPLES = {"train": 16, "test": 12}
_MOST = {"round": 1, "incremental_rounds": 2, "client_number": 2}
_EPOCHS = re.compile(r"(num_|local_)?(train_)?epochs?")
_DOMAINS = ("front_aachen", "garden_synthia_sim")  # real and simulated, or two places: examples search for these words
_CLASSES = 8
_WIDTH, _HEIGHT = 64, 48  # of images with boxes


_Layout = Callable[[Path, str, str, Generator], Path]
"""Takes (folder, "train" or "test", name of the index file, noise), writes that file and returns its path."""


class UnknownLayoutError(ValueError):
    """The layout of this dataset's samples is unknown."""


def made(
    dataset: Mapping[str, Any], words: str, paradigm: str, folder: Path, draw: int = 0, base: Path | None = None
) -> dict[str, Any]:
    """Return the `dataset` of a testenv, with files of samples that are written below `folder`.

    words: the job's path and the texts of its testenv about the data. draw: the number of the random draw. base: folder
    to which paths in `dataset` are relative; links to the files are put there, since some plugins have fixed paths.
    Raises UnknownLayoutError.
    """
    replaced = dict(dataset)
    for key, written in dataset.items():
        part = key.partition("_")[0]
        if part in _SAMPLES and key.partition("_")[2] in ("url", "index", "data", "data_info"):
            where = folder / str(draw) / part
            where.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng([*part.encode(), draw])
            replaced[key] = str(_layout(str(written), words.lower(), paradigm)(where, part, Path(written).name, noise))
            for start in (
                (base, folder.parent) if base is not None else ()
            ):  # relative to a file, or to where Ianvs runs
                place = start.joinpath(written).parent.resolve()
                if place.is_relative_to(folder.parent.resolve()):
                    _linked(where, place)
    return replaced


def _linked(made_in: Path, place: Path) -> None:
    """Put links to everything in a folder, in place of those of the previous draw; existing files are kept."""
    place.mkdir(parents=True, exist_ok=True)
    for path in made_in.iterdir():
        link = place / path.name
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(path.resolve())


def shrunk(exam: dict[str, Any], algorithms: list[dict[str, Any]]) -> list[str]:
    """Reduce rounds and epochs and change settings that can't work, in place; return the changes in words."""
    changed = []
    for key, most in _MOST.items():
        if exam.get(key, 0) > most:
            exam[key] = most
            changed.append(f"{key} {most}")
    for algorithm in algorithms:
        split = algorithm.get("lifelong_learning_data_setting", {})
        judged = exam.get("model_eval", {}).get("model_metric", {}).get("mode")
        fits = split.get("splitting_method") in ("fwt_splitting", "hard-example_splitting")
        if (
            algorithm["paradigm_type"] == "lifelonglearning"
            and judged in ("no-inference", "hard-example-mining")
            and not fits
        ):
            algorithm["lifelong_learning_data_setting"] = {**split, "splitting_method": "fwt_splitting"}
            changed.append("splitting_method fwt_splitting, since the one written makes too few parts")
        grids = [grid for module in algorithm["modules"] for grid in module.get("hyperparameters") or []]
        for name, given in ((name, given) for grid in grids for name, given in grid.items()):
            if _EPOCHS.fullmatch(name) and given["values"] != [1]:
                given["values"] = [1]
                changed.append(f"{name} 1")
    return list(dict.fromkeys(changed))


def _layout(written: str, words: str, paradigm: str) -> _Layout:
    suffix = Path(written).suffix
    if suffix == ".jsonl":
        return _questions
    if Path(written).name == "metadata.json":
        return _described_questions
    for pattern, suffixes, layout in _LAYOUTS:
        if suffix in suffixes and re.search(pattern, words):
            return layout
    short = "/".join(Path(written).parts[-2:])
    raise UnknownLayoutError(f"how the samples of {short} are laid out is not known to `ianvs examples` ({paradigm})")


def _questions(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """Write lines of {question, answer, ...}; each answer is a letter, so a random guess is sometimes right."""
    other = ("instruction", "context", "level_1_dim", "level_2_dim")
    return _records(folder / name, part, noise, "question", "answer", dict.fromkeys(other, "letters"))


def _described_questions(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """Write metadata.json, and beside it data.jsonl with {query, response, ...}.

    A judge that repeats its prompt (tiny_weights.py) then gives the number of points in that prompt.
    """
    about = {"dataset": "letters", "description": "tiny", "level_1_dim": "single-modal", "level_2_dim": "text"}
    other = {
        "prompt": "Answer with one letter. ",
        "judge_prompt": "'Overall Points': {0}, 'Composite score': {0}. ",
        **dict.fromkeys(("explanation", "level_3_dim", "level_4_dim"), "letters"),
    }
    _records(folder / "data.jsonl", part, noise, "query", "response", other)
    return _lines(folder / name, [json.dumps(about)])


def _records(file: Path, part: str, noise: Generator, asks: str, answers: str, other: Mapping[str, str]) -> Path:
    """Write a line for each question: the question under the key `asks`, the letter under `answers`, and `other`.

    Some letters are right more often than others, so a constant guess has a different score in each draw. The same
    holds for an answer that repeats the question, as some questions list the letters. In `other`, {0} is a random
    number from 1 to 100 for each question.
    """
    places = noise.choice(4, _SAMPLES[part], p=noise.dirichlet(np.ones(4)))
    points = noise.integers(1, 101, _SAMPLES[part])
    choices = np.where(noise.random(_SAMPLES[part]) < noise.random(), " A, B, C or D?", "")
    records = [
        {
            asks: f"{number}. Which letter comes {n} places after A?{choices[number]}",
            answers: "ABCD"[n],
            **{key: text.format(points[number]) for key, text in other.items()},
        }
        for number, n in enumerate(places)
    ]
    return _lines(file, map(json.dumps, records))


def _arrays(folder: Path, part: str, name: str, noise: Generator, classes: int = 20) -> Path:
    """Write `pictures_of_a_class.npy<tab>class`: (N, 32, 32, 3) uint8 each, of `classes` classes.

    As with questions, test sets have more of some classes than of others: one to three files. Training sets have enough
    of each class for two clients, to which they are distributed.
    """
    lines = []
    for label in range(classes):
        tone = np.array([label % 5, label // 5 % 5, label // 25]) * 60
        for n in range(1 if part == "train" else 1 + int(noise.integers(3))):
            pictures = np.clip(tone + noise.normal(0, 10, (16 if part == "train" else 1, 32, 32, 3)), 0, 255)
            file = folder / f"class_{label}_{n}.npy"
            np.save(file, pictures.astype(np.uint8))
            lines.append(f"{file}\t{label}")
    return _lines(folder / name, lines)


def _segmentation(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`picture label`: png of 192 x 96; the mask has a class number in each pixel, 255 where there is none.

    Three in each of two rounds: examples train on crops of 768 x 768, which takes a core seconds for each.
    """

    def pair(n: int) -> tuple[Path, Path]:
        below = folder / _DOMAINS[n % 2]
        below.mkdir(exist_ok=True)
        label = np.kron(noise.integers(0, _CLASSES, (3, 6)), np.ones((32, 32), int)).astype(np.uint8)
        tones = np.stack([label * 30.0, 255 - label * 25.0, label * 67.0 % 256], axis=-1)
        picture = _picture(below / f"{n:06}.png", tones + noise.normal(0, 10, tones.shape))
        return picture, _picture(below / f"{n:06}TrainIds.png", label)

    return _index(folder / name, {"train": 6, "test": 2}[part], pair)


def _persons(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`picture identity`: jpg of 64 x 128 of eight persons."""

    def pair(n: int) -> tuple[Path, int]:
        person = n % 8
        tones = np.array([person * 30, 255 - person * 30, 90]) + noise.normal(0, 10, (128, 64, 3))
        return _picture(folder / f"{person:04}_c1_{n:06}.jpg", tones), person

    return _index(folder / name, _SAMPLES[part], pair)


def _boxes(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`picture labels` in YOLO's form, of 640 x 480: the size that examples' metrics assume.

    Training samples fill more than one batch of 32: ultralytics takes its first step at a learning rate of 0.
    """

    def pair(n: int) -> tuple[Path, Path]:
        return _yolo(folder / "images" / part / f"{n:06}.png", folder / "labels" / part / f"{n:06}.txt", n, noise)

    return _index(folder / name, 40 if part == "train" else _SAMPLES[part], pair)


def _yolo(picture: Path, labels: Path, n: int, noise: Generator) -> tuple[Path, Path]:
    """Return a text file with a line `class x y width height` for each box: centre and size are shares of the
    picture's.
    """
    _, boxes = _boxed(picture, n, noise, scale=10)
    lines = [f"0 {(x + w / 2) / _WIDTH} {(y + h / 2) / _HEIGHT} {w / _WIDTH} {h / _HEIGHT}" for x, y, w, h in boxes]
    labels.parent.mkdir(parents=True, exist_ok=True)
    return picture, _lines(labels, lines)


def _frames(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """Return an image a line, of one episode of a robot: labels in YOLO's form, depth in metres, and masks of its
    objects.
    """
    episode = folder / "episodes" / "episode_001_ram"

    def frame(n: int) -> Path:
        stem = f"frame_{n:04}_CAM_TopView"
        picture, _ = _yolo(episode / f"images/rgb/{stem}.png", episode / f"labels/rgb/{stem}.txt", n, noise)
        for kind in ("depth", "segmentation"):
            (episode / "images" / kind).mkdir(exist_ok=True)
        np.save(episode / f"images/depth/{stem}.npy", noise.uniform(1.5, 2.5, (480, 640)).astype(np.float32))
        _picture(episode / f"images/segmentation/{stem}.png", np.zeros((480, 640)))
        return picture

    return _lines(folder / name, map(str, map(frame, range({"train": 6, "test": 10}[part]))))


def _instructions(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`instruction number`: names of a robot's tasks, whose episodes its simulator has."""
    return _lines(
        folder / name, (f"put_the_spot_on_place_{n} {int(noise.integers(10))}" for n in range(_SAMPLES[part]))
    )


def _voc(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`picture annotation` in PASCAL VOC's form: an xml file with the corners of each box."""

    def pair(n: int) -> tuple[Path, Path]:
        picture, boxes = _boxed(folder / f"{n:06}.jpg", n, noise)
        corners = [f"<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax>" for x, y, w, h in boxes]
        objects = [f"<object><name>spot</name><bndbox>{corner}</bndbox></object>" for corner in corners]
        size = f"<size><width>{_WIDTH}</width><height>{_HEIGHT}</height><depth>3</depth></size>"
        return picture, _lines(folder / f"{n:06}.xml", [f"<annotation>{size}", *objects, "</annotation>"])

    return _index(folder / name, _SAMPLES[part], pair)


def _coco(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """One json in COCO's form: images that are frames of a video, and boxes that are of one track or two."""
    images: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for n in range(_SAMPLES[part]):
        picture, corners = _boxed(folder / f"{n:06}.jpg", n, noise)
        frame = {"id": n + 1, "frame_id": n + 1, "video_id": 1, "width": _WIDTH, "height": _HEIGHT}
        images.append({**frame, "file_name": str(picture)})
        for track, (x, y, w, h) in enumerate(corners, 1):
            about = {"id": len(boxes) + 1, "image_id": n + 1, "category_id": 1, "iscrowd": 0, "track_id": track}
            boxes.append({**about, "bbox": [x, y, w, h], "area": w * h})
    kinds = [{"id": 1, "name": "spot"}]
    videos = [{"id": 1, "file_name": "video"}]
    whole = {"images": images, "annotations": boxes, "categories": kinds, "videos": videos}
    return _lines(folder / name, [json.dumps(whole)])


def _boxed(file: Path, n: int, noise: Generator, scale: int = 1) -> tuple[Path, list[tuple[int, int, int, int]]]:
    """Return an image with a bright spot, or two in every second, and (x, y, width, height) of each in pixels.

    scale: pixels of the image for each, in both directions.
    """
    values = noise.normal(60, 10, (_HEIGHT, _WIDTH, 3))
    boxes = [(x, int(noise.integers(4, 24)), 24, 20) for x in (4, 36)[: 1 + n % 2]]
    for x, y, w, h in boxes:
        values[y : y + h, x : x + w] = (220, 80, 40)
    file.parent.mkdir(parents=True, exist_ok=True)
    return _picture(file, np.kron(values, np.ones((scale, scale, 1)))), boxes


def _drives(folder: Path, part: str, name: str, noise: Generator) -> Path:
    """`date/drive` of three drives in KITTI's raw form: 12 steps of GPS, IMU and laser points, and the calibration."""
    date = {"train": "2011_09_26", "test": "2011_09_28"}[part]
    turn, away = "1 0 0 0 1 0 0 0 1", "0 0 0"
    moved, camera = f"R: {turn}\nT: {away}", "7 0 6 0 0 7 2 0 0 0 1 0"
    cameras = "\n".join(f"P_rect_0{n}: {camera}\nR_rect_0{n}: {turn}" for n in range(4))
    drives = [f"{date}/{date}_drive_000{n}_sync" for n in range(3)]
    for drive in drives:
        for kind in ("oxts/data", "velodyne_points/data"):
            (folder / drive / kind).mkdir(parents=True, exist_ok=True)
        _lines(folder / drive / "oxts/timestamps.txt", (f"2011-09-26 13:02:25.{n:02}0000000" for n in range(12)))
        for n in range(12):
            place = f"{49 + n * 1e-5} {8 + n * 1e-5} 110 0 0 0"
            moves = " ".join(f"{value:.4f}" for value in noise.normal(0, 1, 17))
            _lines(folder / drive / f"oxts/data/{n:010}.txt", [f"{place} {moves} 0.1 0.1 4 8 4 4 6"])
            points = noise.normal(0, 5, (50, 4)).astype(np.float32)
            points.tofile(folder / drive / f"velodyne_points/data/{n:010}.bin")
    for calibration, text in (("imu_to_velo", moved), ("velo_to_cam", moved), ("cam_to_cam", cameras)):
        _lines(folder / date / f"calib_{calibration}.txt", [text])
    return _lines(folder / name, drives)


_LAYOUTS: tuple[tuple[str, tuple[str, ...], _Layout], ...] = (
    ("cifar100/federated_learning", (".txt",), partial(_arrays, classes=100)),  # its network is for 100, seen or not
    ("cifar", (".txt",), _arrays),
    (r"segment|cityscapes|synthia|curb|mdil|cloud.?robot|bdd|/robot", (".txt",), _segmentation),
    (r"/reid/|imagenet", (".txt",), _persons),
    (r"yolo|palletizing", (".txt",), _boxes),
    (r"deformable", (".txt",), _frames),
    (r"vla_finetune", (".txt",), _instructions),
    (r"llio|kitti", (".txt",), _drives),
    (r"pcb-aoi", (".txt",), _voc),
    (r"mot17|yaoba", (".json",), _coco),
    (r"gpqa|mmlu|llm-agent", (".json",), _questions),
)
"""(words, suffixes, who makes it), the first that fits: a further layout is a line and a function."""


def _picture(file: Path, values: NDArray[Any]) -> Path:
    Image.fromarray(np.clip(values, 0, 255).astype(np.uint8)).save(file)
    return file


def _index(file: Path, count: int, pair: Callable[[int], tuple[object, object]]) -> Path:
    """Return a line `sample label` of each of `count` samples."""
    return _lines(file, (" ".join(map(str, pair(n))) for n in range(count)))


def _lines(file: Path, lines: Iterable[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file
