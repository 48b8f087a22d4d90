"""Index files: one sample per line, its path first and its label last."""

import glob
import gzip
import os
import re
import shlex
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, one_line, shown_path
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.listing import Listing, SourceError, column, data_warning, numbered_names, summary

_READ_WHOLE = 1 << 22  # bytes
_LOOKED_AT = 100  # lines that decide whether a file is a table
_SHORT = 32  # labels up to this length are likely to repeat
Lines = Sequence[int] | NDArray[np.int64]  # lines of samples in a file; 0 without lines

COMPRESSED = (".gz", ".zst")
"""Suffixes of compressed text files, which are read directly: a.jsonl.gz is a .jsonl."""
WITH_FIELDS = (".csv", ".tsv", ".json", ".jsonl")
LISTS = (".txt", ".lst", "")  # suffixes of text indices

PICTURE_SUFFIXES = (".png", ".bmp", ".tif", ".tiff", ".jpg", ".jpeg", ".gif", ".webp", ".ppm", ".pgm")

LABEL_SUFFIXES = (*PICTURE_SUFFIXES, ".npy")
"""Suffixes of files of segmentation masks."""

_OTHER_SUFFIXES = (
    *(".mat", ".npz", ".pt", ".pth", ".pkl", ".pickle", ".h5", ".hdf5", ".nc", ".zarr", ".tfrecord", ".parquet"),
    *(".nii", ".nii.gz", ".nrrd", ".mha", ".mhd", ".dcm", ".svs", ".geojson", ".shp", ".las", ".ply", ".pcd", ".bin"),
    *(".txt", ".json", ".jsonl", ".xml", ".csv", ".tsv", ".yaml", ".yml", ".svg", ".psd", ".xcf", ".jp2", ".exr"),
    *(".hdr", ".heic", ".avif", ".tga", ".dds", ".gz", ".zip", ".tar"),
)
"""Suffixes of files that are no labels: a label with such a suffix is a path, not the name of a class."""

_WITH_COMMA = re.compile(
    rf"""\s*("?[^"]+({"|".join(map(re.escape, PICTURE_SUFFIXES))})"?)\s*[,;]\s*([^,;\t]+?)\s*""", re.IGNORECASE
)
"""An image and its label in a list, separated as in a csv."""

_SEPARATED = re.compile(r'[",;\t]')
"""In a line whose words are not simply separated by blanks."""

_ODD = re.compile(r"\\|//|/\.|^[./]|/\Z" if os.sep == "/" else "")
"""In a path that is not a normalized one below a folder."""

_OF_INDEX = (
    "Paths are relative to `root` or to the index file; a path with blanks needs double quotes, or tabs between the "
    "columns."
)


