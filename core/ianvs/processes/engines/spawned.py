"""The process of a task that the local engine has spawned."""

import contextlib
import os
import pickle
import pkgutil
import signal
import threading
import time
from typing import BinaryIO, NoReturn

from ianvs.processes.engines.engine import Event, Reporter, preload_modules
from ianvs.processes.engines.forked import CHILD_SUBREAPER, log_to, prctl, run_and_exit
from ianvs.processes.engines.temporary import use_folders

MARK = "IANVS_TASK"
"""Environment variable of a task's process and its descendants, with a unique value for each task."""

_PATIENCE = 10.0  # seconds to wait for killed processes


def main() -> NoReturn:
    """Run a task. Standard input has the task, then a request to stop; the process ends with the supervisor."""
    orders, events = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    log_to(2)  # the supervisor writes this to the log
    prctl(CHILD_SUBREAPER, 1)  # orphans stay below this process, so that their time counts
    run_and_exit(_work, orders, events)


def end_marked(mark: str) -> None:
    """Kill every other process with `mark` in its environment, and their new children."""
    import psutil

    deadline = time.monotonic() + _PATIENCE
    alive = True
    while alive and time.monotonic() < deadline:
        alive = False
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                    process.kill()  # not waited for, since its parent reads its exit status
                    alive = True
        time.sleep(0.01 * alive)


def _work(orders: BinaryIO, events: BinaryIO) -> None:
    lock = threading.Lock()

    def tell(event: Event) -> None:
        message = pickle.dumps(event)
        with lock, contextlib.suppress(OSError):  # the task may have closed it
            while message:
                message = message[events.write(message) :]

    preload, task, folders = pickle.load(orders)
    use_folders(folders)
    reporter = Reporter(task.key, tell)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    signal.signal(signal.SIGTERM, reporter.ask)
    threading.Thread(target=_handle_orders, args=(orders, reporter), daemon=True).start()
    preload_modules(preload)
    tell(Event(task.key, "started", os.getpid()))
    result = pkgutil.resolve_name(task.target)(task.argument, reporter)
    if result is not None:
        tell(Event(task.key, "result", result))


def _handle_orders(orders: BinaryIO, reporter: Reporter) -> None:
    while orders.read(1):
        reporter.ask()
    end_marked(os.environ[MARK])  # the supervisor has ended
    os._exit(1)
