"""The jobs that repeat published tables can be run as they are committed, given the data."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ianvs.cli import main
from tests.edits import edited

ROOT = Path(__file__).parents[2] / "configs" / "reproductions"
JOBS = sorted(
    path for path in ROOT.glob("*/*.yaml") if "benchmarkingjob:" in path.read_text() and "cifar" not in path.parent.name
)


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


@pytest.mark.parametrize("job", JOBS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_job_is_valid(job: Path, mnist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["validate", "-f", str(job), "--root", str(mnist), "--workspace", str(tmp_path)])
    assert status == 0, capsys.readouterr().err


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
    assert sum("no verdict (" in line and "one seed has no spread" in line for line in lines) > 5
