"""The examples and templates of an earlier state, the tag before-loop, run unchanged.

They are read from the history, and skipped where there is none.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BEFORE = "86b71b31"  # the commit of the tag
TEMPLATES = "core/ianvs/cli/templates"


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)


pytestmark = pytest.mark.skipif(git("cat-file", "-e", f"{BEFORE}^{{commit}}").returncode != 0, reason="no history")
JOBS = git("ls-tree", "-r", "--name-only", BEFORE, "examples", TEMPLATES).stdout.decode().splitlines()
NEEDS_PACKAGE = "examples/own_contract"  # it is installed as a package: tests/contract/test_own_contract.py
TRAINS_LONG = "examples/mdil_ss_proposal"  # that of today is run by tests/nightly/kubeedge
MAKES_DATA = {
    "examples/from_ianvs": "examples/from_ianvs/make_data.py",
    "examples/mdil_ss_proposal": "examples/mdil_ss_proposal/make_scenes.py",
    "examples/own_index_files": "examples/own_index_files/make_data.py",
}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the earlier examples and templates."""
    folder = tmp_path_factory.mktemp("before_loop")
    with tarfile.open(fileobj=io.BytesIO(git("archive", BEFORE, "examples", TEMPLATES).stdout)) as archive:
        archive.extractall(folder, filter="data")
    for name in ("testenv", "testalgorithms", "configs"):  # to which examples refer: those of today
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("job", [path for path in JOBS if path.endswith("/benchmarkingjob.yaml")])
def test_a_job_of_then_runs(job: str, earlier: Path, tmp_path: Path) -> None:
    example = job.removesuffix("/benchmarkingjob.yaml")
    if example == NEEDS_PACKAGE:
        pytest.skip("its contract has to be installed")
    if example in MAKES_DATA:
        run(earlier, MAKES_DATA[example])
    if example == TRAINS_LONG:
        run(earlier, "-m", "ianvs", "validate", "-f", job, "--workspace", str(tmp_path / "ws"))
        return
    # Every plugin is checked; the first cases of its grid are enough to see that it trains, predicts and is scored.
    run(earlier, "-m", "ianvs", "run", "-f", job, "--limit", "2", "--jobs", "1", "--workspace", str(tmp_path / "ws"))
