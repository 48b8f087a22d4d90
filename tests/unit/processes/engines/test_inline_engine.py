"""Tasks in this very process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ianvs.processes.engines import Task, Workload
from ianvs.processes.engines.inline import InlineEngine


def test_temporary_files_go_with_the_task_and_those_of_this_process_lie_where_they_did() -> None:
    before = tempfile.gettempdir()
    engine = InlineEngine(Workload())
    engine.submit(Task("one", "tests.unit.processes.engines.test_inline_engine:leave_a_file", None))
    [folder] = [event.payload for event in engine.events(0) if event.kind == "result"]
    assert not Path(folder).exists()
    assert tempfile.gettempdir() == before != folder


def leave_a_file(argument: object, report: object) -> str:
    handle, path = tempfile.mkstemp()
    os.close(handle)
    return str(Path(path).parent)
