"""Where tasks run: in this process, in processes of this machine, on a cluster. One contract (engine.py) for all."""

from ianvs.processes.engines.engine import Engine, Event, Task, Workload
from ianvs.processes.engines.inline import InlineEngine
from ianvs.processes.engines.local import LocalEngine

__all__ = ["Engine", "Event", "InlineEngine", "LocalEngine", "Task", "Workload"]
