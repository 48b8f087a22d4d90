"""`ianvs new job NAME --data PATH`: the files that it writes for the layouts that people have."""

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.base.errors import IanvsError
from ianvs.cli.command_line import main
from ianvs.cli.data_job import data_job
from ianvs.config import load_job
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
