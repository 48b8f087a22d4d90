"""Explains why the process of a case was killed."""

import signal
from pathlib import Path

from ianvs.processes.process_end import signal_name

_CRASHES = {getattr(signal, f"SIG{name}", None) for name in ("SEGV", "BUS", "ABRT", "FPE", "ILL")}
_KILL = 9  # SIGKILL, which Windows has no name for


def why_killed(number: int, code: str, oom_kills_before: int | None) -> str:
    """Explain signal `number`.

    Args:
        number: Of the signal.
        code: Description of the code that the process ran.
        oom_kills_before: `oom_kills()` before; None if the process ran on another machine.
    """
    if number in _CRASHES:
        return f"compiled code of {code}, or of a package that it uses, crashed; the stack is at the end of the log"
    if number == _KILL and (oom_kills_before is None or oom_kills_before != oom_kills()):
        return (
            "the process was killed (SIGKILL). If the machine ran out of memory, run fewer cases at a time (--jobs 1); "
            "limits.memory_mb stops a case before the machine runs out"
        )
    if number != _KILL:
        return f"the process was ended by {signal_name(number)}"
    return "the process was killed by SIGKILL; the machine was not out of memory"


def oom_kills() -> int | None:
    """Return the number of processes killed by this machine's out-of-memory killer so far; None if unknown."""
    try:
        words = Path("/proc/vmstat").read_text().split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return None
