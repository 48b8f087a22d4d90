"""What exists in a sandbox, and what leaves it."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ianvs.processes.sandbox import Sandbox, missing_sandbox, python_paths

needs_sandbox = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")


def run_in(box: Sandbox, program: str, environment: Mapping[str, str] | None = None) -> Any:
    """What `program` prints as JSON."""
    command = box.command([sys.executable, "-c", f"import json, os, sys\n{program}"], environment)
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_sandbox
def test_only_what_is_mounted_exists(tmp_path: Path) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "file").write_text("1")
    paths = [str(shown / "file"), str(hidden), __file__]
    program = f"print(json.dumps([os.path.exists(path) for path in {paths}]))"
    assert run_in(Sandbox(read_only=(shown,)), program) == [True, False, False]


@needs_sandbox
def test_exams_and_tests_of_a_checkout_do_not_exist() -> None:
    program = (
        "import ianvs; root = ianvs.__path__[0]\n"
        "print(json.dumps([os.path.exists(f'{root}/{name}') for name in"
        " ('testenv/metrics', 'configs/methods_digits', '../../tests', 'testenv/data_types', 'testalgorithms/ewc')]))"
    )
    assert run_in(Sandbox(), program) == [False, False, False, True, True]


@needs_sandbox
def test_masked_data_of_installed_packages_can_not_be_read(tmp_path: Path) -> None:
    folder, file = tmp_path / "package" / "data", tmp_path / "package" / "truth.csv"
    folder.mkdir(parents=True)
    for path in (folder / "labels.csv", file):
        path.write_text("1")
    box = Sandbox(read_only=(tmp_path / "package",), masked=(folder, file))
    program = f"print(json.dumps([os.listdir({str(folder)!r}), os.access({str(file)!r}, os.R_OK)]))"
    assert run_in(Sandbox(read_only=(tmp_path / "package",)), program) == [["labels.csv"], True]
    assert run_in(box, program)[0] == []
    reading = f"try:\n    print(json.dumps(open({str(file)!r}).read()))\nexcept OSError:\n    print('null')"
    assert not run_in(box, reading)


@needs_sandbox
def test_what_is_mounted_below_a_masked_folder_can_be_read(tmp_path: Path) -> None:
    """As is what a learner is served from a workspace that lies in a mounted folder."""
    served = tmp_path / "prefix" / "workspace" / "served"
    served.mkdir(parents=True)
    for path in (served / "x.npy", served.parent / "truth.npy"):
        path.write_text("1")
    box = Sandbox((tmp_path / "prefix", served), masked=(served.parent,))
    program = f"print(json.dumps([os.listdir({str(served.parent)!r}), os.listdir({str(served)!r})]))"
    assert run_in(box, program) == [["served"], ["x.npy"]]


@needs_sandbox
@pytest.mark.parametrize("allowed", [True, False])
def test_only_writable_folders_are_written(tmp_path: Path, allowed: bool) -> None:
    box = Sandbox(writable=(tmp_path,)) if allowed else Sandbox(read_only=(tmp_path,))
    program = (
        f"path = {str(tmp_path / 'new')!r}\n"
        "try:\n    open(path, 'w').close(); print('true')\nexcept OSError:\n    print('false')"
    )
    assert run_in(box, program) is allowed
    assert (tmp_path / "new").exists() is allowed


@needs_sandbox
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_notes_in_common_folders_do_not_outlive_the_sandbox(folder: str) -> None:
    program = f"before = os.listdir({folder!r}); open({folder!r} + '/note', 'w').close(); print(json.dumps(before))"
    # Nothing is there but the way to a checkout or an environment that lies below this folder.
    mounted = [
        path.relative_to(folder).parts[0] for path in python_paths(Path(sys.executable)) if path.is_relative_to(folder)
    ]
    assert [sorted(run_in(Sandbox(), program)) for _ in range(2)] == [sorted(set(mounted))] * 2


@needs_sandbox
def test_no_server_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = (
            "import socket\n"
            f"try:\n    socket.create_connection(('127.0.0.1', {port}), 5); print('true')\n"
            "except OSError:\n    print('false')"
        )
        assert run_in(Sandbox(), program) is False


@needs_sandbox
def test_no_other_process_can_be_seen_or_ended() -> None:
    program = "print(json.dumps(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())))"
    assert max(run_in(Sandbox(), program)) < 10 < os.getpid()


@needs_sandbox
def test_no_capability_is_kept() -> None:
    program = "print(json.dumps([line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')]))"
    assert [int(value, 16) for value in run_in(Sandbox(), program)] == [0]


@needs_sandbox
def test_environment_is_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "secret")
    program = "print(json.dumps([os.environ.get('MY_API_TOKEN'), os.environ.get('GIVEN')]))"
    assert run_in(Sandbox(), program, {"GIVEN": "yes"}) == [None, "yes"]


@needs_sandbox
def test_torch_trains_in_a_sandbox() -> None:
    program = (
        "import torch; x = torch.ones(3, requires_grad=True); x.sum().backward(); print(json.dumps(x.grad.tolist()))"
    )
    assert run_in(Sandbox(), program) == [1.0, 1.0, 1.0]


def test_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if sys.platform == "linux":
        assert "bubblewrap" in missing_sandbox()
    else:
        assert "Linux" in missing_sandbox()


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_program_that_makes_no_sandbox_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "No permissions to create new namespace" in missing_sandbox()
