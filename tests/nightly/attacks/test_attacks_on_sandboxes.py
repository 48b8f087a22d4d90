"""Ways to get at the exam from a learner's code: each works with `sealing: off` and gains nothing under `strict`.

The learner remembers nothing but the samples of its last round, so that it knows half of the classes of an exam of two
rounds. Who steals labels, or carries what was asked over to the next round, answers all of them.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.exam.data.split import stratified_split
from ianvs.processes.sandbox import missing_sandbox
from tests.jobs import write_job

pytestmark = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")

HONEST, GAINED = 0.6, 0.85  # accuracy: at most without a way, at least with one

PLUGIN = '''
import contextlib, ctypes, gzip, importlib.util, glob, io, mmap, os, pathlib, socket, sys, tempfile, time
import numpy as np

HERE = {here}
def flat(data):
    return np.ascontiguousarray(np.asarray(data.x, np.float32).reshape(len(data), -1))
def bits(x):
    return x > 0.5
{way}

class Forgetful:
    """Nearest neighbour among the samples of the last round, and what a cheat knows beside it."""
    def __init__(self):
        self.x = self.y = None
        self.labels, self.best, self.asked = {{}}, {{}}, None
    def train(self, train_data, valid_data=None):
        self.x, self.y = flat(train_data), np.asarray(train_data.y)
        with contextlib.suppress(Exception):
            self.labels |= steal()
        with contextlib.suppress(Exception):
            asked = get(self)
            pixels = bits(self.x) if asked.dtype == bool else self.x
            for one in asked:
                distances = (pixels ^ one).sum(1) if asked.dtype == bool else ((pixels - one) ** 2).sum(1)
                near = int(distances.argmin())
                found = (float(distances[near]), int(self.y[near]))
                self.best[one.tobytes()] = min(found, self.best.get(one.tobytes(), found))
    def predict(self, data):
        x = flat(data)
        with contextlib.suppress(Exception):
            put(self, x)
        return [self.label_of(one) for one in x]
    def label_of(self, one):
        if one.tobytes() in self.labels:
            return self.labels[one.tobytes()]
        known = self.best.get(one.tobytes()) or self.best.get(bits(one).tobytes())
        if known is not None:
            return known[1]
        return 0 if self.x is None else int(self.y[((self.x - one) ** 2).sum(1).argmin()])
    def save(self, path):
        path = path.with_suffix(".npy")
        np.save(path, np.array([self.x, self.y, self.labels, self.best], object), allow_pickle=True)
        return path
    def load(self, path):
        self.x, self.y, self.labels, self.best = np.load(path, allow_pickle=True)
'''

PAIRS = """
def pairs(x, y):
    x = np.ascontiguousarray(np.asarray(x, np.float32).reshape(len(x), -1))
    return {one.tobytes(): int(label) for one, label in zip(x, y)}
"""
STEAL = {
    "a file of an installed package": """
def steal():
    folder = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
    table = np.loadtxt(gzip.open(folder / "datasets/data/digits.csv.gz"), delimiter=",")
    return pairs((table[:, :-1] / 16), table[:, -1])
""",
    "the cache of the workspace": """
def steal():
    [x], [y] = (glob.glob(f"{HERE}/ws/cache/*/{name}_test.npy") for name in "xy")
    return pairs(np.load(x), np.load(y))
""",
    "another workspace": """
def steal():
    [x], [y] = (glob.glob(f"{HERE}/before/ws/cache/*/{name}_test.npy") for name in "xy")
    return pairs(np.load(x), np.load(y))
""",
    "files below root": """
def steal():
    test = np.load(f"{HERE}/data/test.npz")
    return pairs(test["x"], test["y"])
""",
    "a file that a function reads": """
def steal():
    test = np.load(f"{HERE}/elsewhere/digits.npz")
    return pairs(test["x"], test["y"])
""",
    "what was copied when the file was imported": """
PLACE = pathlib.Path(sys.prefix) / f"{pathlib.Path(HERE).name}-stolen.npz"
with contextlib.suppress(Exception):
    folder = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
    table = np.loadtxt(gzip.open(folder / "datasets/data/digits.csv.gz"), delimiter=",")
    np.savez(PLACE, x=table[:, :-1] / 16, y=table[:, -1])
