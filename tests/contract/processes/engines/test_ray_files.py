"""What travels to machines that don't share the storage, and what comes back. Without Ray."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ianvs.base.errors import Location
from ianvs.config import load_job
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ParadigmSpec
from ianvs.processes.engines.ray import ray_files
from ianvs.processes.engines.ray.ray_connection import capacity
from ianvs.processes.engines.ray.ray_files import gather_code, pack, relocate, unpack
from ianvs.running.inspector import Inspector
from ianvs.running.planning.case_request import case_request
from ianvs.running.planning.plan import make_plan
from ianvs.running.planning.source_snapshot import store_sources
from ianvs.running.scheduler.create_engine import authors_files
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import MAJORITY, TESTENV, write_job


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def read(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def packed(root: Path, *names: str) -> io.BytesIO:
    return io.BytesIO(b"".join(pack(root, [root / name for name in names])))


# --- results --------------------------------------------------------------------------------------------------


NAMES = st.from_regex(r"[a-z]{1,3}(/[.]?[a-z]{1,2}){0,2}", fullmatch=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(NAMES, st.binary(max_size=30), min_size=1, max_size=6))
def test_what_is_packed_arrives_as_it_was(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    files = {f"cases/one/{name}-{number}": content for number, (name, content) in enumerate(files.items())}
    there = write(tmp_path_factory.mktemp("there"), files)
    here = tmp_path_factory.mktemp("here")
    unpack(packed(there, "cases/one"), here)
    assert read(here) == files


def test_what_arrives_takes_the_place_of_the_folder_as_a_whole(tmp_path: Path) -> None:
    there = write(tmp_path / "there", {"cases/a/new": b"1"})
    here = write(tmp_path / "here", {"cases/a/old": b"0", "cases/b/other": b"2"})
    unpack(packed(there, "cases/a"), here)
    assert read(here) == {"cases/a/new": b"1", "cases/b/other": b"2"}


def test_single_files_travel_and_missing_names_are_left_out(tmp_path: Path) -> None:
    there = write(tmp_path / "there", {"exams/x.log": b"read", "exams/x/exam.json": b"{}"})
    unpack(packed(there, "exams/x", "exams/x.log", "exams/missing"), tmp_path / "here")
    assert read(tmp_path / "here") == {"exams/x.log": b"read", "exams/x/exam.json": b"{}"}
    assert not list(pack(there, [there / "exams" / "missing"]))


def test_what_is_large_travels_in_parts(tmp_path: Path) -> None:
    there = write(tmp_path / "there", {"cases/a/model": bytes(20 << 20)})
    parts = list(pack(there, [there / "cases" / "a"]))
    assert [len(part) >> 20 for part in parts] == [8, 8, 4]
    unpack(io.BytesIO(b"".join(parts)), tmp_path / "here")
    assert read(tmp_path / "here") == read(there)


def test_what_arrives_damaged_changes_nothing(tmp_path: Path) -> None:
    there = write(tmp_path / "there", {"cases/a/model": bytes(100_000)})
    here = write(tmp_path / "here", {"cases/a/old": b"0"})
    stream = packed(there, "cases/a")
    with pytest.raises(Exception, match="end of data"):
        unpack(io.BytesIO(stream.getvalue()[:50_000]), here)
    assert read(here) == {"cases/a/old": b"0"}
    assert not list(here.rglob(".arriving*"))


def test_a_link_out_of_the_folder_is_left_behind(tmp_path: Path) -> None:
    there = write(tmp_path / "there", {"cases/a/result": b"1"})
    (there / "cases" / "a" / "outside").symlink_to("/etc/hostname")
    (there / "cases" / "a" / "inside").symlink_to("result")
    unpack(packed(there, "cases/a"), tmp_path / "here")
    assert read(tmp_path / "here") == {"cases/a/result": b"1", "cases/a/inside": b"1"}
    assert not (tmp_path / "here" / "cases" / "a" / "outside").is_symlink()


# --- requests -------------------------------------------------------------------------------------------------


def test_paths_of_a_request_move_and_nothing_else_does(tmp_path: Path) -> None:
    write(tmp_path, {"mine.py": b"def mine(y_true, y_pred): return 1"})
    job = load_job(write_job(tmp_path, testenv=edited(TESTENV, "{name: BWT}", "{name: mine, url: ./mine.py}")))
    planned = next(iter(plan := make_plan(job, Inspector(job, inline=True))))
    request = case_request(plan, planned.case, planned.algorithm, {}, store_sources(plan))
    moved = relocate(request, {job.workspace: Path("/node/ws"), tmp_path / "mine.py": Path("/code/authors/0/mine.py")})
    assert moved.workspace == Path("/node/ws")
    assert moved.testenv.metrics[1].url == Path("/code/authors/0/mine.py")
    assert moved.testenv.metrics[1].place == job.testenvs[0].metrics[1].place
    assert moved.testenv.dataset == job.testenvs[0].dataset
    assert Path("/code/authors/0/mine.py") in {one.file for one in moved.code}
    assert relocate([request], {job.workspace: Path("/node/ws")})[0].workspace == Path("/node/ws")
    assert (moved.exam_id, moved.splitting_method) == (planned.algorithm.exam_id, "default")


def test_a_manifest_travels_with_the_code(tmp_path: Path) -> None:
    write(tmp_path, {"manifest.json": b"{}"})
    exam = edited(TESTENV, "{name: class-incremental, rounds: 5}", "{name: manifest, file: ./manifest.json}")
    job = load_job(write_job(tmp_path / "job", testenv=edited(exam, "./manifest", "../manifest")))
    assert tmp_path / "manifest.json" in authors_files(job)
    places = gather_code(authors_files(job), tmp_path / "sent")
    moved = relocate(job.testenvs[0], {path: Path("/code") / name for path, name in places.items()})
    assert moved.scenario is not None
    assert moved.scenario.options["file"] == f"/code/{places[tmp_path / 'manifest.json']}"
    assert read(tmp_path / "sent")[places[tmp_path / "manifest.json"]] == b"{}"


def test_a_plugin_is_found_where_it_was_moved_and_messages_name_the_users_file(tmp_path: Path) -> None:
    plugin = ModuleSpec("basemodel", "A", "/home/me/plugin.py", constants={"text": "/home/me/plugin.py"})
    builtin = ModuleSpec("basemodel", "B", "package.module", place=Location(Path("/home/me/plugin.py")))
    spec = AlgorithmSpec(
        name="a",
        file=Path("/home/me/a.yaml"),
        paradigm=ParadigmSpec("Mine", url="/home/me/mine.py"),
        modules=(plugin, builtin),
    )
    moved = relocate(spec, {Path("/home/me"): Path("/far"), Path("/home/me/plugin.py"): Path("/code/plugin.py")})
    assert moved.modules[0].url == "/code/plugin.py", "the longest known beginning of a path counts"
    assert moved.paradigm.url == "/far/mine.py"
    assert moved.modules[0].constants == {"text": "/home/me/plugin.py"}, "a hyperparameter is text, whatever it says"
    assert moved.modules[1] == builtin
    assert moved.modules[1].place == builtin.place
    assert moved.file == spec.file


# --- code -----------------------------------------------------------------------------------------------------


def test_a_gathered_plugin_runs_elsewhere_with_what_it_imports(tmp_path: Path) -> None:
    plugin = "from helper import START\nfrom parts.more import MORE\n" + MAJORITY
    path = write_job(tmp_path / "job", plugin=plugin)
    write(tmp_path / "job", {"helper.py": b"START = 1", "parts/__init__.py": b"", "parts/more.py": b"MORE = 2"})
    moved = gather_code(authors_files(load_job(path)), tmp_path / "there")
    (tmp_path / "job").rename(tmp_path / "gone")
    script = (
        "from ianvs.plugins.loader import load; import ianvs, sys; load(sys.argv[1], 'Majority'); print(ianvs.__file__)"
    )
    found = moved[tmp_path / "job" / "plugin.py"]
    ran = subprocess.run(
        [sys.executable, "-c", script, found], cwd=tmp_path / "there", capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(tmp_path / "there" / "ianvs" / "__init__.py"), "our own version travels too"


def test_a_plugin_in_a_package_runs_elsewhere(tmp_path: Path) -> None:
    files = {
        "src/approach/__init__.py": b"",
        "src/approach/base.py": b"from ..common import ANSWER\n\n\nclass Base:\n    answer = ANSWER\n",
        "src/approach/method.py": b"from .base import Base\n\n\nclass Method(Base):\n    pass\n",
        "src/common.py": b"ANSWER = 42\n",
    }
    write(tmp_path / "job", files)
    entry = tmp_path / "job/src/approach/method.py"
    moved = gather_code([entry], tmp_path / "there")
    (tmp_path / "job").rename(tmp_path / "gone")
    script = "from ianvs.plugins.loader import load; import sys; print(load(sys.argv[1], 'Method').target.answer)"
    command = [sys.executable, "-c", script, moved[entry]]
    ran = subprocess.run(command, cwd=tmp_path / "there", capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "42", ran.stderr


def test_data_and_results_beside_a_plugin_stay_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_files, "_BESIDE_LIMIT", 1000)
    folder = tmp_path / "job"
    path = write_job(folder)
    write(
        folder, {"ws/cases/a/model": b"m", "data/1.png": b"p", "big.bin": bytes(1001), "words.txt": b"w", ".env": b"k"}
    )
    plugin = folder / "plugin.py"
    plugin.write_text("class Majority: pass")
    gather_code([plugin], tmp_path / "there")
    assert {"plugin.py", "words.txt"} <= {path.name for path in (tmp_path / "there" / "authors" / "0").iterdir()}
    assert not {"ws", "data", "big.bin", ".env"} & {
        path.name for path in (tmp_path / "there" / "authors" / "0").iterdir()
    }
    assert path.exists()


def test_two_plugins_of_one_name_stay_apart_and_a_model_travels_whole(tmp_path: Path) -> None:
    write(
        tmp_path, {"a/plugin.py": b"A = 1", "b/plugin.py": b"B = 1", "models/m/.config": b"c", "models/m/w.bin": b"w"}
    )
    files = [tmp_path / "a" / "plugin.py", tmp_path / "b" / "plugin.py", tmp_path / "models" / "m"]
    moved = gather_code(files, tmp_path / "there")
    contents = [(tmp_path / "there" / moved[file]).read_text() for file in files[:2]]
    assert contents == ["A = 1", "B = 1"]
    assert read(tmp_path / "there" / moved[files[2]]) == {".config": b"c", "w.bin": b"w"}


def test_our_own_algorithms_travel_once(tmp_path: Path) -> None:
    import ianvs.testalgorithms.ewc.basemodel

    file = Path(ianvs.testalgorithms.ewc.basemodel.__file__)
    assert gather_code([file], tmp_path) == {file: "ianvs/testalgorithms/ewc/basemodel.py"}
    assert (tmp_path / "ianvs" / "testalgorithms" / "ewc" / "basemodel.py").is_file()


def test_code_that_is_too_large_to_travel_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_files, "CODE_LIMIT", 5 << 20)
    model = tmp_path / "model.bin"
    model.write_bytes(bytes(6 << 20))
    assert errors_of(gather_code, [model], tmp_path / "there") == [("invalid-engine", "")]


# --- nodes ----------------------------------------------------------------------------------------------------


def node(cpus: float, gpus: float = 0, alive: bool = True) -> dict[str, object]:
    return {"Alive": alive, "Resources": {"CPU": cpus, "GPU": gpus}}


@pytest.mark.parametrize(
    ("nodes", "threads", "share", "slots"),
    [
        ([node(8), node(8)], 3, 0.0, 4),  # a case does not span nodes
        ([node(8), node(8, alive=False)], 1, 0.0, 8),
        ([node(16, 2)], 1, 0.25, 8),
        ([node(16, 2)], 1, 0.4, 4),  # a share does not span cards
        ([node(16, 4)], 1, 2.0, 2),
        ([node(2, 8)], 1, 0.5, 2),
    ],
)
def test_as_many_tasks_at_a_time_as_fit_on_the_nodes(
    nodes: list[dict[str, object]], threads: int, share: float, slots: int
) -> None:
    assert capacity(nodes, threads, share) == slots


def test_nodes_that_are_too_small_are_an_error_with_the_remedy() -> None:
    assert errors_of(capacity, [node(2, 1)], 4, 0.5) == [("insufficient-resources", "")]
