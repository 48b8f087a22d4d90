"""A tenth of the sizes of data that people have keeps to ceilings on memory and disk (benchmarks/size_pictures.py)."""

import sys

import pytest

from benchmarks.size_pictures import rows_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")]


@pytest.mark.parametrize(
    ("name", "ceilings"),
    [
        ("small", {"largest process": 400, "supervisor": 150, "disk of the workspace": 60}),
        ("streets", {"all processes of the run together": 1500, "disk of the workspace": 60}),
        ("table", {"supervisor": 150, "largest process": 500}),
    ],
)
def test_memory_and_disk_stay_below_their_ceilings(tmp_path, name, ceilings):
    """In megabytes."""
    found = {row.what.strip(): row.value for row in rows_of(name, tmp_path, 0.1, speed=False)}
    assert {what: found[what] for what, most in ceilings.items() if found[what] > most} == {}
