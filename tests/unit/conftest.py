"""Unit tests start no process: a test that needs one is a contract test or a journey."""

import sys
from collections.abc import Iterator

import pytest

_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_running: list[str] = []


def _refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    if _running and event in _STARTS and not _torch_is_imported_just_now():
        raise RuntimeError(f"{_running[-1]} starts a process ({event}); move it to tests/contract or tests/journey")


def _torch_is_imported_just_now() -> bool:
    """It asks the machine for its libraries then, by processes."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("torch"):
        frame = frame.f_back
    return frame is not None


sys.addaudithook(_refuse_processes)


@pytest.fixture(autouse=True)
def starts_no_process(request: pytest.FixtureRequest) -> Iterator[None]:
    _running.append(request.node.nodeid)
    yield
    _running.pop()
