"""What the running kernel can do."""

from __future__ import annotations

from pathlib import Path

from ianvs.processes.sealing.system_calls import machine

__all__ = ["filters_calls"]

_ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")


def filters_calls() -> bool:
    """Whether it filters system calls, and the numbers of this machine are known."""
    return machine() is not None and _ACTIONS.exists() and "errno" in _ACTIONS.read_text().split()
