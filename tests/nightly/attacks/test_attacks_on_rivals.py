"""Learners that try to ruin others, or to change what examines them: each fails plainly, or gains nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.processes.sealing.landlock import landlock_version
from tests.edits import edited
from tests.families import family
from tests.jobs import MAJORITY, write_job
from tests.nightly.attacks.test_attacks import plugin

closed = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")

RIVAL = "from helper import BIAS\n" + edited(MAJORITY, "class Majority", "class Rival", "bias=0", "bias=BIAS")
Scores = list[list[float]]
BROKEN = "raise RuntimeError('ruined')"

HEAD = """
import importlib.util, marshal, os, pathlib, struct, sys, sysconfig
import ianvs
RIVAL = pathlib.Path(__file__).parent / "rival"
WORKSPACE = pathlib.Path(__file__).parent / "ws"

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


def attacked(folder: Path, attack: str, job: str = "") -> dict[str, CaseResult]:
    """The results of an attacker, whose first train() does `attack`, and of a rival, which runs after it."""
    (folder / "rival").mkdir(parents=True, exist_ok=True)
    (folder / "rival" / "rival.py").write_text(RIVAL)
    (folder / "rival" / "helper.py").write_text("BIAS = 0\n")
    path = write_job(
        folder,
        plugin=plugin(head=HEAD, train=f"if round == 1:\n    {attack}"),
        hyperparameters="",
        job=f"seeds: [0]\njobs: 1\n{job}",
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


def require_refused(found: CaseResult) -> None:
    assert found.failure is not None
    assert "Permission denied" in found.failure.message
    assert "`sealing: open`" in found.failure.message


@closed
@pytest.mark.parametrize("way", family(REWRITING))
def test_who_rewrites_a_rival_fails_and_the_rivals_score_is_its_own(tmp_path: Path, way: str, honest: Scores) -> None:
    found = attacked(tmp_path, REWRITING[way])
    require_refused(found["majority"])
    assert scores(found["rival"]) == honest


@pytest.mark.slow
@pytest.mark.parametrize("way", REWRITING)
def test_where_learners_may_write_a_rival_runs_as_it_was_planned(tmp_path: Path, way: str, honest: Scores) -> None:
    found = attacked(tmp_path, REWRITING[way], job="sealing: open")
    assert found["majority"].status == "finished", found["majority"].failure
    files = {path.name: path for path in (tmp_path / "rival").rglob("*") if path.is_file()}
    assert {"rival.py", "helper.py"} != set(files) or BROKEN in (
        files["rival.py"].read_text(),
        files["helper.py"].read_text(),
    )
    assert scores(found["rival"]) == honest


INSTALLED = {
    "ianvs": "pathlib.Path(ianvs.__file__).parent / 'plugins' / 'left_by_a_test.py'",
    "a file of ianvs": "pathlib.Path(ianvs.__file__)",
    "site-packages": "pathlib.Path(sysconfig.get_paths()['purelib']) / 'left_by_a_test.pth'",
}


@pytest.mark.slow
@closed
@pytest.mark.parametrize("place", INSTALLED)
def test_installed_packages_and_ianvs_can_not_be_changed(tmp_path: Path, place: str) -> None:
    found = attacked(tmp_path, f"({INSTALLED[place]}).open('a').close()")
    require_refused(found["majority"])
    assert found["rival"].status == "finished"


@pytest.mark.slow
def test_where_learners_may_write_they_could_change_ianvs(tmp_path: Path) -> None:
    """Opened to be written, and left as it is."""
    found = attacked(tmp_path, f"({INSTALLED['a file of ianvs']}).open('a').close()", job="sealing: open")
    assert found["majority"].status == "finished", found["majority"].failure


@pytest.mark.slow
@closed
@pytest.mark.parametrize("attack", ["os.listdir(WORKSPACE / 'code')", "(WORKSPACE / 'code' / 'more').mkdir()"])
def test_the_code_that_was_kept_is_closed(tmp_path: Path, attack: str) -> None:
    require_refused(attacked(tmp_path, attack)["majority"])


@pytest.mark.slow
@pytest.mark.parametrize("job", ["", "sealing: open"])
@pytest.mark.skipif(os.getuid() != 0, reason="modes of files are not Landlock's; they bind all but root")
def test_an_exam_whose_mode_is_changed_counts_as_before(tmp_path: Path, job: str) -> None:
    before = scores(attacked(tmp_path, "pass", job)["rival"])
    [truth] = (tmp_path / "ws" / "exams").glob("*/truth.npz")
    found = attacked(tmp_path, f"os.chmod({str(truth)!r}, 0)", job)
    assert scores(found["rival"]) == before
    assert scores(found["majority"])


@closed
@pytest.mark.slow
def test_what_is_compiled_is_cached_for_a_case_alone(tmp_path: Path) -> None:
    names = "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "TORCH_EXTENSIONS_DIR"
    told = f"(folder / 'caches').write_text('\\n'.join([os.environ['TMPDIR'], *map(os.environ.get, {names!r})]))"
    found = [attacked(tmp_path / name, told)["majority"] for name in ("a", "b")]
    one, other = ((case.directory / "files" / "caches").read_text().splitlines() for case in found)
    assert all(place.startswith(one[0]) for place in one)
    assert not set(one) & set(other)


@closed
@pytest.mark.parametrize("granted", [True, False])
def test_caches_of_weights_are_written_only_where_the_user_lets_a_method_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granted: bool
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "weights"))
    (tmp_path / "weights").mkdir()
    source = plugin(train=f"open({str(tmp_path / 'weights' / 'model')!r}, 'w').close()")
    source = edited(source, "bias=0, ", "bias=0, download=False, ")
    grid = f"- download: {{values: [{str(granted).lower()}]}}"
    [found] = ianvs.run(write_job(tmp_path / "job", plugin=source, hyperparameters=grid, job="seeds: [0]"))
    if not granted:
        require_refused(found)
        return
    assert found.status == "finished", found.failure
    assert "weights" in found.sealing.missing


