"""`ianvs new job NAME --data PATH`: the files that it writes for the layouts that people have."""

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.api import validate
from ianvs.base.errors import IanvsError
from ianvs.cli.command_line import main
from ianvs.cli.data_job import data_job
from ianvs.config import load_job
from ianvs.exam.data.sources import read_parts
from tests.errors import errors_of


def picture(path: Path, side: int = 8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), len(path.parts), np.uint8)).save(path)


def classes(folder: Path, names: str = "abcd", count: int = 5, side: int = 8) -> Path:
    for name in names:
        for number in range(count):
            picture(folder / name / f"{number}.png", side)
    return folder


def table(path: Path) -> Path:
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["height", "width", "label", "split"])
        rows.writerows([n + 0.5, 2 * n + 0.25, "xy"[n % 2], "test" if n % 5 == 0 else "train"] for n in range(20))
    return path


def packed(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(classes(path.parent / "whole").rglob("*.png")):
            archive.write(file, file.relative_to(path.parent / "whole"))
    return path


def both_parts(folder: Path) -> Path:
    classes(folder / "train")
    classes(folder / "test", count=2)
    return folder


def domains(folder: Path) -> Path:
    classes(folder / "rain")
    classes(folder / "sun")
    return folder


@pytest.mark.parametrize(
    ("made", "keys", "scenario", "facts"),
    [
        (
            lambda folder: classes(folder / "photos"),
            {"train", "test_share"},
            "class-incremental",
            "16 training and 4 test",
        ),
        (
            lambda folder: both_parts(folder / "photos"),
            {"train", "test"},
            "class-incremental",
            "20 training and 8 test",
        ),
        (
            lambda folder: domains(folder / "photos"),
            {"train", "test_share", "using"},
            "domain-incremental",
            "32 training",
        ),
        (lambda folder: packed(folder / "photos.zip"), {"train", "test_share"}, "class-incremental", "16 training"),
        (lambda folder: table(folder / "t.csv"), {"train", "test"}, "instance-incremental", "16 training and 4 test"),
    ],
)
def test_a_job_over_data_as_people_have_them_has_no_errors(tmp_path, monkeypatch, capsys, made, keys, scenario, facts):
    monkeypatch.chdir(tmp_path)
    data = made(tmp_path)
    assert main(["new", "job", "mine", "--data", str(data.relative_to(tmp_path))]) == 0
    said = capsys.readouterr().out
    assert facts in said
    testenv = load_job(tmp_path / "mine" / "benchmarkingjob.yaml").testenvs[0]
    assert testenv.scenario.name == scenario
    assert {key for key in ("train", "test", "test_share", "using") if getattr(testenv.dataset, key)} == keys
    assert not any(str(tmp_path) in path.read_text() for path in (tmp_path / "mine").glob("*.yaml"))  # it may move


def rows(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def below(folder: Path, *parents: str) -> Path:
    for parent in parents:
        classes(folder / parent)
    return folder


def zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, file.relative_to(folder))
    return folder.with_suffix(".zip")


NUMBERS = [f"{n}.5,{n % 3}.25,{'xyz'[n % 3]},{'test' if n % 4 == 0 else 'train'}" for n in range(24)]
DOMAINS = [f"{n}.5,{'xyz'[n % 3]},{('sun', 'fog')[n // 3 % 2]}" for n in range(24)]


@pytest.mark.parametrize(
    ("made", "scenario", "classes_found", "domains_found", "counts"),
    [
        (lambda folder: below(folder / "d", "Training", "Testing"), "class-incremental", 4, (), (20, 20)),
        (lambda folder: below(folder / "d", "train", "val"), "class-incremental", 4, (), (20, 20)),
        (
            lambda folder: below(folder / "d", "real/train", "real/test", "sketch/train", "sketch/test"),
            "domain-incremental",
            4,
            ("real", "sketch"),
            (40, 40),
        ),
        (
            lambda folder: below(folder / "d", "train/real", "test/real", "train/sketch", "test/sketch"),
            "domain-incremental",
            4,
            ("real", "sketch"),
            (40, 40),
        ),
        (lambda folder: zipped(below(folder / "d", "train", "test")), "class-incremental", 4, (), (20, 20)),
        (
            lambda folder: zipped(below(folder / "d", "real", "sketch")),
            "domain-incremental",
            4,
            ("real", "sketch"),
            (32, 8),
        ),
        (lambda folder: rows(folder / "t.csv", "a,b,species,split", *NUMBERS), "class-incremental", 3, (), (18, 6)),
        (
            lambda folder: rows(folder / "t.csv", "a,label,domain", *DOMAINS),
            "domain-incremental",
            3,
            ("fog", "sun"),
            (19, 5),
        ),
    ],
)
def test_parts_domains_and_labels_are_those_of_the_data(tmp_path, made, scenario, classes_found, domains_found, counts):
    job = data_job(made(tmp_path), "mine", tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    for name, text in job.files.items():
        (tmp_path / "mine" / name).write_text(text)
    testenv = load_job(tmp_path / "mine" / "benchmarkingjob.yaml").testenvs[0]
    train, test = read_parts(testenv.dataset)
    assert (testenv.scenario.name, testenv.dataset.using) == (scenario, domains_found)
    assert (len(train), len(test)) == counts
    assert len({*train.y.tolist()}) == classes_found
    assert not {"train", "test"} & {*map(str, train.y.tolist())}


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (lambda folder: classes(classes(folder / "d", ["images"]), ["masks"]), "mismatched-data"),
        (lambda folder: below(folder / "d", "train/images", "train/masks"), "mismatched-data"),
        (lambda folder: (classes(folder / "d", ["images"]) / "labels").mkdir() or folder / "d", "mismatched-data"),
        (lambda folder: classes(folder / "d", ["images"]), "mismatched-data"),
        (lambda folder: rows(folder / "t.csv", "a,label", *[f"{n},{n}.5" for n in range(24)]), "mismatched-data"),
        (lambda folder: rows(folder / "t.csv", "a,label", *[f"{n},{n}" for n in range(24)]), "mismatched-data"),
        (lambda folder: rows(folder / "t.csv", "a,label", *[f"{n},name {n}" for n in range(24)]), "mismatched-data"),
        (lambda folder: rows(folder / "t.csv", "a,b,c,split", *["1,2,3,train", "2,3,4,test"]), "missing-column"),
    ],
)
def test_what_is_no_data_of_classes_is_refused_with_the_way_to_write_it(tmp_path, monkeypatch, made, code):
    monkeypatch.chdir(tmp_path)
    data = made(tmp_path).relative_to(tmp_path)
    assert errors_of(data_job, data, "mine", Path("mine"))[0][0] == code


