"""What save() may write: no more than the job allows is read, copied or counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

ONCE = "seeds: [0]"


def saving(more: str) -> str:
    """Majority, whose save() does `more` first."""
    return edited(MAJORITY, "    def save(self, path):\n", f"    def save(self, path):\n        {more}\n")


def sat(folder: Path, source: str, job: str = ONCE) -> CaseResult:
    [found] = ianvs.run(write_job(folder, plugin=source, hyperparameters="", job=job))
    return found


@pytest.mark.parametrize("job", [ONCE, "seeds: [0]\nengine: {name: inline}"])
def test_a_file_of_terabytes_that_holds_nothing_ends_the_case(tmp_path, job):
    sparse = (
        "path.with_name('weights.bin').touch(); __import__('os').truncate(path.with_name('weights.bin'), 4 * 10**12)"
    )
    found = sat(tmp_path, saving(f"if self.counts: {sparse}"), job)
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    assert "4,000,000 MB" in found.failure.message
    assert "limits.saved_mb: 20000" in found.failure.message
    assert "'weights.bin'" in found.failure.message
    assert not list(found.directory.rglob("weights.bin"))


def test_files_that_are_small_alone_count_together_in_their_folders(tmp_path):
    parts = "[path.parent / f'part{k}' for k in range(4)]"
    writing = f"[part.mkdir() or (part / 'w').write_bytes(bytes(400)) for part in {parts}]"
    found = sat(tmp_path, saving(writing), "seeds: [0]\nlimits: {saved_mb: 0.0015}")
    assert found.failure is not None
    assert "limits.saved_mb: 0.0015" in found.failure.message
    path = tmp_path / "benchmarkingjob.yaml"
    path.write_text(edited(path.read_text(), "0.0015", "0.002"))
    [again] = ianvs.run(path)
    assert again.status == "finished", again.failure
    assert 1600 < again.rounds[-1].model_bytes < 2000


def test_a_link_is_not_followed(tmp_path):
    """It would tell the size of what is hidden, and have it read."""
    (tmp_path / "large").write_bytes(bytes(3000))
    link = f"(path.parent / 'link').symlink_to({str(tmp_path / 'large')!r})"
    found = sat(tmp_path, saving(link), "seeds: [0]\nlimits: {saved_mb: 0.002}")
    assert found.status == "finished", found.failure
    assert found.rounds[-1].model_bytes < 1000
