"""Filters of system calls (seccomp, Linux 4.17 and later), for this process and all that it starts, without privileges.

A filter can't be taken off again. It sees numbers and arguments, not what pointers point to; what it denies fails with
an error, and ends nobody.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Mapping
from functools import lru_cache

from ianvs.processes.engines.forked import NO_NEW_PRIVS, libc, prctl
from ianvs.processes.proc import status
from ianvs.processes.sealing.system_calls import (
    ARCHITECTURES,
    CHECKED,
    IGNORED,
    LEARNERS,
    LEARNERS_OWN,
    OF_CARDS,
    OWN_PROCESS,
    Condition,
    classes,
    machine,
    numbers,
)

_SET_FILTER = 1  # of seccomp(2)
_ALL_THREADS, _LISTENER = 1, 8
_AS_FAST = 4  # processors go on speculating; before Linux 5.16 they would not
_ALLOW, _ASK, _ERROR = 0x7FFF0000, 0x7FC00000, 0x00050000
_DENY, _MISSING = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # instructions of classic BPF
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where they lie in what a filter is shown
_X32 = 0x40000000  # numbers of x86_64 for programs with short pointers
FILTERED = -1
_INSTRUCTION = struct.Struct("<HBBI")  # what to do, jumps if it holds and if not, a constant

_Action = int | tuple[tuple[Condition, ...], int, int]  # what becomes of it: always, or if the conditions hold, else


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def seal_calls(*, card: bool = False, audit: bool = False) -> int | None:
    """Leave this process what a copy needs. card: with what CUDA needs.

    audit: deny nothing, and return a descriptor that tells whoever reads it of each call that would have been denied
    (ianvs.processes.sealing.attendance); it has to be read from now on. Returns FILTERED for a filter without one, and
    None where there is none.
    """
    return _install(copy_filter(card=card, audit=audit), _LISTENER if audit else _ALL_THREADS)


def copy_seal(*, card: bool, audit: bool, filtered: bool) -> dict[str, object]:
    """What a process needs to put on a copy's filter by itself; an empty one where this process has none."""
    text = copy_filter(card=card, audit=False) if filtered and not audit else b""
    call = numbers(machine() or "").get("seccomp", 0)
    return {"filter": text.hex(), "own_process": OWN_PROCESS, "call": call}


def deny_watching() -> bool:
    """Deny this process, a learner's, what would tell it afterwards what its copies did. Returns whether that is so."""
    return _install(learner_filter(), _ALL_THREADS) is not None


def filters(pid: int) -> int:
    """How many a process lives under; 0 where the kernel does not tell (before Linux 5.9).

    One that a learner puts on could make the calls by which its copies are shut in do nothing.
    """
    return int(status(pid, "Seccomp_filters") or 0)


@lru_cache
def copy_filter(*, card: bool = False, audit: bool = False) -> bytes:
    """The instructions; what is in no table is missing. Cached, since it takes about a millisecond."""
    if (name := machine()) is None:
        return b""
    denied = _ASK if audit else _DENY
    of_class: dict[str, _Action] = {"allowed": _ALLOW, "missing": _MISSING, "denied": denied}
    actions = {call: of_class[kind] for call, (kind, _) in classes(name).items() if kind != "checked"}
    checked = {**CHECKED, **(OF_CARDS if card else {})}
    actions |= {call: (conditions, _ALLOW, denied) for call, conditions in checked.items() if call in numbers(name)}
    actions[IGNORED] = (checked[IGNORED], _ALLOW, denied if audit else _ERROR)
    return _compiled(name, actions, _MISSING)


@lru_cache
def learner_filter() -> bytes:
    if (name := machine()) is None:
        return b""
    actions: dict[str, _Action] = {call: (conditions, _DENY, _ALLOW) for call, conditions in LEARNERS.items()}
    actions |= {call: (conditions, _ALLOW, _DENY) for call, conditions in LEARNERS_OWN.items()}
    return _compiled(name, {call: action for call, action in actions.items() if call in numbers(name)}, _ALLOW)


def _compiled(name: str, actions: Mapping[str, _Action], default: int) -> bytes:
    """For each range of numbers what becomes of their calls, in ascending order. Other machines' calls are denied."""
    by_number = {numbers(name)[call]: action for call, action in actions.items()}
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, ARCHITECTURES[name]), (_RETURN, 0, 0, _DENY)]
    code.append((_LOAD, 0, 0, _NUMBER))
    if name == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _MISSING)]
    begin, last = 0, max(by_number)
    while begin <= last:
        action, end = by_number.get(begin, default), begin + 1
        while end <= last and by_number.get(end, default) == action:
            end += 1
        block = [(_RETURN, 0, 0, action)] if isinstance(action, int) else _checked(*action)
        code += [(_AT_LEAST, len(block), 0, end), *block]
        begin = end
    code.append((_RETURN, 0, 0, default))
    return b"".join(_INSTRUCTION.pack(*one) for one in code)


def _checked(conditions: tuple[Condition, ...], passed: int, failed: int) -> list[tuple[int, int, int, int]]:
    code: list[tuple[int, int, int, int]] = []
    for one in conditions:
        code += [(_LOAD, 0, 0, _ARGUMENTS + 8 * one.argument + 4 * one.upper), (_AND, 0, 0, one.mask)]
        count = len(one.values)
        code += [(_EQUAL, count - i, 0, value) for i, value in enumerate(one.values)]
        code.append((_RETURN, 0, 0, failed))
    return [*code, (_RETURN, 0, 0, passed)]


def _install(instructions: bytes, flags: int) -> int | None:
    """Raises nothing: where the kernel has no filters, None."""
    if sys.platform != "linux" or not instructions:
        return None
    own = struct.pack("<I", os.getpid())
    text = instructions.replace(struct.pack("<I", OWN_PROCESS), own)
    program = _Program(len(text) // _INSTRUCTION.size, text)
    if not prctl(NO_NEW_PRIVS, 1):
        return None
    number = ctypes.c_long(numbers(machine() or "")["seccomp"])
    done = int(libc().syscall(number, _SET_FILTER, flags | _AS_FAST, ctypes.byref(program)))
    if flags & _LISTENER:
        return done if done >= 0 else None
    return FILTERED if done == 0 else None  # more than 0 is a thread that has a filter of its own