def read_lines(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """Read a text index: `path [more inputs ...] label` on each line, separated by tabs, or by blanks outside double
    quotes.

    A line `picture.png,label` is split at its comma.
    """
    samples: list[str] = []
    labels: list[str] = []
    lines = array("q")
    problems: list[ValidationError] = []
    comments: list[int] = []
    for number, text in enumerate(text_lines(path), start=1):
        if not text or text.isspace():  # `strip` would copy a large file
            continue
        if text.startswith("#") and _is_comment(text):
            comments.append(number)
            continue
        try:
            tokens = _tokens(text) if _SEPARATED.search(text) else text.split()
        except ValueError:
            problems.append(
                ValidationError(
                    "a double quote is opened and never closed.",
                    Location(path, number, 1),
                    code="invalid-record",
                )
            )
            continue
        if len(tokens) < 2:
            message = f"expected a sample's path and its label, found only '{text.strip()}'. Write both on one line."
            problems.append(ValidationError(message, Location(path, number, 1), code="invalid-record"))
            continue
        samples.append(tokens[0])
        labels.append(sys.intern(tokens[-1]) if len(tokens[-1]) < _SHORT else tokens[-1])
        lines.append(number)
    if not any(sample.lower().endswith(PICTURE_SUFFIXES) for sample in samples[:_LOOKED_AT]):
        _refuse_table(path, samples)
    if problems:
        raise SourceError(summary(problems))
    if not samples:
        raise SourceError.single("is empty; expected at least one sample.", Location(path), "empty-dataset")
    listing = files_listing(path, spec, samples, labels, lines, [""] * len(samples))
    if not comments:
        return listing
    count = "a line that begins" if len(comments) == 1 else f"{len(comments)} lines that begin"
    message = f"{count} with # {'is' if len(comments) == 1 else 'are'} left out as a comment. Nothing has to be done."
    return listing.noted([data_warning(message, Location(path, comments[0], 1))])


def _is_comment(text: str) -> bool:
    """Return whether a line that begins with # is a comment: no sample may begin so but the path of an image."""
    first = text.split(maxsplit=1)[0]
    return first == "#" or not any(end in text.lower() for end in PICTURE_SUFFIXES)


def _refuse_table(path: Path, samples: Sequence[str]) -> None:
    """Raise SourceError if the lines are rows of a table with a delimiter, and none begins with a file."""
    first = list(islice((text for text in text_lines(path) if text.strip()), _LOOKED_AT))
    for mark, noun, suffix in (("\t", "tabs", ".tsv"), (",", "commas", ".csv"), (";", "semicolons", ".csv")):
        counts = {text.count(mark) for text in first}
        if len(counts) == 1 and 0 not in counts and not (samples and Path(path.parent, samples[-1]).is_file()):
            message = (
                f"its lines seem to be rows of a table with {noun} between the cells; a {path.suffix or 'file'} is "
                f"read as an index, with the path of an image and its label on each line. Call the file "
                f"{path.stem}{suffix}, and give it as `train_data` or `test_data`."
            )
            raise SourceError.single(message, Location(path, 1, 1), "wrong-path-type")


def suffix_of(path: Path) -> str:
    """Return the suffix that determines a file's format, in lower case: ".jsonl" of a.jsonl and of a.JSONL.gz."""
    inner = Path(path.stem).suffix.lower()
    return inner if path.suffix.lower() in COMPRESSED and inner in (*WITH_FIELDS, *LISTS[:2]) else path.suffix.lower()


def stem_of(path: Path) -> str:
    """Return a file's name without `suffix_of` and the suffix of its compression."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSED else path.stem


def read_text(path: Path) -> str:
    """Return the content of a text file. Raises SourceError if it is empty, unreadable or not UTF-8."""
    try:
        packed = path.suffix.lower() in COMPRESSED
        text = _unpacked(path).decode("utf-8-sig") if packed else path.read_text(encoding="utf-8-sig")
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not text or text.isspace():  # `strip` would copy a large file
        raise SourceError.single("is empty; expected at least one sample.", Location(path), "empty-dataset")
    return text


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file. Raises SourceError as `read_text`."""
    if path.suffix.lower() in COMPRESSED or (path.is_file() and path.stat().st_size < _READ_WHOLE):
        yield from read_text(path).splitlines()
        return
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                yield from line.splitlines()
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None


def _unpacked(path: Path) -> bytes:
    if path.suffix.lower() == ".gz":
        return gzip.decompress(path.read_bytes())
    try:
        import pyarrow
    except ImportError:
        message = "is compressed by zstd, which pyarrow unpacks: pip install 'ianvs-bench[parquet]', or `zstd -d` it."
        raise SourceError.single(message, Location(path), "missing-package") from None
    with pyarrow.input_stream(str(path), compression="zstd") as file:
        unpacked: bytes = file.read()
    return unpacked


_UNREADABLE = (UnicodeDecodeError, OSError, EOFError, zlib.error)


def _unreadable(path: Path, error: Exception) -> SourceError:
    if isinstance(error, UnicodeDecodeError):
        message = f"is not a text file in UTF-8 (byte {error.start} is not). Save it as UTF-8."
        return SourceError.single(message, Location(path), "invalid-encoding")
    # Errors without a number come from compressed files.
    why = getattr(error, "strerror", None) or f"it is not whole, or not compressed as '{path.suffix}' says"
    return SourceError.single(f"can't be read: {why}.", Location(path), "unreadable-data")


def files_listing(
    path: Path,
    spec: DatasetSpec,
    samples: Sequence[str],
    labels: Sequence[str],
    lines: Lines,
    domains: Sequence[str],
    remedy: str = _OF_INDEX,
) -> Listing:
    """List image files. A label is the path of a mask only if it has such a suffix. remedy: for a missing file.

    Raises SourceError, with lines, for missing files, and for labels that are paths of other files, unless the dataset
    has a data type, which reads its labels itself.
    """
    pictures = [label.lower().endswith(LABEL_SUFFIXES) for label in labels]
    if any(pictures) and not all(pictures):
        odd = pictures.index(not pictures[0])
        kinds = ["the path of an image" if picture else "a class" for picture in pictures[odd - 1 : odd + 1]]
        message = (
            f"the label '{labels[odd]}' is {kinds[1]}, the label before it, '{labels[odd - 1]}', is {kinds[0]}. "
            "All labels of a file are of one kind."
        )
        raise SourceError.single(message, Location.of_line(path, lines[odd]), "mismatched-data")
    bases = [os.path.normpath(base) for base in (spec.root, path.parent) if base is not None]
    like_paths = {label for label in set(labels) if "." in label or "/" in label or "\\" in label}
    if spec.data_type is None and not any(pictures) and like_paths:
        _refuse_files(labels, like_paths, bases, path, lines)
    paths = [_existing_file(name, bases) for name in samples]
    targets = [_existing_file(name, bases) for name in labels] if all(pictures) else list(labels)
    problems: list[ValidationError] = []
    for noun, written, files in (("image", samples, paths), ("mask", labels, targets)):
        if lost := [i for i, file in enumerate(files) if file is None]:
            looked = " and in ".join(map(shown_path, bases))
            message = (
                f"{len(lost)} of {len(files)} {noun}s can't be found: {one_line([written[i] for i in lost], 3)}. "
                f"Looked in {looked}. {_found_below(written[lost[0]], bases) or remedy}"
            )
            problems.append(ValidationError(message, Location.of_line(path, lines[lost[0]]), code="missing-file"))
    if problems:
        raise SourceError(problems)
    files_column = np.array(paths, dtype=object)
    return Listing(
        form="files",
        x=files_column,
        label_form="files" if all(pictures) else "class",
        y=np.array(targets, dtype=object),
        ids=np.array([_name(name, bases) if _ODD.search(name) else name for name in samples], dtype=str),
        domains=np.array(domains, dtype=object),
        sources=(path,),
        lines=np.array(lines, dtype=np.int64),
        given=files_column,
    )


def _found_below(written: str, bases: Sequence[str]) -> str:
    """Return the remedy if a missing file is in a folder below one of `bases`: a list beside a folder of images."""
    if _ODD.search(written):
        return ""
    image = next((path for base in bases for path in sorted(Path(base).glob(f"*/{glob.escape(written)}"))), None)
    if image is None:
        return ""
    folder = Path(*image.parts[: -len(PurePath(written).parts)])
    return f"{shown_path(image)} is there: write the folder in each path, {folder.name}/{written}."


def rows_listing(
    path: Path, lines: Lines, form: str, x: NDArray[Any], label_form: str, labels: NDArray[Any], domains: Sequence[str]
) -> Listing:
    """List samples that are in the table itself; their names are their row numbers."""
    return Listing(
        form=form,
        x=x,
        label_form=label_form,
        y=labels,
        ids=numbered_names(stem_of(path), len(lines)),
        domains=column(domains),
        sources=(path,),
        lines=np.asarray(lines, dtype=np.int64),
    )


def _refuse_files(labels: Sequence[str], like_paths: set[str], bases: Sequence[str], path: Path, lines: Lines) -> None:
    """Raise SourceError if labels are paths of files that can't be labels. like_paths: those that may be paths."""
    wrong = {label for label in like_paths if label.lower().endswith(_OTHER_SUFFIXES)}
    # Others are paths only if there is such a file: a class may be called "v1.0" or "cat/tabby".
    wrong |= {
        label
        for label in like_paths - wrong
        if label.strip() and ("/" in label or "\\" in label or "." in label.strip("."))
        if _existing_file(label, bases) is not None
    }
    if not wrong:
        return
    rows = [row for row, label in enumerate(labels) if label in wrong]
    message = (
        f"the label '{labels[rows[0]]}' is the path of a file that no label is read from ({len(rows)} of {len(labels)} "
        f"labels are). A label is a class, or the path of a mask with {one_line(LABEL_SUFFIXES)}. "
        "Convert the files, or read them in a dataset of your own (`url`)."
    )
    raise SourceError.single(message, Location.of_line(path, lines[rows[0]]), "wrong-path-type")


def _tokens(text: str) -> list[str]:
    if ("," in text or ";" in text) and (parted := _WITH_COMMA.fullmatch(text)) is not None:
        return [parted[1].strip(' "'), parted[3].strip(' "')]
    if "\t" in text:
        return [token.strip() for token in text.split("\t") if token.strip()]
    if '"' not in text:
        return text.split()
    # Not shlex.split: a backslash and an apostrophe are ordinary characters of a file name.
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.quotes, lexer.escape, lexer.commenters = '"', "", ""
    return list(lexer)


def _existing_file(written: str, bases: Sequence[str]) -> str | None:
    plain = not _ODD.search(written)
    for base in bases:  # there may be many, and Path is slow
        candidate = f"{base}/{written}" if plain else os.path.normpath(os.path.join(base, written))  # noqa: PTH118
        if os.path.isfile(candidate):  # noqa: PTH113
            return candidate
    if os.sep == "/" and "\\" in written:  # as Windows writes it
        return _existing_file(written.replace("\\", "/"), bases)
    return None


def _name(written: str, bases: Sequence[str]) -> str:
    """Return a name that stays the same if the data move to another folder, as far as the index allows."""
    pure = PurePath(written.replace("\\", "/"))
    for base in bases:
        if pure.is_absolute() and pure.is_relative_to(base):
            pure = pure.relative_to(base)
    return pure.as_posix()
