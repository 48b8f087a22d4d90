"""A process that answers questions: what ends it, and what it leaves behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ianvs.processes.engines import LocalEngine, Workload
from ianvs.processes.isolated import IsolatedCaller, IsolatedCallError, ask_isolated
from ianvs.processes.proc import state
from tests.errors import printed
from tests.waiting import wait_for

QUESTIONS = """
import os, subprocess, sys, threading, time

def process(question): return os.getpid()
def twice(question): yield question; yield question
def stuck(question): yield 1; time.sleep(3600)
def ended(question): os._exit(3)
def prints(question): print("[2]"); sys.stderr.write("[3]"); return sys.stdin.read()
def mine(question): return os.environ["TMPDIR"]

def later(question):
    threading.Timer(0.3, os._exit, (3,)).start()
    return "now"

def child(question):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid

def patient(question):
    time.sleep(1)
    return os.getpid()

def files(question):
    return [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd") if int(one) > 2]
"""


@pytest.fixture(params=["started", "forked"])
def isolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[IsolatedCaller]:
    (tmp_path / "asked_here.py").write_text(QUESTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ExitStack() as stack:
        engine = stack.enter_context(closing(LocalEngine(Workload()))) if request.param == "forked" else None
        yield stack.enter_context(closing(IsolatedCaller(engine=lambda: engine)))


def ask(isolated: IsolatedCaller, function: str, question: object, seconds: float) -> Any:
    [answer] = isolated.call_iter(function, question, seconds)
    return answer


def test_one_process_answers_all_questions(isolated: IsolatedCaller) -> None:
    pids = {ask(isolated, "asked_here:process", None, 300) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert list(isolated.call_iter("asked_here:twice", {"a": 1}, 300)) == [{"a": 1}, {"a": 1}]
    assert ask_isolated("asked_here:process", None, 300) not in pids


def test_what_is_printed_is_no_answer_and_nothing_can_be_read(isolated: IsolatedCaller) -> None:
    assert ask(isolated, "asked_here:prints", None, 300) == ""


def test_who_ends_it_ends_it_for_itself(isolated: IsolatedCaller) -> None:
    first = ask(isolated, "asked_here:process", None, 300)
    with pytest.raises(IsolatedCallError) as caught:
        ask(isolated, "asked_here:ended", None, 300)
    assert not caught.value.overran
    printed(str(caught.value))
    assert ask(isolated, "asked_here:process", None, 300) != first


def test_each_answer_may_take_the_seconds(isolated: IsolatedCaller) -> None:
    ask(isolated, "asked_here:process", None, 300)
    answers = isolated.call_iter("asked_here:stuck", None, 2)
    assert next(answers) == 1
    with pytest.raises(IsolatedCallError) as caught:
        next(answers)
    assert caught.value.overran
    printed(str(caught.value))
    assert ask(isolated, "asked_here:process", None, 300)


def test_who_ends_it_later_is_not_mistaken_for_who_is_asked_then(isolated: IsolatedCaller) -> None:
    assert ask(isolated, "asked_here:later", None, 300) == "now"
    assert ask(isolated, "asked_here:patient", None, 300)


def test_no_file_of_ours_is_open_in_it(isolated: IsolatedCaller) -> None:
    sockets = [file for file in ask(isolated, "asked_here:files", None, 300) if "socket:" in file]
    assert len(sockets) <= 1, sockets  # its own: by that of the engine it could speak for other tasks


def test_nothing_of_it_stays(isolated: IsolatedCaller) -> None:
    child, folder = ask(isolated, "asked_here:child", None, 300), Path(ask(isolated, "asked_here:mine", None, 300))
    assert folder.is_dir()
    isolated.close()
    wait_for(lambda: not folder.exists())
    wait_for(lambda: state(child) in ("", "Z"))
