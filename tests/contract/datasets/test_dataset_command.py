from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import yaml

from ianvs.base.errors import DataError
from ianvs.testenv.datasets.dataset_command import DATASETS, add_commands
from ianvs.testenv.datasets.downloads.preparers import PREPARERS
from tests.errors import printed
from tests.unit.datasets import trees


def ianvs(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())
    options = parser.parse_args([str(argument) for argument in arguments])
    status: int = options.command(options)
    return status


def test_a_prepared_dataset_comes_with_the_lines_for_a_testenv(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    root, out = trees.cloud_robotics(tmp_path / "cr"), tmp_path / "out"
    assert ianvs("dataset", "prepare", "cloud_robotics", "--root", root, "--out", out) == 0

    shown = capsys.readouterr()
    printed(shown.out + shown.err)
    dataset = yaml.safe_load(shown.out.split("# for testenv.yaml\n")[1])["dataset"]
    assert Path(dataset["train_index"]["CR"]).is_file()
    assert dataset["using"] == "CR"
    assert dataset["classes"][-1] == "dustbin"


def test_streets_are_generated_in_the_size_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    options = ("--train", 2, "--test", 1, "--size", 16, 32, "--out", tmp_path / "s")
    assert ianvs("dataset", "prepare", "streets", *options) == 0
    written = capsys.readouterr().out
    domains = ["CS", "SYN", "CR"]
    assert [line.split(": ")[:2] for line in written.splitlines()[:3]] == [
        [domain, f"2 training and 1 test images, {number} classes, in {tmp_path}/s/{domain}"]
        for domain, number in zip(domains, (8, 9, 10), strict=True)
    ]
    lines = yaml.safe_load(written.partition("# for testenv.yaml")[2])["dataset"]
    assert lines["train_index"] == {domain: f"{tmp_path}/s/{domain}/train-index.txt" for domain in domains}
    assert [len(lines["classes"][domain]) for domain in domains] == [8, 9, 10]
    assert (tmp_path / "s/SYN/test-index.txt").read_text() == "rgb/test/00000.png gt/test/00000_TrainIds.png\n"


def test_options_reach_their_preparer(tmp_path: Path):
    root = trees.synthia(tmp_path / "syn")
    arguments = ("--classes", "cityscapes", "--test-ratio", "0.5", "--seed", "3", "--domain", "S")
    ianvs("dataset", "prepare", "synthia", "--root", root, "--out", tmp_path / "out", *arguments)
    assert len((tmp_path / "out/test-index.txt").read_text().splitlines()) == 5
    assert yaml.safe_load((tmp_path / "out/classes.yaml").read_text())["domain"] == "S"


def test_unchecked_labels_are_listed_unopened(tmp_path: Path):
    root = trees.cityscapes(tmp_path / "cs", ids=[77])
    arguments = ("dataset", "prepare", "cityscapes", "--root", root, "--out", tmp_path / "out")
    with pytest.raises(DataError):
        ianvs(*arguments)
    assert ianvs(*arguments, "--no-check") == 0


def test_every_dataset_is_listed(capsys: pytest.CaptureFixture[str]):
    assert ianvs("dataset", "list") == 0
    shown = capsys.readouterr().out
    assert "digits" in shown
    assert {name for name, _ in DATASETS} == {*PREPARERS, "streets", "clear_drift"}
    assert all(name in shown for name, _ in DATASETS)
