"""What a process that answers an examination may ask of the kernel, and why; and what no learner may.

A copy may do what stays within it: compute, read files, write where Landlock lets it, talk to the keeper. A call that
leaves something which its learner could find is denied. system_calls.txt has every call in exactly one class.
"""

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

ARCHITECTURES: Mapping[str, int] = MappingProxyType({"x86_64": 0xC000003E, "aarch64": 0xC00000B7})
"""AUDIT_ARCH_... of <linux/audit.h>, by machine: a word by which a filter knows whose numbers a call has."""

OWN_PROCESS = 0x7FA55AE1
"""Stands in a condition for the number of the process that is sealed."""

Class = Literal["allowed", "checked", "missing", "denied"]

_READ_ONLY_OR_WRITING = (0, 1, 2, 0o1001, 0o1002)  # not O_TRUNC without writing, which Landlock 1 and 2 let pass
_EMPTIES = 0o1003
_NO_NAMESPACES, _THREAD = 0x7E020000 | 0x12900, 0x10900  # CLONE_NEW..., _THREAD, _PTRACE, _SIGHAND, _VM


@dataclass(frozen=True)
class Condition:
    """An argument, from 0 on, is one of `values` where `mask` has bits: of its lower 32 bits, or of its upper ones."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    upper: bool = False


CHECKED: Mapping[str, tuple[Condition, ...]] = MappingProxyType(
    {
        "open": (Condition(1, _READ_ONLY_OR_WRITING, _EMPTIES),),
        "openat": (Condition(2, _READ_ONLY_OR_WRITING, _EMPTIES),),
        "clone": (Condition(0, (_THREAD,), _NO_NAMESPACES),),
        "kill": (Condition(0, (OWN_PROCESS,)),),
        "tgkill": (Condition(0, (OWN_PROCESS,)),),
        "sched_setaffinity": (Condition(0, (0, OWN_PROCESS)),),  # of a further thread: ignored
        "prlimit64": (Condition(2, (0,)), Condition(2, (0,), upper=True)),  # it reads limits, and sets none
        "personality": (Condition(0, (0xFFFFFFFF,)),),  # the same
        # AF_UNIX, SOCK_STREAM or SOCK_SEQPACKET: what is sent there can't name another receiver.
        "socketpair": (Condition(0, (1,)), Condition(1, (1, 5), 0xF)),
        # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL; F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS
        "fcntl": (Condition(1, (0, 1, 2, 3, 4, 1030, 1032, 1033, 1034)),),
        # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCGETS2
        "ioctl": (Condition(1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)),),
        # PR_GET_PDEATHSIG, _DUMPABLE, _NAME, _SECCOMP; PR_CAPBSET_READ, PR_GET_TIMERSLACK, _NO_NEW_PRIVS;
        # PR_SVE_GET_VL, PR_GET_TAGGED_ADDR_CTRL, PR_SME_GET_VL
        "prctl": (Condition(0, (2, 3, 16, 21, 23, 30, 39, 51, 56, 64)),),
    }
)
"""Allowed where all conditions hold; else denied."""

IGNORED = "sched_setaffinity"
"""Where it would be denied it does nothing, and says that it did: a thread that can't be bound would not be started."""

OF_CARDS: Mapping[str, tuple[Condition, ...]] = MappingProxyType(
    {"ioctl": (), "socket": (Condition(0, (1,)),), "bind": (), "listen": (), "setsockopt": ()}
)
"""What CUDA's driver needs as well, as far as its calls are known; never recorded on a card."""

LEARNERS: Mapping[str, tuple[Condition, ...]] = MappingProxyType(
    {
        # They queue what a copy does, or go on while the process is stopped.
        **dict.fromkeys(
            ("inotify_init", "inotify_init1", "fanotify_init", "userfaultfd", "perf_event_open", "bpf"), ()
        ),
        **dict.fromkeys(("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "io_uring_setup"), ()),
        "fcntl": (Condition(1, (1024, 1026)),),  # F_SETLEASE, F_NOTIFY: signals when a file is opened
        # Reading takes out of them, which can be seen later: named pipes, and terminals of one's own (TIOCSPTLCK).
        "mknod": (Condition(1, (0o10000,), 0o170000),),
        "mknodat": (Condition(2, (0o10000,), 0o170000),),
        "ioctl": (Condition(1, (0x5412, 0x40045431)),),
        "prctl": (Condition(0, (36,)),),  # PR_SET_CHILD_SUBREAPER: what it leaves behind falls to the spawner
    }
)
"""Denied to learners, where all conditions hold."""

LEARNERS_OWN: Mapping[str, tuple[Condition, ...]] = MappingProxyType(
    {
        "prlimit64": (Condition(0, (0, OWN_PROCESS)),),
        "setpriority": (Condition(0, (0,)), Condition(1, (0, OWN_PROCESS))),  # PRIO_PROCESS
        "ioprio_set": (Condition(0, (1,)), Condition(1, (0, OWN_PROCESS))),  # IOPRIO_WHO_PROCESS
        **dict.fromkeys(("sched_setscheduler", "sched_setparam", "sched_setattr"), (Condition(0, (0, OWN_PROCESS)),)),
    }
)
"""Allowed to learners where all conditions hold: for others, rivals among them, they set no limits and no priority.

All else is allowed to them.
"""


def machine() -> str | None:
    """This one, where the numbers of its calls are known."""
    return name if (name := platform.machine()) in ARCHITECTURES else None


@lru_cache
def numbers(of: str) -> Mapping[str, int]:
    """Of all calls of a machine, by name."""
    found: dict[str, int] = {}
    for heading, names in _sections():
        if told := re.fullmatch(rf"numbers of (?:{of}|all machines) from (\d+)", heading):
            found |= {name: int(told[1]) + i for i, name in enumerate(names)}
    return MappingProxyType(found)


@lru_cache
def classes(of: str) -> Mapping[str, tuple[Class, str]]:
    """(class, reason) of every call of a machine. Raises ValueError for one that is in none, or in several."""
    found: dict[str, tuple[Class, str]] = {}
    for heading, names in _sections():
        kind, _, reason = heading.partition(", ")
        if reason and (twice := found.keys() & set(names)):
            raise ValueError(f"in several classes: {', '.join(sorted(twice))}")
        if reason:
            found |= dict.fromkeys(names, (cast("Class", kind), reason))
    if left := numbers(of).keys() - found.keys():
        raise ValueError(f"in no class: {', '.join(sorted(left))}")
    return MappingProxyType({name: found[name] for name in numbers(of)})


def _sections() -> Iterator[tuple[str, list[str]]]:
    """Of system_calls.txt: (heading, names)."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    for heading, names in re.findall(r"^(\w.*):\n((?: .*\n)+)", text, re.MULTILINE):
        yield heading, names.split()
