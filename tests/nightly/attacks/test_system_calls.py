"""Every system call is in a class; what is denied fails in a sealed process, with an error and not with a signal."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import json
import mmap
import os
import platform
import re
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ianvs.processes.engines.forked import live
from ianvs.processes.sealing import system_calls
from ianvs.processes.sealing.landlock import confine, landlock_version
from ianvs.processes.sealing.seccomp import copy_filter, deny_watching, seal_calls
from ianvs.processes.sealing.system_calls import (
    ARCHITECTURES,
    CHECKED,
    IGNORED,
    LEARNERS,
    LEARNERS_OWN,
    OWN_PROCESS,
    classes,
    machine,
    numbers,
)
from tests.kernel import filters_calls

filtered = pytest.mark.skipif(not filters_calls(), reason="the kernel has no seccomp")
NAMES = list(numbers(machine() or "x86_64"))
HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def within(life: Callable[[], object], seal: Callable[[], object] = seal_calls) -> object:
    """What `life` returns in a fork of this process after `seal`; what JSON can hold."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:

        def sealed() -> None:
            seal()
            os.write(writing, json.dumps(life()).encode())

        live(sealed)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return json.loads(told)


def error_of(name: str, *arguments: int) -> int:
    """What a call ends with when it is made with these arguments, zeros behind them; 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    given = [ctypes.c_long(argument) for argument in (*arguments, *[0] * (6 - len(arguments)))]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(numbers(machine() or "")[name]), *given) == -1 else 0


# --- the tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_call_is_in_one_class_and_each_class_has_a_reason(architecture):
    found = classes(architecture)
    assert set(found) == set(numbers(architecture))
    assert len(set(numbers(architecture).values())) == len(found) > 300
    assert all(kind in ("allowed", "checked", "missing", "denied") and reason for kind, reason in found.values())
    assert {name for name, (kind, _) in found.items() if kind == "checked"} <= set(CHECKED)
    assert {*LEARNERS, *LEARNERS_OWN} - set(found) <= {"inotify_init", "mknod"}  # of x86_64 alone


def test_a_call_without_a_class_is_found(monkeypatch):
    known = [*system_calls._sections()]
    for changed, message in (
        ([one for one in known if not one[0].startswith("missing")], "in no class: clone3"),
        ([*known, ("denied, twice", ["read"])], "in several classes: read"),
    ):
        monkeypatch.setattr(system_calls, "_sections", lambda changed=changed: changed)
        with pytest.raises(ValueError, match=message):
            classes.__wrapped__("x86_64")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_numbers_are_those_of_libseccomp(architecture):
    path = ctypes.util.find_library("seccomp")
    if path is None:
        pytest.skip("libseccomp is not installed")
    library = ctypes.CDLL(path)
    library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p
    compared = 0
    for name, number in numbers(architecture).items():
        found = library.seccomp_syscall_resolve_num_arch(ctypes.c_uint32(ARCHITECTURES[architecture]), number)
        if found:  # else the library is older than the call
            assert ctypes.string_at(found).decode() == name
            compared += 1
    assert compared > 250


@pytest.mark.skipif(not HEADER.exists(), reason="the kernel's headers are not installed")
def test_no_call_of_the_kernels_headers_is_left_out():
    found = re.findall(r"__NR_(\w+)\s+(\d+)", HEADER.read_text())
    assert {name: int(number) for name, number in found}.items() <= numbers("x86_64").items()


# --- a sealed process ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def errors() -> dict[str, int]:
    """Of each call that is not always allowed, in a sealed process, with arguments that are refused."""
    if not filters_calls():
        pytest.skip("the kernel has no seccomp")
    refused = dict.fromkeys(CHECKED, -2)  # no process, option, command or kind of socket has this number
    refused |= {"clone": 0, "prlimit64": 0}
    tried = [name for name, (kind, _) in classes(machine() or "").items() if kind != "allowed"]

    def life() -> dict[str, int]:
        found = {}
        for name in tried:
            arguments = [refused.get(name, 0)] * 3
            if name == "open":
                arguments = [0, os.O_RDONLY | os.O_TRUNC]
            if name == "openat":
                arguments = [0, 0, os.O_RDONLY | os.O_TRUNC]
            if name == "prlimit64":
                arguments = [0, 0, 1]
            before = os.getpid()
            found[name] = error_of(name, *arguments)
            if os.getpid() != before:
                os._exit(1)  # a fork that should not be
        return found

    return within(life)  # type: ignore[return-value]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_is_denied_fails_with_an_error(errors, name):
    kind, _ = classes(machine() or "x86_64")[name]
    wanted = {"allowed": None, "checked": errno.EPERM, "denied": errno.EPERM, "missing": errno.ENOSYS}[kind]
    assert errors.get(name) == (0 if name == IGNORED else wanted)


@filtered
def test_a_call_that_is_in_no_table_is_missing():
    number = ctypes.c_long(max(numbers(machine() or "").values()) + 1)

    def life() -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(number)
        return ctypes.get_errno()

    assert within(life) == errno.ENOSYS


@filtered
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of x86_64")
def test_numbers_of_other_machines_are_denied():
    """x32, which adds a bit to the number; and those of 32 bits, by `int 0x80`."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    by_interrupt = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def life() -> list[int]:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(ctypes.c_long(0x40000000 | numbers("x86_64")["getpid"]))
        return [ctypes.get_errno(), -by_interrupt()]

    assert within(life) == [errno.ENOSYS, errno.EPERM]


