"""The jobs that repeat published tables can be run as they are committed, given the data."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from ianvs.cli import main
from tests.edits import edited

ROOT = Path(__file__).parents[3] / "configs" / "reproductions"
JOBS = sorted(path for path in ROOT.glob("*/*.yaml") if "benchmarkingjob:" in path.read_text())
ON_MNIST = [path for path in JOBS if any("name: mnist" in near.read_text() for near in path.parent.glob("*.yaml"))]
"""Those of other data: tests/nightly/jobs/test_tables_of_papers.py."""
ON_IMAGENET_R = [path for path in JOBS if path.parent.name == "vit_imagenet_r"]


def idx(path: Path, values: NDArray[np.uint8]) -> None:
    """An IDX file of bytes."""
    path.write_bytes(bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes())


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures of each digit to train on and three to test, of noise."""
    folder = tmp_path_factory.mktemp("mnist")
    draw = np.random.default_rng(0)
    for part, count in (("train", 120), ("t10k", 30)):
        idx(folder / f"{part}-images-idx3-ubyte", draw.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        idx(folder / f"{part}-labels-idx1-ubyte", (np.arange(count) % 10).astype(np.uint8))
    return folder


@pytest.mark.parametrize("job", ON_MNIST, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_job_is_valid(job: Path, mnist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["validate", "-f", str(job), "--root", str(mnist), "--workspace", str(tmp_path)])
    assert status == 0, capsys.readouterr().err


@pytest.mark.slow
def test_s_mnist_runs_and_says_what_can_be_said_of_one_seed(
    mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "s_mnist" / "benchmarkingjob.yaml").read_text()
    one_seed = edited(text, "seeds: [0, 1, 2, 3, 4]", "seeds: [0]", "./", f"{ROOT}/s_mnist/")
    assert one_seed.count("seeds: [0]\n") == 1
    job = tmp_path / "benchmarkingjob.yaml"
    job.write_text(one_seed)
    monkeypatch.chdir(tmp_path)
    assert main(["-f", str(job), "--root", str(mnist), "--workspace", "ws"]) == 0
    rows = (tmp_path / "ws" / "s_mnist" / "rank" / "leaderboard.md").read_text()
    header, *lines = [line for line in rows.splitlines() if line.startswith("|")][:14]
    assert "accuracy_published" in header
    assert sum("no verdict (" in line and "one seed" in line for line in lines) > 5


@pytest.fixture(scope="module")
def imagenet_r(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of each of 200 classes to train on and one to test, of noise and of different sizes."""
    folder, draw = tmp_path_factory.mktemp("imagenet-r"), np.random.default_rng(0)
    for part, count in (("train", 2), ("test", 1)):
        for number in range(200):
            place = folder / part / f"n{number:08}"
            place.mkdir(parents=True)
            for which in range(count):
                pixels = draw.integers(0, 256, (20 + number % 5, 18, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(place / f"{which}.png")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("job", ON_IMAGENET_R, ids=lambda path: path.stem)
def test_a_table_on_a_large_transformer_is_planned_and_its_methods_are_built(
    job: Path, imagenet_r: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("timm")
    plan_and_build(job, imagenet_r, tmp_path, capsys)


@pytest.mark.slow
def test_the_table_of_split_cifar100_is_planned_and_its_methods_are_built(
    imagenet_r: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a folder of pictures: torchvision takes CIFAR's official files alone."""
    pytest.importorskip("timm")
    (tmp_path / "testalgorithms").symlink_to(ROOT.parents[1] / "testalgorithms")
    folder = tmp_path / "configs" / "reproductions" / "vit_cifar100"
    shutil.copytree(ROOT / "vit_cifar100", folder)
    testenv = folder / "testenv.yaml"
    testenv.write_text(edited(testenv.read_text(), "name: cifar100", "image_size: 32"))
    plan_and_build(folder / "benchmarkingjob.yaml", imagenet_r, tmp_path, capsys)


def plan_and_build(job: Path, root: Path, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["-f", str(job), "--root", str(root), "--workspace", str(workspace)]
    assert main(["validate", *given, "--device", "cpu"]) == 0, capsys.readouterr().err  # ViT-B/16, on the meta device
    assert main(["plan", *given]) == 0
    assert "42 cases: 42 new" in capsys.readouterr().out


@pytest.mark.slow
def test_a_table_on_a_large_transformer_runs_with_a_tiny_one(
    imagenet_r: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timm = pytest.importorskip("timm")
    monkeypatch.chdir(tmp_path)
    torch.save(timm.create_model("vit_tiny_patch16_224", num_classes=21843).state_dict(), "tiny.pt")
    job = str(ROOT / "vit_imagenet_r" / "benchmarkingjob.yaml")
    tiny = ["network=timm/vit_tiny_patch16_224", "weights=./tiny.pt", "download=false"]
    given = ["--only", "simplecil,seed=0", "--root", str(imagenet_r), "--workspace", "ws", "--device", "cpu"]
    assert main(["-f", job, *given, *(word for one in tiny for word in ("--set", one))]) == 0, capsys.readouterr().err
    _, row = (tmp_path / "ws/vit_imagenet_r/rank/all_rank.csv").read_text().splitlines()
    assert "simplecil" in row
    assert "classes of ImageNet-R" not in row  # weights of nobody knows what
