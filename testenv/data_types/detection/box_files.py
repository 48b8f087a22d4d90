"""Functions shared by the readers of box files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import DataError, Location, shown_path
from ianvs.base.tool_files import is_of_tool
from ianvs.exam.data.listing import SourceError

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"))


Size = tuple[float, float]  # width, height, in pixels

_ORIENTATION = 0x0112  # EXIF's tag: 1 is upright, 5 to 8 swap width and height
_STORED_AS_IS = ("JPEG", "MPO", "PNG", "WEBP")  # formats whose images Pillow does not rotate automatically


class PictureHead(NamedTuple):
    """Facts from the header of an image file. size: (width, height) of the stored pixels."""

    size: Size
    orientation: int


class BoxFiles(NamedTuple):
    """Images by path, a label for each in the form of `checked_labels`, and names of the classes."""

    pictures: list[Path]
    labels: Sequence[Mapping[str, Any]]
    classes: tuple[str, ...]
    sizes: Sequence[Size | None] = ()  # (width, height) of each image according to the box files; (): unknown
    # Location of a box; None: that of its image.
    place: Callable[[int, int | None], Location] = lambda picture, box: Location(Path())


def refusal(file: Path, line: int, message: str, code: ErrorCode = "invalid-record") -> SourceError:
    """Return an error at a line (from 1); 0 means the file as a whole."""
    return SourceError.single(message, Location.of_line(file, line), code)


def text_of(file: Path) -> str:
    """Return the text of a file. Raises DataError if it is missing or not UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise refusal(file, 0, "the file is not UTF-8 text. Save it as UTF-8.", "invalid-encoding") from None
    except OSError as error:
        code: ErrorCode = "missing-file" if isinstance(error, FileNotFoundError) else "unreadable-file"
        raise refusal(file, 0, f"the file can't be read: {error.strerror}.", code) from None


def picture_head(path: Path) -> PictureHead:
    """Return the header facts of an image. Raises DataError if it is not an image."""
    from PIL import Image

    try:
        with Image.open(path) as image:  # reads only the header of the file
            tagged = image.format in _STORED_AS_IS and "exif" in image.info
            return PictureHead(image.size, _orientation(image) if tagged else 1)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise DataError(
            f"{shown_path(path)} can't be read as an image. Replace or remove it.", code="unreadable-file"
        ) from None


def _orientation(image: Any) -> int:
    try:
        tag = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # a broken block of tags may raise any error; it is ignored
        return 1
    return tag if tag in range(1, 9) else 1


def written_size(width: Any, height: Any) -> Size | None:
    """Return (width, height); None if one is missing, or 0 as some exporters write."""
    try:
        size = float(width), float(height)
    except (TypeError, ValueError):
        return None
    return size if min(size) > 0 else None


def pictures_in(folder: Path) -> dict[str, Path]:
    """Return {name without suffix: path}, sorted. Raises DataError if two names differ only in their suffixes."""
    if not folder.is_dir():
        raise DataError(f"{shown_path(folder)} is no folder; expected one with images.", code="missing-file")
    by_stem: dict[str, Path] = {}
    shown = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and not is_of_tool(path.name))
    for path in sorted(shown):
        if other := by_stem.get(path.stem):
            raise DataError(
                f"{shown_path(path)} and {other.name} would have one file of boxes. Rename one of them.",
                code="duplicate-entry",
            )
        by_stem[path.stem] = path
    return by_stem


def class_names(names: Sequence[Any], file: Path, line: int) -> tuple[str, ...]:
    """Return the names after checks. Raises DataError if there are none, or if a name occurs twice."""
    words = tuple(map(str, names))
    if twice := next((word for i, word in enumerate(words) if word in words[:i]), None):
        raise refusal(file, line, f"two classes are called '{twice}'. Rename one of them.", "duplicate-entry")
    if not words:
        raise refusal(file, line, "there are no classes; expected at least one name.", "empty-value")
    return words