@filtered
def test_what_libraries_need_works():
    """Threads, temporary files, pairs of sockets, memory files, signals to itself, questions about itself."""

    def life() -> bool:
        threads = [threading.Thread(target=sum, args=([1, 2],)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one, other = socket.socketpair()
        one.send(b"x")
        assert other.recv(1) == b"x"
        file = os.memfd_create("x")
        os.write(file, b"x" * 8192)
        os.ftruncate(file, 4096)
        with mmap.mmap(file, 4096) as memory:
            memory[0] = 1
        heard: list[int] = []
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
        os.kill(os.getpid(), signal.SIGUSR1)
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        assert [*Path("/proc/self/fd").iterdir()]
        return heard == [1] and sys.stdout.isatty() in (True, False)

    assert within(life) is True


@filtered
def test_all_threads_of_a_process_are_sealed():
    go, done = threading.Event(), threading.Event()
    found: list[int] = []

    def life() -> list[int]:
        def wait() -> None:
            go.wait()
            found.append(error_of("socket", 1, 1))
            done.set()

        threading.Thread(target=wait).start()
        seal_calls()
        go.set()
        done.wait()
        return found

    assert within(life, seal=lambda: None) == [errno.EPERM]


@filtered
def test_the_filter_is_built_once():
    assert copy_filter() is copy_filter()
    assert OWN_PROCESS.to_bytes(4, "little") in copy_filter()


@filtered
def test_a_learner_can_not_watch_its_copies_and_may_do_all_else():
    def life() -> list[int]:
        watching = [error_of("inotify_init1"), error_of("perf_event_open"), error_of("ptrace", 0)]
        return [*watching, error_of("prctl", 36, 1), error_of("fcntl", 0, 1026, 1), error_of("socket", 1, 1)]

    assert within(life, deny_watching) == [errno.EPERM] * 5 + [0]


@filtered
def test_a_learner_sets_limits_and_priorities_of_no_other_process():
    other = os.getpid()

    def life() -> list[int]:
        others = [error_of("prlimit64", other), error_of("setpriority", 0, other), error_of("setpriority", 2)]
        os.nice(0)
        resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
        resource.prlimit(os.getpid(), resource.RLIMIT_CORE)
        return others

    assert within(life, deny_watching) == [errno.EPERM] * 3


@filtered
def test_a_thread_that_asks_for_a_processor_starts():
    """OpenMP binds its threads, if it is told so, and can't start them where that fails."""

    def life() -> list[int]:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(error_of("sched_setaffinity", threading.get_native_id())))
        thread.start()
        thread.join()
        return found

    assert within(life) == [0]


# --- what can be written in a copy -----------------------------------------------------------------------------------


def into_pipe() -> None:
    os.write(os.pipe()[1], b"x")


OWN, DENY = True, False
WRITABLE: dict[str, tuple[bool, str, Callable[[str, str], object]]] = {
    # kind of object: (whether it may, why, how it is written, given a folder of its own and one of the learner)
    "file of its own": (OWN, "gone with its folder", lambda own, _: Path(own, "x").write_text("x")),
    "folder of its own": (OWN, "gone with its folder", lambda own, _: Path(own, "y").mkdir()),
    "link of its own": (OWN, "gone with its folder", lambda own, _: Path(own, "l").symlink_to("x")),
    "pipe of its own": (OWN, "nobody else has an end", lambda *_: into_pipe()),
    "pair of sockets": (OWN, "nobody else has an end", lambda *_: [end.send(b"x") for end in socket.socketpair()]),
    "memory file": (OWN, "nobody else has it", lambda *_: os.write(os.memfd_create("x"), b"x")),
    "/dev/null": (OWN, "keeps nothing", lambda *_: Path("/dev/null").write_text("x")),
    "file": (DENY, "Landlock", lambda _, its: Path(its, "old").write_text("x")),
    "new file": (DENY, "Landlock", lambda _, its: Path(its, "new").write_text("x")),
    "end of a file": (DENY, "seccomp, Landlock 3", lambda _, its: os.truncate(f"{its}/old", 0)),
    "file, emptied": (DENY, "seccomp", lambda _, its: os.open(f"{its}/old", os.O_RDONLY | os.O_TRUNC)),
    "folder": (DENY, "Landlock", lambda _, its: Path(its, "made").mkdir()),
    "name": (DENY, "Landlock", lambda _, its: Path(its, "old").rename(Path(its, "renamed"))),
    "name, from its own": (DENY, "Landlock", lambda own, its: Path(own, "x").rename(Path(its, "moved"))),
    "hard link": (DENY, "seccomp", lambda own, its: os.link(f"{its}/old", f"{own}/linked")),
    "link": (DENY, "Landlock", lambda _, its: Path(its, "link").symlink_to("old")),
    "absence": (DENY, "Landlock", lambda _, its: Path(its, "old").unlink()),
    "fifo": (DENY, "Landlock", lambda _, its: os.open(f"{its}/fifo", os.O_RDWR | os.O_NONBLOCK)),
    "new fifo": (DENY, "seccomp", lambda own, _: os.mkfifo(f"{own}/fifo")),
    "device": (DENY, "seccomp", lambda own, _: os.mknod(f"{own}/null", 0o20666, os.makedev(1, 3))),
    "socket": (DENY, "seccomp", lambda *_: socket.socket(socket.AF_UNIX)),
    "socket of packets": (DENY, "seccomp", lambda *_: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    "/dev/shm": (DENY, "Landlock", lambda *_: Path("/dev/shm/ianvs-test").write_text("x")),
    "semaphore of glibc": (DENY, "Landlock", lambda *_: __import__("multiprocessing").Semaphore()),
    "name of the process": (DENY, "Landlock", lambda *_: Path("/proc/self/comm").write_text("x")),
    "/proc/self/oom_score_adj": (DENY, "Landlock", lambda *_: Path("/proc/self/oom_score_adj").write_text("9")),
    "/proc/self/clear_refs": (DENY, "Landlock", lambda *_: Path("/proc/self/clear_refs").write_text("1")),
    "memory of its parent": (DENY, "Landlock", lambda *_: os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR)),
    "terminal": (DENY, "Landlock", lambda *_: os.open("/dev/ptmx", os.O_RDWR)),
    "time of a file": (DENY, "seccomp", lambda _, its: os.utime(f"{its}/old")),
    "mode of a file": (DENY, "seccomp", lambda _, its: Path(its, "old").chmod(0o600)),
    "owner of a file": (DENY, "seccomp", lambda _, its: os.chown(f"{its}/old", os.getuid(), -1)),
    "attribute of a file": (DENY, "seccomp", lambda _, its: os.setxattr(f"{its}/old", "user.x", b"x")),
    "lock": (DENY, "seccomp", lambda _, its: __import__("fcntl").flock(os.open(f"{its}/old", os.O_RDONLY), 1)),
}


@filtered
@pytest.mark.skipif(landlock_version() < 2, reason="the kernel has no Landlock that knows of renaming")
@pytest.mark.parametrize("kind", WRITABLE)
def test_an_object_that_a_copy_can_write_is_its_own(tmp_path, kind):
    may, reason, write = WRITABLE[kind]
    own, its = tmp_path / "own", tmp_path / "its"
    for folder in (own, its):
        folder.mkdir()
        (folder / "old").write_text("old")
    (own / "x").write_text("x")
    os.mkfifo(its / "fifo")

    def seal() -> None:
        assert confine(writable=[own, Path("/dev/null")])
        assert seal_calls() is not None

    def life() -> bool:
        try:
            write(str(own), str(its))
        except OSError as error:
            assert error.errno in (errno.EPERM, errno.EACCES, errno.EXDEV), error
            return False
        return True

    assert reason
    assert within(life, seal) is may