def steal():
    test = np.load(PLACE)
    return pairs(test["x"], test["y"])
""",
    "a server, as a task of Ray would be": """
def steal():
    with socket.create_connection(("127.0.0.1", int(pathlib.Path(HERE, "port").read_text())), 5) as server:
        test = np.load(io.BytesIO(server.makefile("rb").read()))
    return pairs(test["x"], test["y"])
""",
}
NOTE = """
def put(self, x):
    np.save(PLACE, x)
def get(self):
    return np.load(PLACE)
"""
CARRY = {
    "an attribute": """
def put(self, x):
    self.asked = x
def get(self):
    return self.asked
""",
    "a file in its own folder": "PLACE = 'asked.npy'" + NOTE,
    "a temporary file": "PLACE = f'/var/tmp/{pathlib.Path(HERE).name}.npy'" + NOTE,
    "a file in /dev/shm": "PLACE = f'/dev/shm/{pathlib.Path(HERE).name}.npy'" + NOTE,
    "a module that forks remember": """
def put(self, x):
    np.asked = x
    os.register_at_fork(before=lambda: None)
    sys.addaudithook(lambda *event: None)
def get(self):
    return np.asked
""",
    "times of files": """
def put(self, x):
    for number, one in enumerate(bits(x)):
        for half in (0, 1):
            pathlib.Path(f"time-{number}-{half}").touch()
            value = int.from_bytes(np.packbits(one[32 * half :][:32]).tobytes(), "big")
            os.utime(f"time-{number}-{half}", (value, value))
def get(self):
    rows = []
    for number in range(len(glob.glob("time-*-0"))):
        halves = [int(os.stat(f"time-{number}-{half}").st_mtime).to_bytes(4, "big") for half in (0, 1)]
        rows.append(np.unpackbits(np.frombuffer(b"".join(halves), np.uint8)).astype(bool))
    return np.array(rows)
""",
    "pages in the cache": """
