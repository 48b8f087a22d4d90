"""Engines, which run tasks: in this process, in processes of this machine, on a cluster.

All have one interface (engine.py).
"""

from ianvs.processes.engines.engine import Engine, Event, Task, Workload
from ianvs.processes.engines.inline import InlineEngine
from ianvs.processes.engines.local import LocalEngine

__all__ = ["Engine", "Event", "InlineEngine", "LocalEngine", "Task", "Workload"]
