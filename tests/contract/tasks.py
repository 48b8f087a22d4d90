"""Tasks for the contract of engines: well-behaved ones and others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def succeed(argument: Any, report: Any) -> Any:
    report({"half": True})
    return {"got": argument}


def fail(argument: Any, report: Any) -> None:
    raise RuntimeError(f"no luck with {argument}")


def leave(argument: int, report: Any) -> None:
    raise SystemExit(argument)


def variable(argument: str, report: Any) -> str | None:
    return os.environ.get(argument)


def imported(argument: tuple[str, ...], report: Any) -> list[str]:
    return [name for name in argument if name in sys.modules]


def kill_itself(argument: Any, report: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_parent(argument: Any, report: Any) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


def shout(argument: int, report: Any) -> None:
    """Prints `argument` numbered lines of 100 bytes, half of them from a child."""
    print("first of all")
    code = f"for i in range({argument // 2}): print(f'{{i:099d}}')"
    subprocess.run([sys.executable, "-c", code], check=True)
    for i in range(argument // 2, argument):
        print(f"{i:099d}")
    print("last of all")


def segfault(argument: Any, report: Any) -> None:
    import ctypes

    ctypes.string_at(0)


def flood(argument: int, report: Any) -> str:
    for _ in range(argument):
        print("x" * 1023)
        report("noise")
    return "done"


def close_pipes(argument: Any, report: Any) -> None:
    os.closerange(0, 256)


def write_after(argument: tuple[Path, float], report: Any) -> None:
    path, seconds = argument
    time.sleep(seconds)
    path.write_text("written")


def until_told(argument: Path, report: Any) -> str:
    """Works until it is asked to stop, then ends in good order."""
    argument.write_text("started")
    while not report.stop_requested():
        time.sleep(0.01)
    return "stopped"


def begin_and_end(argument: Path, report: Any) -> None:
    """Deaf to the wish to stop, and done in a few seconds."""
    argument.write_text("begun")
    time.sleep(5)
    argument.write_text("begun ended")


def ignore_signals(argument: Path, report: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    argument.write_text("started")
    time.sleep(3600)


def leave_children(argument: Path, report: Any) -> None:
    """One child in this process group, one that made a session of its own."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)"]
    ours = subprocess.Popen(sleeper)
    theirs = subprocess.Popen(sleeper, start_new_session=True)
    argument.write_text(f"{ours.pid} {theirs.pid}")
