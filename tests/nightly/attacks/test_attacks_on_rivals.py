"""Learners that try to ruin others, or to change what examines them: they gain nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.edits import edited
from tests.jobs import MAJORITY, write_job
from tests.nightly.attacks.test_attacks import plugin

RIVAL = "from helper import BIAS\n" + edited(MAJORITY, "class Majority", "class Rival", "bias=0", "bias=BIAS")
Scores = list[list[float]]
BROKEN = "raise RuntimeError('ruined')"

HEAD = """
import importlib.util, marshal, os, pathlib, struct
RIVAL = pathlib.Path(__file__).parent / "rival"

def forged(path, source):
    stat, target = path.stat(), pathlib.Path(importlib.util.cache_from_source(path))
    target.parent.mkdir(exist_ok=True)
    code = marshal.dumps(compile(source, str(path), "exec"))
    target.write_bytes(importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, int(stat.st_mtime), stat.st_size) + code)
"""

REWRITING = {
    "its file": f"(RIVAL / 'rival.py').write_text({BROKEN!r})",
    "its module": f"(RIVAL / 'helper.py').write_text({BROKEN!r})",
    "a package before its module": f"(RIVAL / 'helper').mkdir(); (RIVAL / 'helper/__init__.py').write_text({BROKEN!r})",
    "its file's byte code": f"forged(RIVAL / 'rival.py', {BROKEN!r})",
    "its module's byte code": f"forged(RIVAL / 'helper.py', {BROKEN!r})",
    "its file's removal": "(RIVAL / 'rival.py').unlink()",
}


def attacked(folder: Path, attack: str) -> dict[str, CaseResult]:
    """The results of an attacker, whose first train() does `attack`, and of a rival, which runs after it."""
    (folder / "rival").mkdir(parents=True, exist_ok=True)
    (folder / "rival" / "rival.py").write_text(RIVAL)
    (folder / "rival" / "helper.py").write_text("BIAS = 0\n")
    path = write_job(
        folder,
        engine="local",
        plugin=plugin(head=HEAD, train=f"if round == 1:\n    {attack}"),
        hyperparameters="",
        job="seeds: [0]\njobs: 1",
    )
    changes = ("name: Majority", "name: Rival", "./plugin.py", "./rival/rival.py")
    (folder / "rival.yaml").write_text(edited((folder / "algorithm.yaml").read_text(), *changes))
    more = "algorithm.yaml}\n      - {name: rival, url: ./rival.yaml}"
    path.write_text(edited(path.read_text(), "algorithm.yaml}", more))
    return {found.case.algorithm: found for found in ianvs.run(path)}


def scores(found: CaseResult) -> Scores:
    assert found.status == "finished", found.failure
    rows: Scores = found.matrices["accuracy"].values.tolist()
    return rows


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """The scores of a rival that nobody attacks."""
    return scores(attacked(tmp_path_factory.mktemp("honest"), "pass")["rival"])


@pytest.mark.parametrize("way", REWRITING)
def test_a_rival_that_is_rewritten_runs_as_it_was_planned(tmp_path: Path, way: str, honest: Scores) -> None:
    found = attacked(tmp_path, REWRITING[way])
    assert found["majority"].status == "finished", found["majority"].failure
    files = {path.name: path for path in (tmp_path / "rival").rglob("*") if path.is_file()}
    assert {"rival.py", "helper.py"} != set(files) or BROKEN in (
        files["rival.py"].read_text(),
        files["helper.py"].read_text(),
    )
    assert scores(found["rival"]) == honest


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="modes of files bind all but root")
def test_an_exam_whose_mode_is_changed_counts_as_before(tmp_path: Path) -> None:
    before = scores(attacked(tmp_path, "pass")["rival"])
    [truth] = (tmp_path / "ws" / "exams").glob("*/truth.npz")
    found = attacked(tmp_path, f"os.chmod({str(truth)!r}, 0)")
    assert scores(found["rival"]) == before
    assert scores(found["majority"])
