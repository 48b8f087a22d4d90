"""Learners that try to cheat, one test for each way: none is ranked higher for it, or gets at what is hidden."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.processes.sealing.landlock import landlock_version
from ianvs.results.stored import Results
from ianvs.store import CaseStore
from tests.edits import edited
from tests.families import family
from tests.jobs import MAJORITY, write_job
from tests.kernel import filters_calls

closed = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
filtered = pytest.mark.skipif(not filters_calls(), reason="the kernel has no seccomp")

HIDING = [
    "{name: class-incremental, rounds: 5}",
    "{name: domain-incremental, rotation: [0, 30, 60]}",
    "{name: task-free, rounds: 5, batch: 100}",
    "{name: online, rounds: 5, batch: 100}",
    "{name: blurred-boundary, rounds: 5, kind: blurry, M: 10}",
]


def plugin(train: str = "", predict: str = "return [0] * len(data)", head: str = "") -> str:
    """Majority, whose train() begins with `train`, and whose predict() is `predict`."""
    source = edited(
        MAJORITY, "*, round, seed):\n", "*, round, seed, folder):\n" + indent(dedent(train).strip(), " " * 8) + "\n"
    )
    begin, end = source.index("    def predict"), source.index("    def save")
    answers = "    def predict(self, data, folder):\n" + indent(dedent(predict).strip(), " " * 8) + "\n\n"
    return dedent(head) + source[:begin] + answers + source[end:]


def sat(folder: Path, source: str, scenario: str = HIDING[0], job: str = "seeds: [0]", more: str = "") -> Results:
    exam = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [accuracy]\n{more}"
    return ianvs.run(write_job(folder, plugin=source, hyperparameters="", testenv=exam, job=job))


def only(results: Results) -> CaseResult:
    [found] = results
    assert found.status == "finished", found.failure
    return found


def answers(results: Results, case: int = 0) -> list[np.ndarray]:
    """All labels that were ever answered, test set by test set."""
    found = list(results)[case]
    assert found.status == "finished", found.failure
    store = CaseStore(found.directory.parent.parent)
    rounds = range(len(found.rounds))
    return [said.labels for k in rounds for said in store.predictions(found.case.id, k).values()]


def written(results: Results, name: str = "found.json") -> list:
    [found] = results
    assert found.status == "finished", found.failure
    return [json.loads(line) for line in (found.directory / "files" / name).read_text().splitlines()]


# --- the order of questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", family(HIDING, 2))
def test_the_number_of_calls_says_nothing_of_the_task(tmp_path, scenario):
    counting = plugin(
        train="self.calls = 0",
        predict="""
        self.calls = getattr(self, "calls", 0) + 1
        return [self.calls] * len(data)
    """,
    )
    assert {int(label) for labels in answers(sat(tmp_path, counting, scenario)) for label in labels} == {1}


def test_samples_of_one_task_do_not_come_together(tmp_path):
    """Answers by position: had the samples come in order, the first test set would have got nothing but zeros."""
    half = plugin(predict="return [int(i >= len(data) / 5) for i in range(len(data))]")
    first = answers(sat(tmp_path, half))[0]
    assert 0 < np.mean(first == 0) < 0.5


def test_the_order_is_another_one_after_each_round_and_the_same_in_each_run(tmp_path):
    half = plugin(predict="return [int(i >= len(data) / 2) for i in range(len(data))]")
    one, other = answers(sat(tmp_path / "a", half)), answers(sat(tmp_path / "b", half))
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    assert not np.array_equal(one[0], one[5])


# --- what was asked ------------------------------------------------------------------------------------------------

HOARDS = {
    "attribute": ("self.hoard = getattr(self, 'hoard', []) + [data.x[0]]", "getattr(self, 'hoard', [])"),
    "global": ("HOARD.append(data.x[0])", "HOARD"),
    "shared memory": ("SHARED[0] = 1", "SHARED[0]"),
    "pipe": ("os.write(PIPE[1], b'x')", "select.select([PIPE[0]], [], [], 0)[0]"),
    "open file": ("OPEN.write('x'); OPEN.flush()", "os.fstat(OPEN.fileno()).st_size"),
    "its folder": ("(folder / 'hoard').write_text('x')", "(folder / 'hoard').exists()"),
    "temporary file": ("(TEMPORARY / 'hoard').write_text('x')", "(TEMPORARY / 'hoard').exists()"),
    "its new temporary file": (
        "pathlib.Path(tempfile.mkstemp(prefix='hoard')[1]).write_text('x')",
        "list(pathlib.Path(tempfile.gettempdir()).glob('**/hoard*'))",
    ),
    "/dev/shm": (
        "pathlib.Path('/dev/shm/ianvs-hoard').write_text('x')",
        "pathlib.Path('/dev/shm/ianvs-hoard').exists()",
    ),
    "caches": ("CACHED.write_text('x')", "CACHED.exists()"),
    "beside the plugin": ("BESIDE.write_text('x')", "BESIDE.exists()"),
    "signal": ("os.kill(os.getppid(), signal.SIGUSR1)", "SIGNALS"),
}
HEAD = """
import mmap, os, pathlib, select, signal, tempfile
HOARD, SIGNALS = [], []
SHARED = mmap.mmap(-1, 4096)
PIPE = os.pipe()
TEMPORARY = pathlib.Path(tempfile.gettempdir())
OPEN = open(TEMPORARY / 'open', 'w')
CACHED = pathlib.Path.home() / '.cache' / 'ianvs-hoard'
BESIDE = pathlib.Path(__file__).with_name('hoard.txt')
signal.signal(signal.SIGUSR1, lambda *_: SIGNALS.append(1))
"""


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=() if way in ("attribute", "global", "shared memory", "pipe", "open file") else closed)
        for way in HOARDS
    ],
)
def test_what_a_copy_remembers_goes_with_it(tmp_path, way):
    keep, look = HOARDS[way]
    hoarder = plugin(
        head=HEAD,
        predict=f"""
        try:
            seen = bool({look})
            {keep}
        except OSError:
            seen = False
        return [int(seen)] * len(data)
    """,
    )
    assert {int(label) for labels in answers(sat(tmp_path, hoarder)) for label in labels} == {0}


# --- what copies leave behind -------------------------------------------------------------------------------------

WAYS = [
    *("SharedMemory", "MessageQueue", "Semaphore", "PosixQueue", "Key", "Attribute", "Times", "Mode", "Links", "Name"),
    *("Folder", "Flags", "Limit", "Priority", "Affinity", "OutputFlags", "PathSocket", "AbstractSocket", "Loopback"),
    *("Watch", "NamedPipe", "Terminal", "ProcessName", "OtherThreadsName", "Printed", "Memory", "ExitStatus"),
    *("AccessTime", "TemporaryAccessTime", "SharedAccessTime", "UnlistedAccessTime", "FolderAccessTime"),
    "LinkAccessTime",
]
CLOSED_ANYWAY = {
    "ExitStatus": (False, True),  # a copy is no child of its learner
    # New processes can't open its folders, nor reach abstract sockets of others, nor write below /proc.
    **dict.fromkeys(("Links", "Name", "Folder", "Flags", "NamedPipe", "AbstractSocket", "OtherThreadsName"), (True,)),
    **dict.fromkeys(("AccessTime", "TemporaryAccessTime", "UnlistedAccessTime", "FolderAccessTime"), (True,)),
}


@pytest.fixture(scope="module")
def passed(tmp_path_factory):
    """What the learner of channels.py found of what its copies had sent: (sealing, new processes) -> {way: whether}."""

    @cache
    def found(sealing: str, new: bool, attempt: int = 0, apart: bool = False) -> dict[str, bool]:
        folder = tmp_path_factory.mktemp("channels")
        source = Path(__file__).with_name("channels.py").read_text()
        token = 0x10000 + os.getpid() % 0x8000 + 7 * len(sealing) + new
        source = edited(edited(source, "TOKEN = 0x5EA1", f"TOKEN = {token}"), "PROCESSES = False", f"PROCESSES = {new}")
        (folder / "beside.txt").write_text("x")
        exam = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 2}\nmetrics: [accuracy]"
        job = f"seeds: [0]\nsealing: {sealing}"
        file = write_job(folder, plugin=source, name="Hoarder", hyperparameters="", testenv=exam, job=job)
        if apart:
            path, python = folder / "algorithm.yaml", f"algorithm:\n  python: {sys.executable}\n"
            path.write_text(edited(path.read_text(), "algorithm:\n", python))
        results = ianvs.run(file)
        assert only(results).sealing.copies == ("new processes" if new else "forks")
        return written(results)[0]

    return found


@closed
@filtered
@pytest.mark.parametrize("new", [False, True], ids=["forks", "new processes"])
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_passes_nothing_on(passed, way, new):
    """Each way works where nothing is sealed; a way that this machine does not have is skipped."""
    open_ = passed("open", new)
    if way not in open_:
        pytest.skip("it can't be prepared on this machine")
    if new in CLOSED_ANYWAY.get(way, ()):
        assert not open_[way]
    else:  # another test's case may touch what lies in /dev/shm at the same time
        assert any(passed("open", new, attempt)[way] for attempt in range(3))
    assert not passed("normal", new).get(way, False)
    assert not passed("strict", True).get(way, False)


@closed
@filtered
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_in_another_interpreter_passes_nothing_on(passed, way):
    open_ = passed("open", True, apart=True)
    if way not in open_:
        pytest.skip("it can't be prepared on this machine")
    if True not in CLOSED_ANYWAY.get(way, ()):
        assert any(passed("open", True, attempt, apart=True)[way] for attempt in range(3))
    assert not passed("normal", True, apart=True).get(way, False)


def test_a_copy_is_handed_no_training_data(tmp_path):
    """By the connection of the process, which its frames lead to: the keeper would count, and tell the learner."""
    asking = plugin(
        predict="""
        import sys
        frame = sys._getframe()
        while type(frame.f_locals.get("self")).__name__ != "LearnerHost":
            frame = frame.f_back
        keeper = frame.f_locals["self"]._keeper
        try:
            keeper.call("feed", {"first": 1, "last": 1, "past": True})
        except Exception as error:
            return [int("not to one that is asked" not in str(error))] * len(data)
        return [1] * len(data)
    """
    )
    results = sat(tmp_path, asking)
    assert {int(label) for labels in answers(results) for label in labels} == {0}
    assert not only(results).bound


@filtered
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of x86_64")
def test_a_learner_can_not_make_the_calls_that_shut_its_copies_in_do_nothing(tmp_path):
    """By a filter of its own, under which seccomp(2) returns 0 and is not made. Such a learner is not forked."""
    faking = plugin(
        train="""
        import ctypes, struct
        code = b"".join(struct.pack("<HBBI", *one) for one in (
            (0x20, 0, 0, 0), (0x15, 0, 1, 317), (0x06, 0, 0, 0x00050000), (0x06, 0, 0, 0x7FFF0000)))
        class Program(ctypes.Structure):
            _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))
        if round == 1:
            assert ctypes.CDLL(None).prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
    """,
        predict="""
        import socket
        try:
            socket.socket().close()
        except OSError:
            return [0] * len(data)
        return [1] * len(data)
    """,
    )
    results = sat(tmp_path, faking)
    assert {int(label) for labels in answers(results) for label in labels} == {0}
    assert [one.sealing.copies for one in only(results).rounds] == ["forks", *["new processes"] * 5]


@closed
@filtered
@pytest.mark.parametrize(("sealing", "moves"), [("open", True), ("normal", False)])
def test_what_a_learner_has_started_stands_still_while_a_copy_answers(tmp_path, sealing, moves):
    """A daemon counts, and goes on when the learner does: each round of training waits for it."""
    counting = plugin(
        train="""
        import pathlib, subprocess, sys, time
        count = pathlib.Path(folder / "count")
        if not count.exists():
            script = f"n = 0\\nwhile True:\\n    n += 1\\n    open({str(count)!r}, 'w').write(str(n))"
            subprocess.run(["setsid", "--fork", sys.executable, "-c", script], check=True)
        before = count.read_text() if count.exists() else ""
        while not count.exists() or count.read_text() in ("", before):
            time.sleep(0.001)
    """,
        predict="""
        import time
        count = folder / "count"
        if not count.exists():
            return [0] * len(data)
        first = count.read_text()
        for _ in range(PATIENCE):
            if (now := count.read_text()) != first:
                break
            time.sleep(0.005)
        return [int(now != first)] * len(data)
    """.replace("PATIENCE", str(60_000 if moves else 40)),
    )
    results = sat(tmp_path, counting, job=f"seeds: [0]\nsealing: {sealing}")
    assert (1 in {int(label) for labels in answers(results) for label in labels}) is moves


# --- what a learner can get hold of ---------------------------------------------------------------------------------


def test_neither_frames_nor_memory_hold_more_than_the_round(tmp_path):
    looking = plugin(
        train="""
        import gc, json, sys
        import numpy as np
        most, frame = 0, sys._getframe()
        objects = gc.get_objects()
        while frame:
            objects += frame.f_locals.values()
            frame = frame.f_back
        seen = set()
        for one in objects:
            try:
                for value in vars(one).values() if hasattr(one, "__dict__") else (one,):
                    if isinstance(value, np.ndarray) and value.ndim and id(value) not in seen:
                        seen.add(id(value))
                        root = value
                        while isinstance(root.base, np.ndarray):
                            root = root.base
                        most = max(most, len(value), root.nbytes // max(1, value[:1].nbytes))
            except Exception:
                continue
        maps = [line for line in open("/proc/self/maps") if ".npy" in line or ".npz" in line]
        with (folder / "found.json").open("a") as file:
            file.write(json.dumps([len(train_data), most, maps]) + "\\n")
    """
    )
    for samples, most, maps in written(sat(tmp_path, looking)):
        assert most < 2 * samples * 65  # the file of a round holds all of its columns
        assert not maps


@closed
def test_neither_the_exam_nor_other_cases_can_be_opened(tmp_path):
    reading = plugin(
        train="""
        import json, os, pathlib
        opened = []
        for path in TOP.glob("**/*"):
            try:
                if path.is_file():
                    path.read_bytes()
                    opened.append(str(path.relative_to(TOP)))
            except OSError:
                pass
        for path in PATHS:
            for name in list(pathlib.Path(path).glob("*")) + [pathlib.Path(path)]:
                try:
                    name.read_bytes()
                    opened.append(str(name))
                except OSError:
                    pass
        with (folder / "found.json").open("a") as file:
            file.write(json.dumps(opened) + "\\n")
    """,
        head=f"""
        import pathlib
        TOP = pathlib.Path({str(tmp_path / "ws")!r})
        PATHS = [str(TOP), str(TOP / "exams"), str(TOP / "cache")]
    """,
    )
    [found] = results = sat(tmp_path, reading)
    for opened in written(results):
        assert all(name.startswith(f"cases/{found.case.id}/files/") for name in opened), opened
    [truth] = (tmp_path / "ws" / "exams").glob("*/truth.npz")
    known = plugin(
        train=f"""
        try:
            open({str(truth)!r}, "rb")
        except PermissionError:
            pass
        else:
            raise SystemExit(7)
    """
    )
    (tmp_path / "plugin.py").write_text(known)
    [again] = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert again.status == "finished", again.failure


@closed
def test_files_of_the_data_are_closed(tmp_path):
    rows = "\n".join(f"{i},{i % 7},{i % 3}" for i in range(60))
    for part in ("train", "test"):
        (tmp_path / f"{part}.csv").write_text(f"a,b,label\n{rows}\n")
    reading = plugin(train=f"open({str(tmp_path / 'test.csv')!r})")
    exam = "dataset: {train_data: ./test.csv, test_data: ./test.csv, label: label}\nmetrics: [accuracy]"
    path = write_job(tmp_path, plugin=reading, hyperparameters="", testenv=exam, job="seeds: [0]")
    [found] = ianvs.run(path)
    assert found.failure is not None
    assert "test.csv" in found.failure.message
    assert "docs/trust.md" in found.failure.message


@closed
def test_rivals_can_not_be_changed(tmp_path):
    changing = plugin(
        train=f"""
        import pathlib
        for path in pathlib.Path({str(tmp_path / "ws" / "cases")!r}).glob("*/result.json"):
            path.write_text("{{}}")
        for path in RIVALS:
            try:
                pathlib.Path(path).write_text("{{}}")
            except PermissionError:
                continue
            raise SystemExit(7)
    """,
        head="RIVALS = []",
    )
    honest = sat(tmp_path, MAJORITY)
    score = only(honest).directory / "result.json"
    before = score.read_bytes()
    (tmp_path / "plugin.py").write_text(edited(changing, "RIVALS = []", f"RIVALS = [{str(score)!r}]"))
    [found] = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert found.status == "finished", found.failure
    assert score.read_bytes() == before


@closed
def test_nothing_is_passed_on_from_seed_to_seed(tmp_path):
    stash = plugin(
        head="""
        import os, pathlib, tempfile
        PLACES = [pathlib.Path(tempfile.gettempdir()), pathlib.Path("/tmp"), pathlib.Path.home(), pathlib.Path.cwd(),
                  pathlib.Path(__file__).parent, pathlib.Path("/var/tmp")]
    """,
        train="""
        import json
        def there(place):
            try:
                return (place / f"stash-{1 - seed}").exists()
            except OSError:
                return False
        with (folder / "found.json").open("a") as file:
            file.write(json.dumps([str(place) for place in [folder, *PLACES] if there(place)]) + "\\n")
        for place in [folder, folder.parent, folder.parent.parent, *PLACES]:
            try:
                (place / f"stash-{seed}").write_text("class means")
            except OSError:
                pass
    """,
    )
    results = sat(tmp_path, stash, job="seeds: [0, 1]\njobs: 1\nsealing: strict")
    for found in results:
        assert found.status == "finished", found.failure
        told = (found.directory / "files" / "found.json").read_text().splitlines()
        assert all(json.loads(line) == [] for line in told)


# --- scores and times -----------------------------------------------------------------------------------------------


def test_patching_ianvs_in_its_own_process_changes_nothing(tmp_path):
    patching = MAJORITY + dedent("""
        import ianvs.running.scoring as scoring
        import ianvs.store.case_store as store, ianvs.exam.metrics.registry as registry
        scoring.score_of = lambda *_: (1.0, None)
        scoring.score_case = lambda *_: None
        store.CaseStore.write_score = lambda *_: None
        registry.resolve = None
    """)
    honest, cheating = sat(tmp_path / "a", MAJORITY), sat(tmp_path / "b", patching)
    assert only(cheating).metrics["accuracy"] == only(honest).metrics["accuracy"]


def test_times_are_not_taken_by_the_learners_clock(tmp_path):
    frozen = plugin(
        train="""
        import time
        time.sleep(0.2)
        time.perf_counter = time.monotonic = time.process_time = time.clock_gettime = lambda *_: 0.0
    """
    )
    [found] = sat(tmp_path, frozen)
    assert all(round_.train_seconds >= 0.2 for round_ in found.rounds[1:])


def test_training_in_a_thread_gains_nothing(tmp_path):
    """What a thread learns after train() is not in what answers, and its processor time is counted as training."""
    hidden = plugin(
        head="import threading, time",
        train="""
        self.late = 0
        def work():
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                sum(range(1000))
            self.late = 1
        self.thread = threading.Thread(target=work)
        self.thread.start()
    """,
        predict="""
        if getattr(self, "thread", None):
            self.thread.join()
        return [getattr(self, "late", 0)] * len(data)
    """,
    )
    [found] = results = sat(tmp_path, hidden)
    assert {int(label) for labels in answers(results) for label in labels} == {0}
    assert sum(round_.train_cpu_seconds for round_ in found.rounds[2:]) > 0.4


# --- the connection -------------------------------------------------------------------------------------------------


def test_a_pickle_in_every_open_socket_runs_nowhere(tmp_path):
    marker = tmp_path / "ran"
    sending = plugin(
        train=f"""
        import os, pickle, socket
        class Bomb:
            def __reduce__(self):
                return (open, ({str(marker)!r}, "w"))
        for name in os.listdir("/proc/self/fd"):
            try:
                os.write(int(name), pickle.dumps(Bomb())) if int(name) > 2 else None
            except OSError:
                pass
    """
    )
    source = MAJORITY + "\n" + edited(sending, "class Majority", "class Sending")
    path = write_job(tmp_path, plugin=source, hyperparameters="", job="seeds: [0]")
    (tmp_path / "sending.yaml").write_text(
        edited((tmp_path / "algorithm.yaml").read_text(), "name: Majority", "name: Sending")
    )
    path.write_text(
        edited(path.read_text(), "algorithm.yaml}", "algorithm.yaml}\n      - {name: sending, url: ./sending.yaml}")
    )
    results = {found.case.algorithm: found for found in ianvs.run(path)}
    assert results["majority"].status == "finished"
    assert results["sending"].status == "failed"
    assert not marker.exists()


@closed
def test_a_learner_can_not_end_its_keeper(tmp_path):
    killing = plugin(
        train="""
        import os, signal
        try:
            os.kill(os.getppid(), signal.SIGKILL)
        except PermissionError:
            pass
    """
    )
    [found] = sat(tmp_path, killing)
    assert found.status == "finished", found.failure


# --- honest learners ------------------------------------------------------------------------------------------------


def test_one_that_adapts_in_testing_says_so_and_is_marked(tmp_path):
    adapting = edited(
        plugin(
            predict="""
        self.asked = getattr(self, "asked", 0) + 1
        return [self.asked] * len(data)
    """
        ),
        "class Majority:",
        "class Majority:\n    adapts_in_testing = True\n",
    )
    [found] = results = sat(tmp_path, adapting)
    assert [int(labels[0]) for labels in answers(results)[::5]] == [1, 2, 3, 4, 5, 6]
    assert found.sealing.copies == "none"


def test_answers_of_forks_and_of_new_processes_are_the_same(tmp_path):
    waiting = "import threading as t\n        t.Thread(target=t.Event().wait, daemon=True).start()"
    threaded = edited(MAJORITY, "        self.bias,", f"        {waiting}\n        self.bias,")
    forked, new = sat(tmp_path / "a", MAJORITY), sat(tmp_path / "b", threaded)
    assert (only(forked).sealing.copies, only(new).sealing.copies) == ("forks", "new processes")
    for one, other in zip(answers(forked), answers(new), strict=True):
        np.testing.assert_array_equal(one, other)
