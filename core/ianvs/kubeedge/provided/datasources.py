"""Parsed files in the form that plugins get: paths and words, nothing decoded."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError
from ianvs.kubeedge.provided.class_factory import ClassFactory, ClassType
from ianvs.kubeedge.provided.file_ops import FileOps

if TYPE_CHECKING:
    import pandas as pd

# The classes of sedna.datasources.
__all__ = ["BaseDataSource", "CSVDataParse", "JSONDataParse", "JSONMetaDataParse", "JsonlDataParse", "TxtDataParse"]

T = TypeVar("T")


def as_array(values: Sequence[object]) -> NDArray[Any]:
    """Return a numpy array of `values`; of objects if they differ in length."""
    try:
        return np.array(values)
    except ValueError:
        array = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):
            array[i] = value
        return array


class BaseDataSource:
    """Samples `x` with their labels `y`; plugins may assign both.

    inx: for a part of a source that belongs to one task, the positions of its samples in the whole.
    """

    x: Any
    y: Any
    meta_attr: Any
    inx: list[int]

    def __init__(self, data_type: str = "train", func: Callable[..., Any] | str | None = None) -> None:
        self.data_type = data_type
        self.process_func = ClassFactory.get_cls(ClassType.CALLBACK, func)() if isinstance(func, str) else func
        self.x = self.y = self.meta_attr = None

    def num_examples(self) -> int:
        return len(self.x)

    def __len__(self) -> int:
        return self.num_examples()

    @property
    def is_test_data(self) -> bool:
        """Whether labels are left out."""
        return self.data_type == "test"

    def parse(self, *args: str | Path, **kwargs: Any) -> None:
        """Read files into `x` and `y`."""
        raise NotImplementedError

    def save(self, output: str = "") -> str:
        """Pickle this source to a file, and return its path."""
        return FileOps.dump(self, output or None)


def _lines(file: str | Path) -> Iterator[tuple[int, str]]:
    """Yield stripped, non-empty lines with their numbers; nothing for a missing file."""
    if file and Path(file).exists():
        for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
            if line.strip():
                yield number, line.strip()


def records(file: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a jsonl file, each with its place. Raises DataError for an invalid line."""
    for number, line in _lines(file):
        place = f"{file}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{place}: this line is not json: {error}.", code="invalid-record") from None
        if not isinstance(record, dict):
            raise DataError(f"{place}: a line has to be a json object, such as {{...}}.", code="invalid-record")
        yield place, record


def _value(record: Mapping[str, T], key: str, place: str) -> T:
    if key not in record:
        raise DataError(
            f"{place}: there is no '{key}'; the keys are {', '.join(map(repr, record))}.", code="invalid-record"
        )
    return record[key]


class TxtDataParse(BaseDataSource):
    """A text file of lines `path label`: `x` and `y` are (N,) arrays of strings.

    With a function for each line, `x` and `y` are the first and the second of its return values.
    """

    def parse(self, *args: str | Path, use_raw: bool | None = None, **_: object) -> None:
        """Read files. use_raw: `x` has all words of each line, and `y` is empty."""
        read = self.process_func or str.split
        x, y = [], []
        for file in args:
            for _number, line in _lines(file):
                words = read(line)
                if len(words):
                    x.append(words if use_raw else words[0])
                    if not use_raw and not self.is_test_data:
                        y.append(words[1] if len(words) > 1 else 0)
        self.x, self.y = as_array(x), as_array(y)


class CSVDataParse(BaseDataSource):
    """A table: `y` is the column `label`, a Series, and `x` a frame of the other columns."""

    def parse(self, *args: str | Path, label: str | None = None, **kwargs: Any) -> None:
        """Read a table. label: None reads no labels. kwargs: for pandas.read_csv.

        Raises DataError for a missing column.
        """
        import pandas as pd

        frames: list[pd.DataFrame] = []
        for file in args:
            if file and Path(file).exists():
                frame = pd.read_csv(file, **kwargs)
                frames.append(self.process_func(frame) if self.process_func else frame)
                if label and label not in frames[-1].columns:
                    columns = ", ".join(map(str, frames[-1].columns))
                    raise DataError(
                        f"{file}: there is no column '{label}' for the label; the columns are {columns}.",
                        code="unknown-column",
                    )
        if frames:
            table = pd.concat(frames)
            self.x, self.y = (table.drop(columns=label), table[label]) if label else (table, None)


