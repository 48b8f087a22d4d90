"""Guesses about unknown data for `ianvs new job --data`, and errors for data whose form must be written by hand."""

import csv
from collections import Counter
from pathlib import Path

from ianvs.base.errors import IanvsError, one_line, shown_path
from ianvs.base.split_words import role_of
from ianvs.exam.data import SourceError
from ianvs.exam.data.cells import is_number
from ianvs.exam.data.csv_headers import csv_header, delimiter_of, header_of
from ianvs.exam.data.grids import DOMAIN_COLUMN, LABEL_COLUMNS
from ianvs.exam.data.index import PICTURE_SUFFIXES, suffix_of, text_lines
from ianvs.exam.data.listing import Listing
from ianvs.exam.data.split_columns import SPLIT_COLUMNS

_IMAGES = {"image", "images", "img", "imgs", "jpegimages", "rgb"}
_MASKS = {"mask", "masks", "segmentation", "segmentations", "segmentationclass", "gt", "gtfine"}
_ANNOTATIONS = {"labels", "label", "annotation", "annotations", "boxes", "bbox", "bboxes"}
_LOOKED_AT = 200  # rows of a table that are read to guess the label's column
_TOO_FEW_TO_JUDGE = 10  # with so few samples, many classes do not suggest that labels are numbers
_OTHER_JOB = (
    "Such a job begins with a copy of one that ships: `ianvs list jobs`, and `ianvs new job NAME --from JOB`; "
    "docs/data_types.md has the keys of the dataset."
)


def refuse_annotated_images(data: Path) -> None:
    """Raise IanvsError for folders of images beside folders of masks or boxes: such folders are not classes."""
    folders = [path for path in data.glob("*") if path.is_dir()]
    folders += [path for folder in folders for path in folder.glob("*") if path.is_dir()]
    names = {path.name.casefold(): path.name for path in folders}
    images, others = sorted(names.keys() & _IMAGES), sorted(names.keys() & (_MASKS | _ANNOTATIONS))
    if not images or not others:
        return
    masks = bool(names.keys() & _MASKS)
    contents = "images and segmentation masks" if masks else "images and annotations"
    index = (
        f" Write an index with a line `{names[images[0]]}/a.png {names[others[0]]}/a.png` for each image, for "
        "`train_index`, and another for `test_index`."
    )
    raise IanvsError(
        f"the folders {names[images[0]]} and {names[others[0]]} of {shown_path(data)} seem to hold {contents}, and are "
        f"no classes.{index if masks else ''} {_OTHER_JOB} If the folders are classes, rename them.",
        code="mismatched-data",
    )


def guessed_label(data: Path) -> str | None:
    """Return the name of the label's column in a csv file whose header does not tell: the only column without numbers.

    None if there is not exactly one, or for other files.
    """
    if suffix_of(data) not in (".csv", ".tsv"):
        return None
    try:
        columns = csv_header(data)
        header = header_of(data)
        lines = [text for text, _ in zip(text_lines(data), range(_LOOKED_AT), strict=False) if text != header]
    except SourceError:
        return None
    if {name.casefold() for name in columns} & {*LABEL_COLUMNS}:
        return None
    rows = [row for row in csv.reader(lines, delimiter=delimiter_of(data, header)) if len(row) == len(columns)]
    reserved = (*SPLIT_COLUMNS, DOMAIN_COLUMN)
    texts = [
        name
        for name, cells in zip(columns, zip(*rows, strict=True), strict=False)
        if name.casefold() not in reserved and not any(is_number(cell.replace(",", ".")) for cell in cells)
    ]
    return (
        texts[0]
        if len(texts) == 1 and Counter(row[columns.index(texts[0])] for row in rows).most_common(1)[0][1] > 1
        else None
    )


def require_classes(data: Path, train: Listing) -> None:
    """Raise IanvsError if the labels are not classes, or if there is only one class."""
    if train.label_form != "class":
        raise IanvsError(f"the labels of {shown_path(data)} are no classes. {_OTHER_JOB}", code="mismatched-data")
    names = sorted({*map(str, train.y.tolist())})
    if len(names) == 1:
        remedy = "Give a folder for each class" if data.is_dir() else "Give each sample the name of its class"
        raise IanvsError(
            f"all {len(train)} training samples of {shown_path(data)} are of one class, {names[0]}; methods learn two "
            f"or more. {remedy}.{table_hint(data)}",
            code="mismatched-data",
        )
    numbers = all(map(is_number, names))
    fractions = numbers and any(not float(name).is_integer() for name in names)
    many = len(train) > _TOO_FEW_TO_JUDGE and 2 * len(names) > len(train)
    if fractions or many:
        noun = "numbers" if numbers else "names"
        remedy = (
            "Numbers to be estimated are of the data type regression: copy the job with one, `ianvs new job NAME "
            "--from regression_stream`, and write `data_type: regression` and the path in the dataset of its testenv."
            if numbers
            else "Write the name of a class there, which several samples share."
        )
        raise IanvsError(
            f"the labels of {shown_path(data)} are {len(names)} different {noun} for {len(train)} training samples, "
            f"such as {one_line(names, 3)}: they are no classes. {remedy}",
            code="mismatched-data",
        )


def inner_folder(data: Path) -> Path:
    """Return the folder that holds the class folders: `data`, or the only folder in it if that has several folders."""
    shown = [path for path in data.iterdir() if not path.name.startswith(".")]
    folders = [path for path in shown if path.is_dir()]
    others = [path for path in shown if path.suffix.lower() in (*PICTURE_SUFFIXES, ".csv", ".tsv", ".json", ".jsonl")]
    if len(folders) != 1 or others or sum(path.is_dir() for path in folders[0].iterdir()) < 2:
        return data
    return inner_folder(folders[0])


def has_parts(data: Path) -> bool:
    """Return whether a folder holds folders or files called train and test, or validation."""
    roles = {role_of(path.name.partition(".")[0]) for path in data.iterdir()}
    return "train" in roles and len(roles & {"test", "validation"}) > 0


def table_hint(data: Path) -> str:
    """Return a sentence that a table in the folder may list the samples; "" if there is no table."""
    tables = sorted(path for path in data.glob("*") if path.suffix.lower() in (".csv", ".tsv")) if data.is_dir() else []
    return (
        f" {tables[0].name} may list the images with their classes: give it, `--data {shown_path(tables[0])}`."
        if tables
        else ""
    )