# --- what is left in memory -----------------------------------------------------------------------------------------

LEFT = {
    "shared memory": "ctypes.CDLL(None).shmget(0x1A4D5, 4096, 0o1600)",
    "a queue of messages": "number = ctypes.CDLL(None).msgget(0x1A4D5, 0o1600); "
    "ctypes.CDLL(None).msgsnd(number, ctypes.byref((ctypes.c_long * 2)(1, 1)), 8, 0)",
    "a semaphore": "number = ctypes.CDLL(None).semget(0x1A4D5, 1, 0o1600); ctypes.CDLL(None).semctl(number, 0, 16, 1)",
    "a file in memory": "global FILE; FILE = open('/dev/shm/left-by-a-test', 'w+b'); FILE.write(b'x')",
}


def objects() -> set[str]:
    """Of System V, and files in memory."""
    lines = [line for kind in ("shm", "msg", "sem") for line in Path("/proc/sysvipc", kind).read_text().splitlines()]
    return {line.split()[0] for line in lines} | {path.name for path in Path("/dev/shm").iterdir()}


@pytest.mark.skipif(not Path("/proc/sysvipc").is_dir(), reason="there are no System V objects")
@pytest.mark.parametrize("job", family(["", "sealing: open"]))
@pytest.mark.parametrize("what", family(LEFT))
def test_what_is_left_in_memory_is_removed_and_told(tmp_path: Path, what: str, job: str) -> None:
    found = attacked(tmp_path, f"import ctypes; {LEFT[what]}", job)["majority"]
    assert found.status == "finished", found.failure
    assert "left behind" in (found.directory / "log.txt").read_text()
    assert not {str(0x1A4D5), "left-by-a-test"} & objects()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/sysvipc").is_dir(), reason="there are no System V objects")
def test_what_a_learner_leaves_that_ends_itself_is_removed(tmp_path: Path) -> None:
    found = attacked(tmp_path, f"import ctypes; {LEFT['shared memory']}; os._exit(3)", "retries: 0")
    assert found["majority"].failure is not None
    assert str(0x1A4D5) not in objects()


# --- what is said of it ----------------------------------------------------------------------------------------------


def test_sealing_is_part_of_a_case_and_the_board_tells_it(tmp_path: Path) -> None:
    said, cases = {}, set()
    for sealing in ("normal", "strict", "open"):
        path = write_job(tmp_path, plugin=MAJORITY, hyperparameters="", job=f"seeds: [0]\nsealing: {sealing}")
        results = ianvs.run(path)
        [found] = results
        cases.add(found.case.id)
        said[sealing] = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert len(cases) == 3
    assert "Strictly sealed" in said["strict"] or not landlock_version()
    assert [line for line in said["open"].splitlines() if line.startswith("Not sealed: ") and "sealing: open" in line]
