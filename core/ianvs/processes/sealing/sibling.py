"""A fork that is no child of who forks: it hears neither how the other ends nor what that took."""

import ctypes
import signal

from ianvs.processes.sealing.system_calls import machine, numbers

_PARENT = 0x8000  # CLONE_PARENT of clone(2)


def can_fork_siblings() -> bool:
    """Whether the kernel's numbers are known here."""
    return machine() is not None


def fork_sibling() -> int:
    """os.fork(), but that the new process is a child of this one's parent. For a process with one thread.

    Returns -1 where the kernel refuses. What C libraries want done in a fork (pthread_atfork(3)) is left out: it is
    about locks and threads of others, and there are none.
    """
    fork = ctypes.PyDLL(None).syscall  # which keeps Python's lock, as a fork has to
    arguments = (ctypes.c_long(numbers(machine() or "")["clone"]), ctypes.c_long(_PARENT | signal.SIGCHLD))
    nothing = [ctypes.c_long(0)] * 4
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(fork(*arguments, *nothing))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid
