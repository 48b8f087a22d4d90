"""Reports of the same results are the same bytes, whatever the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from tests.unit.results.report.test_write import pictured, suite, write\n"
        "write([*suite(), *pictured()], Path(sys.argv[1]))"
    )
    root = Path(__file__).parents[4]
    for name, hash_seed in (("one", "1"), ("two", "2")):
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / name), str(root)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
    one = {p.relative_to(tmp_path / "one"): p.read_bytes() for p in (tmp_path / "one").rglob("*.*")}
    two = {p.relative_to(tmp_path / "two"): p.read_bytes() for p in (tmp_path / "two").rglob("*.*")}
    assert len(one) == 12  # six of them pictures
    assert one == two