class JsonlDataParse(BaseDataSource):
    """A json object in each line: `x` are the questions, `y` the answers."""

    def parse(self, *args: str | Path, **_: object) -> None:
        """Read files. Raises DataError with the line of a missing key."""
        rows = [
            (_value(record, "question", place), _value(record, "answer", place))
            for file in args
            for place, record in records(file)
        ]
        self.x, self.y = as_array([x for x, _ in rows]), as_array([y for _, y in rows])


class JSONMetaDataParse(BaseDataSource):
    """metadata.json, which describes the samples in data.jsonl beside it.

    x: prompt + query, y: response. Further (N,) arrays: explanation, judge_prompts, level_3, level_4.
    """

    need_other_info = True

    def parse(self, *args: str | Path, **_: object) -> None:
        """Read the files. Raises DataError with file and line of a missing key."""
        for file in args:
            if not (file and Path(file).exists()):
                continue
            about = json.loads(Path(file).read_text(encoding="utf-8"))
            self.dataset_name = _value(about, "dataset", str(file))
            for key in ("description", "level_1_dim", "level_2_dim"):
                setattr(self, key, _value(about, key, str(file)))
            vars(self).update({key: about[key] for key in ("level_3_dim", "level_4_dim") if key in about})
            rows = list(records(Path(file).with_name("data.jsonl")))
            self.x = as_array([row.get("prompt", "") + _value(row, "query", place) for place, row in rows])
            self.y = as_array([_value(row, "response", place) for place, row in rows])
            further = ("explanation", "judge_prompt", "level_3_dim", "level_4_dim")
            columns = (as_array([row.get(key, "") for _, row in rows]) for key in further)
            self.explanation, self.judge_prompts, self.level_3, self.level_4 = columns


class JSONDataParse(BaseDataSource):
    """A COCO file; that of a tracking set has the layout of MOT, with -1 for missing values. Needs pycocotools.

    x: a mapping with `annotations`, one for each image: (array (k, 6) of x1, y1, x2, y2, class, track; (height, width,
    frame, video, name); name). y: the files of true tracks below the folder `train`; without any, the arrays.
    """

    def parse(self, *args: str | Path, **_: object) -> None:
        """Read the json file in `args`. Raises DataError without pycocotools."""
        try:
            coco = importlib.import_module("pycocotools.coco")
        except ImportError:
            raise DataError(
                f"{args[0]} needs pycocotools to be read: pip install pycocotools.", code="missing-package"
            ) from None
        path = Path(args[0])
        self.data_dir = path.parents[1] / "train"
        self.coco = coco.COCO(str(path))
        self.ids = self.coco.getImgIds()
        self.class_ids = sorted(self.coco.getCatIds())
        self.annotations = [self._annotation(picture) for picture in self.ids]
        self.x = {name: getattr(self, name) for name in ("data_dir", "coco", "ids", "class_ids", "annotations")}
        self.y = list(self.data_dir.glob("*/gt/gt_val_half.txt")) or [boxes for boxes, _, _ in self.annotations]

    def _annotation(self, picture: int) -> tuple[NDArray[np.float64], tuple[object, ...], str]:
        about = self.coco.loadImgs(picture)[0]
        boxes = []
        for box in self.coco.loadAnns(self.coco.getAnnIds(imgIds=[int(picture)], iscrowd=False)):
            x, y, width, height = box["bbox"]
            if box["area"] > 0 and width >= 0 and height >= 0:
                boxes.append(
                    [x, y, x + width, y + height, self.class_ids.index(box["category_id"]), box.get("track_id", -1)]
                )
        name = about.get("file_name") or f"{picture:012}.jpg"
        frame = (about["height"], about["width"], about.get("frame_id", -1), about.get("video_id", -1), name)
        return np.array(boxes, dtype=float).reshape(-1, 6), frame, name