def test_a_table_beside_loose_images_is_proposed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    picture(Path("photos/1.png"))
    rows(Path("photos/labels.csv"), "image,label", "1.png,cat")
    with pytest.raises(IanvsError) as caught:
        data_job(Path("photos"), "mine", Path("mine"))
    assert "--data photos/labels.csv" in str(caught.value)


def test_arrays_without_parts_are_divided(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(36, 4)), y=np.arange(36) % 3)
    assert "test_share: 0.2" in data_job(tmp_path / "a.npz", "mine", tmp_path / "mine").files["testenv.yaml"]


def test_pictures_of_several_sizes_are_resized(tmp_path):
    classes(tmp_path / "photos", "ab")
    classes(tmp_path / "photos", "c", side=100)
    job = data_job(tmp_path / "photos", "mine", tmp_path / "mine")
    assert "image_size: 64" in job.files["testenv.yaml"]
    assert any("8 x 8 to 100 x 100" in fact for fact in job.facts)


def test_what_is_not_there_or_holds_no_samples_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert errors_of(data_job, tmp_path / "none", "mine", tmp_path / "mine")[0][0] == "missing-file"
    with pytest.raises(IanvsError):
        data_job(tmp_path / "empty", "mine", tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("classes_found", [3, 4, 5, 7, 9, 10, 13])
def test_a_job_of_any_number_of_classes_has_rounds_that_fit(tmp_path: Path, classes_found: int) -> None:
    lines = [f"{n / 10},{n % 7},k{n % classes_found}" for n in range(130)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label", *lines]))
    job = data_job(tmp_path / "t.csv", "mine", tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    for name, text in job.files.items():
        (tmp_path / "mine" / name).write_text(text)
    validate(tmp_path / "mine" / "benchmarkingjob.yaml")
