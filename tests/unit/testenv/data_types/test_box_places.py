"""Boxes against the heads of their picture files: edges, written sizes, EXIF orientations."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from ianvs.base.errors import ValidationError
from ianvs.exam.data.listing import SourceError
from ianvs.testenv.data_types.detection.box_files import BoxFiles, picture_head
from ianvs.testenv.data_types.detection.box_places import box_warnings, check_box_files
from ianvs.testenv.data_types.detection.coco_json import read_coco
from ianvs.testenv.data_types.detection.voc_xml import read_voc_index
from ianvs.testenv.data_types.detection.yolo_txt import read_yolo

Box = tuple[float, float, float, float]  # x1 y1 x2 y2
Written = tuple[int, int] | None
Reader = Callable[[Path, list[Box], Written], BoxFiles]
WIDTH, HEIGHT = 20, 10


def save(path: Path, orientation: int = 1, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", size).save(path, exif=exif)


def coco(folder: Path, boxes: list[Box], size: Written) -> BoxFiles:
    about = {} if size is None else {"width": size[0], "height": size[1]}
    annotations = [
        {"id": i, "image_id": 7, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1]}
        for i, (x1, y1, x2, y2) in enumerate(boxes)
    ]
    content = {
        "images": [{"id": 7, "file_name": "images/a.jpg", **about}],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}],
    }
    (folder / "a.json").write_text(json.dumps(content, indent=1))
    return read_coco(folder / "a.json", folder)


def voc(folder: Path, boxes: list[Box], size: Written) -> BoxFiles:
    about = "" if size is None else f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>"
    corners = "<object><name>cat</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox>"
    objects = [corners.format(x1 + 1, y1 + 1, x2, y2) + "</object>" for x1, y1, x2, y2 in boxes]
    (folder / "a.xml").write_text("\n".join(["<annotation>", about, *objects, "</annotation>"]))
    (folder / "list.txt").write_text("images/a.jpg a.xml\n")
    return read_voc_index(folder / "list.txt")


def yolo(folder: Path, boxes: list[Box], size: Written) -> BoxFiles:
    rows = [
        f"0 {(x1 + x2) / 2 / WIDTH} {(y1 + y2) / 2 / HEIGHT} {(x2 - x1) / WIDTH} {(y2 - y1) / HEIGHT}"
        for x1, y1, x2, y2 in boxes
    ]
    (folder / "labels").mkdir(exist_ok=True)
    (folder / "labels" / "a.txt").write_text("\n".join(rows))
    (folder / "data.yaml").write_text("train: images\nnames: [cat]\n")
    return read_yolo(folder / "data.yaml", "train")


def warned(files: BoxFiles, *, ignore_sizes: bool = False) -> list[ValidationError]:
    found = check_box_files(files, ignore_sizes=ignore_sizes)
    assert all(one.warning for one in found)
    return [*found]


@pytest.mark.parametrize("box", [(30, 2, 35, 6), (2, 11, 5, 15), (20, 2, 25, 6), (-9, 2, -1, 6), (-9, -9, 0, 0)])
@pytest.mark.parametrize("reader", [coco, voc])
def test_a_box_outside_is_warned_of_at_its_entry(reader: Reader, box: Box, tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    [problem] = warned(reader(tmp_path, [(1, 1, 4, 4), box], (WIDTH, HEIGHT)))
    assert problem.place is not None
    lines = problem.place.file.read_text().splitlines()
    entries = [number for number, line in enumerate(lines, 1) if line == "  {" or line.startswith("<object>")]
    assert problem.place.line == entries[2 if reader is coco else 1]  # the json begins with the picture's entry


@pytest.mark.parametrize("reader", [coco, voc, yolo])
@pytest.mark.parametrize("box", [(0, 0, 20, 10), (15, 5, 20, 10), (0, 0, 1, 1)])
def test_a_box_inside_says_nothing(reader: Reader, box: Box, tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    assert warned(reader(tmp_path, [box], (WIDTH, HEIGHT))) == []


def test_a_box_that_is_partly_outside_stays_as_it_is(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    files = coco(tmp_path, [(15, 5, 40, 30)], (WIDTH, HEIGHT))
    assert warned(files) == []
    assert np.asarray(files.labels[0]["boxes"]).tolist() == [[15, 5, 40, 30]]


def test_a_box_without_area_is_warned_of(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    assert len(warned(coco(tmp_path, [(3, 3, 3, 8)], None))) == 1
    [problem] = warned(yolo(tmp_path, [(1, 1, 4, 4), (3, 3, 8, 3)], None))
    assert problem.place is not None and (problem.place.file.name, problem.place.line) == ("a.txt", 2)


@pytest.mark.parametrize("reader", [coco, voc])
@pytest.mark.parametrize(
    ("orientation", "size"), [(6, (HEIGHT, WIDTH)), (8, (HEIGHT, WIDTH)), (1, (HEIGHT, WIDTH)), (1, (40, 20))]
)
def test_a_written_size_that_is_not_the_pictures_is_refused(
    reader: Reader, orientation: int, size: tuple[int, int], tmp_path: Path
) -> None:
    save(tmp_path / "images" / "a.jpg", orientation)
    files = reader(tmp_path, [(1, 1, 4, 4)], size)
    with pytest.raises(SourceError) as refused:
        check_box_files(files, ignore_sizes=False)
    assert ("EXIF" in str(refused.value)) == (orientation != 1)
    assert warned(files, ignore_sizes=True) == []


@pytest.mark.parametrize("reader", [coco, voc])
@pytest.mark.parametrize("size", [None, (0, 0), (WIDTH, HEIGHT)])
def test_a_size_that_is_left_out_or_right_says_nothing(reader: Reader, size: Written, tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    assert warned(reader(tmp_path, [(1, 1, 4, 4)], size)) == []


@pytest.mark.parametrize("reader", [coco, voc, yolo])
def test_an_orientation_beside_no_written_size_is_warned_of(reader: Reader, tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg", 6)
    files = reader(tmp_path, [(1, 1, 4, 4)], None)
    assert len(warned(files)) == 1
    assert warned(files, ignore_sizes=True) == []


def test_a_picture_that_was_stored_sideways_and_annotated_so_is_right(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg", 6)
    assert warned(coco(tmp_path, [(1, 1, 4, 4)], (WIDTH, HEIGHT))) == []


def test_the_remedy_turns_the_file(tmp_path: Path) -> None:
    file = tmp_path / "images" / "a.jpg"
    save(file, 6)
    files = coco(tmp_path, [(1, 12, 6, 19)], (HEIGHT, WIDTH))
    ImageOps.exif_transpose(Image.open(file)).save(file, quality=95)
    assert picture_head(file) == ((HEIGHT, WIDTH), 1)
    assert warned(files) == []


@pytest.mark.parametrize("suffix", [".png", ".webp", ".tif"])
def test_the_size_is_that_of_the_decoded_picture(suffix: str, tmp_path: Path) -> None:
    save(tmp_path / f"a{suffix}", 6)
    head = picture_head(tmp_path / f"a{suffix}")
    with Image.open(tmp_path / f"a{suffix}") as image:
        assert head.size == image.convert("RGB").size
    assert head.orientation == (1 if suffix == ".tif" else 6)  # of a TIFF, Pillow has turned the pixels


def test_what_a_function_returned_is_held_against_its_pictures() -> None:
    labels = [{"boxes": [], "labels": []}, {"boxes": [[0, 0, 4, 4], [30, 2, 35, 6]], "labels": [0, 0]}]
    sizes = np.array([[HEIGHT, WIDTH], [HEIGHT, WIDTH]], dtype=np.float64)
    [problem] = box_warnings(labels, sizes, lambda picture, box: None)
    assert "box 1 of sample 1" in problem.message
    assert box_warnings(labels[:1], sizes[:1], lambda picture, box: None) == []


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_an_orientation_that_keeps_the_size_is_warned_of(orientation: int, tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg", orientation)
    files = coco(tmp_path, [(1, 1, 4, 4)], (WIDTH, HEIGHT))
    assert len(warned(files)) == 1
    assert warned(files, ignore_sizes=True) == []


def test_boxes_in_shares_of_the_picture_are_warned_of(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.jpg")
    assert len(warned(coco(tmp_path, [(0.1, 0.2, 0.9, 1.0), (0, 0, 0.5, 0.5)], (WIDTH, HEIGHT)))) == 1
    assert warned(coco(tmp_path, [(0.1, 0.2, 0.9, 1.0), (0, 0, 5, 5)], (WIDTH, HEIGHT))) == []