PAGE, MANY, PAGES = 4096, 400 * 64, f"/var/tmp/{pathlib.Path(HERE).name}.pages"
def put(self, x):
    if not pathlib.Path(PAGES).exists():
        pathlib.Path(PAGES).write_bytes(b"")
        os.truncate(PAGES, PAGE * MANY)
    with open(PAGES, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for number in np.flatnonzero(bits(x)):
            os.pread(file.fileno(), 1, int(number) * PAGE)
    self.count = len(x)
def get(self):
    with open(PAGES, "rb") as file:
        memory = np.frombuffer(mmap.mmap(file.fileno(), PAGE * MANY, access=mmap.ACCESS_READ), np.uint8)
    state = (ctypes.c_ubyte * MANY)()
    ctypes.CDLL(None).mincore(ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(PAGE * MANY), state)
    rows = (np.frombuffer(state, np.uint8) & 1).astype(bool).reshape(-1, 64)
    return rows[: self.count]
""",
    "a process that stays": """
NAME = chr(0) + pathlib.Path(HERE).name
def put(self, x):
    buffer = io.BytesIO(); np.save(buffer, x)
    if os.fork():
        time.sleep(0.2)
        return
    os.setsid()
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(60); server.bind(NAME); server.listen()
        server.accept()[0].sendall(buffer.getvalue())
    os._exit(0)
def get(self):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(NAME)
        return np.load(io.BytesIO(client.makefile("rb").read()))
""",
}
DIGITS = "dataset: {name: digits}\n"
EXAMS = {
    "files below root": "dataset: {root: ./data, train_data: train.npz, test_data: test.npz}\n",
    "a file that a function reads": "dataset: {name: my_digits, url: ./my_data/my_digits.py}\n",
}
FUNCTION = """
import numpy as np
def my_digits(root=None):
    test, train = np.load({test!r}), np.load({train!r})
    return (train["x"], train["y"]), (test["x"], test["y"])
"""


def write_data(folder: Path) -> None:
    """The digits as files of a user: below root, and where only a function finds them."""
    import sklearn.datasets

    table = sklearn.datasets.load_digits()
    x, y = (table.data / 16).astype(np.float32).reshape(-1, 8, 8, 1), table.target.astype(np.int64)
    train, test = stratified_split(y, len(y), 0.2, np.random.default_rng(0))
    for name in ("data", "elsewhere", "my_data"):
        (folder / name).mkdir(parents=True)
    np.savez(folder / "data/train.npz", x=x[train], y=y[train])
    np.savez(folder / "data/test.npz", x=x[test], y=y[test])
    np.savez(folder / "elsewhere/digits.npz", x=x[test], y=y[test])
    files = {"test": str(folder / "elsewhere/digits.npz"), "train": str(folder / "data/train.npz")}
    (folder / "my_data/my_digits.py").write_text(FUNCTION.format(**files))


@contextlib.contextmanager
def server_of_labels(folder: Path) -> Iterator[None]:
    """Context manager: a process of another user, or a worker of Ray, would serve what it can read."""
    content = (folder / "data/test.npz").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:
        (folder / "port").write_text(str(server.getsockname()[1]))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        client.sendall(content)

        threading.Thread(target=serve, daemon=True).start()
        yield


def examined(
    folder: Path,
    way: str,
    *,
    sealing: str,
    exam: str = DIGITS,
    more: str = "",
    plugin: str = PLUGIN,
    job: str = "",
    engine: str = "inline",
) -> list[CaseResult]:
    """engine: "local" for what forks or stays, which would go on with the tests themselves."""
    testenv = f"{exam}scenario: {{name: class-incremental, rounds: 2}}\nmetrics: [accuracy]\n{more}"
    source = plugin.format(here=repr(str(folder)), way=way)
    path = write_job(
        folder,
        engine=engine,
        plugin=source,
        name="Forgetful",
        hyperparameters="",
        testenv=testenv,
        job=f"sealing: {sealing}\n{job}",
    )
    found = list(ianvs.run(path))
    for case in found:
        assert case.status == "finished", case.failure
    return found


def last_accuracy(case: CaseResult) -> float:
    return float(np.mean(case.matrices["accuracy"].values[-1]))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With a name of its own, by which notes in common folders are found and removed."""
    found = tmp_path / f"exam-{uuid.uuid4().hex}"
    write_data(found)
    yield found
    for place in ("/dev/shm", "/var/tmp", sys.prefix):
        for path in Path(place).glob(f"{found.name}*"):
            path.unlink()


@pytest.mark.parametrize("way", STEAL)
@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_labels_can_be_stolen_only_without_sandboxes(folder: Path, way: str, sealing: str) -> None:
    if way == "another workspace":
        examined(folder / "before", "", sealing="off")
    with server_of_labels(folder):
        [case] = examined(folder, PAIRS + STEAL[way], sealing=sealing, exam=EXAMS.get(way, DIGITS))
    accuracy = last_accuracy(case)
    assert accuracy > GAINED if sealing == "off" else accuracy < HONEST


@pytest.mark.parametrize("way", CARRY)
@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_what_was_asked_reaches_a_later_round_only_without_sandboxes(folder: Path, way: str, sealing: str) -> None:
    [case] = examined(folder, CARRY[way], sealing=sealing, engine="local")
    accuracy = last_accuracy(case)
    assert accuracy > GAINED if sealing == "off" else accuracy < HONEST


@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_a_note_for_the_next_seed_is_read_only_without_sandboxes(folder: Path, sealing: str) -> None:
    """It is written when the case is examined, and read when another is trained."""
    way = CARRY["a temporary file"].replace("def put(self, x):", "def put(self, x):\n    if self.best: return")
    cases = examined(folder, way, sealing=sealing, job="seeds: [0, 1]\njobs: 1")
    accuracy = max(map(last_accuracy, cases))
    assert accuracy > GAINED if sealing == "off" else accuracy < HONEST
    if sealing == "strict":
        times = [case.provenance["sandboxes"] for case in cases]
        assert max(one["trained_at"] for one in times) < min(one["evaluated_at"] for one in times)


HOARDER = '''
import numpy as np
{way}
HERE = {here}
class Forgetful:
    """Keeps all samples where `memory` does not show them."""
    def __init__(self):
        self.x, self.y, self.memory = np.zeros((0, 64), np.float32), np.zeros(0, int), []
    def train(self, train_data, valid_data=None):
        self.x = np.concatenate([self.x, np.asarray(train_data.x, np.float32).reshape(len(train_data), -1)])
        self.y = np.concatenate([self.y, train_data.y])
        self.memory = [0]
    def predict(self, data):
        x = np.asarray(data.x, np.float32).reshape(len(data), -1)
        return [int(self.y[((self.x - one) ** 2).sum(1).argmin()]) if len(self.y) else 0 for one in x]
    def save(self, path):
        saved = slice(None) if SAVES else slice(-700, None)
        np.savez(path.with_suffix(".npz"), x=self.x[saved], y=self.y[saved])
        return path.with_suffix(".npz")
    def load(self, path):
        found = np.load(path)
        self.x, self.y = found["x"], found["y"]
'''


@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_what_is_kept_outside_of_memory_counts_in_sandboxes(folder: Path, sealing: str) -> None:
    budget = "budget: {memory_bytes: 250000, over: mark}\n"
    [case] = examined(folder, "SAVES = True", sealing=sealing, plugin=HOARDER, more=budget)
    assert last_accuracy(case) > GAINED
    assert bool(case.over_budget) is (sealing == "strict")


@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_what_is_not_saved_is_gone_in_sandboxes(folder: Path, sealing: str) -> None:
    [case] = examined(folder, "SAVES = False", sealing=sealing, plugin=HOARDER)
    accuracy = last_accuracy(case)
    assert accuracy > GAINED if sealing == "off" else accuracy < HONEST


RIGHTS = """
import os, socket
def put(self, x): pass
def get(self):
    found = []
    for name, do in {
        "hostname": lambda: socket.sethostname(socket.gethostname()),
        "rival": lambda: os.sched_setaffinity(RIVAL, os.sched_getaffinity(RIVAL)),
    }.items():
        try:
            do()
            found.append(name)
        except OSError:
            pass
    open("rights-" + "-".join(found), "w").close()
"""


@pytest.mark.skipif(sys.platform != "linux" or getpass.getuser() != "root", reason="only root has them")
@pytest.mark.parametrize("sealing", ["off", "strict"])
def test_rights_of_root_are_there_only_without_sandboxes(folder: Path, sealing: str) -> None:
    [case] = examined(folder, f"RIVAL = {os.getpid()}\n{RIGHTS}", sealing=sealing)
    names = {path.name for path in (case.directory / "files").iterdir()}
    assert names == ({"rights-hostname-rival"} if sealing == "off" else {"rights-"})


REFERENCE = """
import ianvs.exam.paradigms.single_model as paradigms
paradigms.IncrementalLearning.reference = paradigms.IncrementalLearning.cumulative = True
"""


def test_a_learner_that_calls_itself_a_reference_is_marked_as_one_that_saw_past_rounds(folder: Path) -> None:
    [case] = examined(folder, REFERENCE, sealing="strict")
    assert case.rounds[-1].bound


AS_NOBODY = """
set -e
mkdir "$1/interpreter"
mount --bind "$2" "$1/interpreter"
mount -t tmpfs -o mode=755 none "$3"
mkdir -p "$2"
mount --bind "$1/interpreter" "$2"
chown -R nobody "$1"
exec setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all --bounding-set=-all "${@:4}"
"""
"""In a mount namespace: $2, the base interpreter, becomes reachable below $3, a home that only root may enter."""


@pytest.mark.skipif(getpass.getuser() != "root", reason="the tests above ran as an ordinary user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing")
def test_an_ordinary_user_gains_nothing_either() -> None:
    base = Path(sys.base_prefix)
    home = next(
        (path for path in reversed(base.parents) if path != Path("/") and not path.stat().st_mode & 0o001), None
    )
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are below folders that only root may enter
        wrapper = ["unshare", "-m", "bash", "-c", AS_NOBODY, "as_nobody", folder, str(base), str(home)]
        if home is None:
            wrapper = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
            shutil.chown(folder, "nobody")
        tests = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", f"--basetemp={folder}/runs"]
        tests += [str(Path(__file__)), "-k", "strict and not rights and not ordinary"]
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "USER": "nobody", "LOGNAME": "nobody"}
        environment |= {"TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([*wrapper, *tests], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
