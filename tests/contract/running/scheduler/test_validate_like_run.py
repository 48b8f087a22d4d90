"""What `run` refuses before training, `validate` refuses, with the same words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.cli import main
from tests.edits import edited
from tests.errors import Found, raised, recorded
from tests.jobs import MAJORITY, TESTENV, write_job
from tests.marks import slow

NEVER = """
    def train(self, train_data, **context): raise SystemExit(9)
    def predict(self, data): raise SystemExit(9)
    def save(self, path): ...
    def load(self, path): ...
"""
DIGITS = "dataset: {name: digits}\nscenario: {name: CIL, rounds: 5}\nmetrics: [accuracy, BWT]\n"
IMPATIENT = "limits: {check_seconds: 2}"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def model(arguments: str = "", body: str = "pass", before: str = "from __future__ import annotations") -> str:
    return f"{before}\n\nclass Model:\n    def __init__(self{arguments}): {body}\n{NEVER}"


def refused(path: Path, **options: str) -> list[Found]:
    """Code and location of what both commands refuse in the same words, having trained nothing."""
    told = []
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(IanvsError) as caught:
            command(path, **options)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert not list((path.parent / "ws").glob("cases/*"))
    return recorded(raised(caught.value))


# --- exams ----------------------------------------------------------------------------------------------------------


def test_a_metric_over_joint_runs_of_an_exam_with_one_test_set(tmp_path: Path) -> None:
    exam = "dataset: {name: digits}\nscenario: {name: IIL, rounds: 5}\nmetrics: [accuracy, IM]"
    assert refused(write_job(tmp_path, plugin=model(), name="Model", hyperparameters="", testenv=exam)) == [
        ("unfit-exam", "testenv.yaml:4:23")
    ]


def scenes(folder: Path, size: tuple[int, int], highest: int) -> str:
    """A testenv over index files of label pictures of the classes 0 to `highest`."""
    folder.mkdir(exist_ok=True)
    for part in ("train", "test"):
        lines = []
        for i in range(4):
            labels = np.full(size, i % 2, dtype=np.uint8)
            labels[0, 0] = highest
            Image.fromarray(labels).save(folder / f"{part}_{i}_labels.png")
            Image.fromarray(np.zeros((*size, 3), dtype=np.uint8)).save(folder / f"{part}_{i}.png")
            lines.append(f"{part}_{i}.png {part}_{i}_labels.png\n")
        (folder / f"{part}.txt").write_text("".join(lines))
    return (
        f"dataset: {{train_index: {folder}/train.txt, test_index: {folder}/test.txt, classes: [road, sky]}}\n"
        "scenario: {name: IIL, rounds: 2}\nmetrics: [mIoU]"
    )


def test_labels_that_the_classes_do_not_name(tmp_path: Path) -> None:
    exam = scenes(tmp_path / "data", (8, 8), highest=7)
    path = write_job(tmp_path, plugin=model(), name="Model", hyperparameters="", testenv=exam,
                     sort_by="[{mIoU: descend}]")  # fmt: skip
    assert refused(path) == [("unknown-class", "testenv.yaml:2:3")]


def test_a_size_of_pictures_that_a_plugin_can_not_take(tmp_path: Path) -> None:
    exam = scenes(tmp_path / "data", (9, 12), highest=1)
    check = "    def check_exam(self, *, shape):\n        if shape[0] % 8: raise ValueError(f'{shape[0]} rows')\n"
    path = write_job(tmp_path, plugin=model() + check, name="Model", hyperparameters="", testenv=exam,
                     sort_by="[{mIoU: descend}]")  # fmt: skip
    assert refused(path) == [("refused-arguments", "algorithm.yaml:5:13")]


def test_validate_and_run_agree_on_pictures_whose_sides_are_no_multiples_of_eight(tmp_path: Path) -> None:
    exam = scenes(tmp_path / "data", (9, 12), highest=1)
    plugin = "from ianvs.testalgorithms.segmentation.finetune.basemodel import FineTuning\n"
    grid = "- network: {values: [erfnet_narrow]}\n- epochs: {values: [1]}\n- batch_size: {values: [2]}"
    path = write_job(tmp_path, plugin=plugin, name="FineTuning", hyperparameters=grid, testenv=exam, job="seeds: [0]",
                     sort_by="[{mIoU: descend}]")  # fmt: skip
    try:
        ianvs.validate(path)
    except IanvsError:
        assert refused(path)
    else:
        assert ianvs.run(path).exit_code == 0


def test_a_network_for_pictures_on_feature_vectors(tmp_path: Path) -> None:
    plugin = "from ianvs.testalgorithms.finetune.basemodel import Finetune\n"
    path = write_job(tmp_path, plugin=plugin, name="Finetune", hyperparameters="- network: {values: [mlp, resnet]}")
    for part in ("train", "test"):
        np.savez(tmp_path / f"{part}.npz", x=np.arange(60.0).reshape(20, 3), y=np.arange(20) % 2)
    (tmp_path / "testenv.yaml").write_text(
        "testenv:\n  dataset: {train_data: ./train.npz, test_data: ./test.npz}\n"
        "  scenario: {name: CIL, rounds: 2}\n  metrics: [accuracy]\n"
    )
    assert refused(path) == [("refused-arguments", "algorithm.yaml:8:35")]


# --- plugins --------------------------------------------------------------------------------------------------------


MANY = ", ".join(map(str, range(40)))


@pytest.mark.parametrize(
    ("plugin", "grid", "error"),
    [
        (
            model(", depth=1, rate=0.1", "\n        if depth > 2: raise ValueError('depth is at most 2')"),
            "- depth: {values: [1, 3]}\n- rate: {values: [0.1, 0.2, 0.3]}",
            ("refused-arguments", "algorithm.yaml:8:31"),  # once, at the value
        ),
        (
            model(", a, b", "\n        if 'odd' in (a, b): raise ValueError('this is odd')"),
            f"- a: {{values: [{MANY}]}}\n- b: {{values: [{MANY}, odd]}}",  # each is built with once
            ("refused-arguments", "algorithm.yaml:5:13"),
        ),
        slow(
            model(before="import time\ntime.sleep(600)"),
            "",
            ("unloadable-plugin", "algorithm.yaml:5:13"),
        ),
    ],
    ids=["a value", "a large grid", "an import that never ends"],
)
def test_a_plugin_that_can_not_be_built(tmp_path: Path, plugin: str, grid: str, error: Found) -> None:
    job = IMPATIENT if "sleep" in plugin else "seeds: [0, 1]"
    settings = {"job": job, "engine": "local" if "sleep" in plugin else "inline"}
    path = write_job(tmp_path, plugin=plugin, name="Model", hyperparameters=grid, **settings)
    assert refused(path) == [error]


@pytest.mark.slow
def test_a_plugin_whose_import_ends_the_process_does_not_hide_what_is_wrong_with_others(tmp_path: Path) -> None:
    settings = {"hyperparameters": "", "algorithms": ("one", "two"), "engine": "local"}
    path = write_job(tmp_path, plugin=model(", a"), name="Model", **settings)
    (tmp_path / "killer.py").write_text(model(before="import os\nos._exit(3)"))
    second = edited((tmp_path / "algorithm.yaml").read_text(), "./plugin.py", "./killer.py")
    (tmp_path / "killer.yaml").write_text(second)
    path.write_text(edited(path.read_text(), "{name: two, url: ./algorithm.yaml}", "{name: two, url: ./killer.yaml}"))
    assert refused(path) == [
        ("missing-hyperparameter", "algorithm.yaml:5:13"),
        ("unloadable-plugin", "killer.yaml:5:13"),
    ]


@pytest.mark.slow
def test_a_metric_whose_import_never_ends(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("while True: pass\n")
    exam = edited(DIGITS, "BWT", "{name: slow, url: ./slow.py}")
    path = write_job(
        tmp_path, plugin=model(), name="Model", hyperparameters="", testenv=exam, job=IMPATIENT, engine="local"
    )
    assert refused(path) == [("unloadable-plugin", "testenv.yaml:4:30")]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_one_message(tmp_path: Path) -> None:
    plugin = model(before="import torch")
    path = write_job(tmp_path, plugin=plugin, name="Model", hyperparameters="", algorithms=("one", "two"),
                     job="device: cuda\nseeds: [0, 1]")  # fmt: skip
    assert refused(path) == [("missing-device", "benchmarkingjob.yaml:5:11")]
    assert refused(path, device="cuda") == [("missing-device", "")]
    assert ianvs.validate(path, device="cpu").device == "cpu"


def test_the_command_line_takes_the_device_for_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    path = write_job(tmp_path, plugin=model(before="import torch"), name="Model", hyperparameters="")
    said = [(main([command, "-f", str(path), "--device", "cuda"]), capsys.readouterr().err) for command in
            ("validate", "run")]  # fmt: skip
    assert said[0] == said[1]
    assert said[0][0] == 2


# --- language models ------------------------------------------------------------------------------------------------

SEQUENTIAL = "from ianvs.testalgorithms.language.sequential.basemodel import Sequential\n"


def talk(folder: Path, grid: str, before: str = "") -> Path:
    said = '[{"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "They."}]}]'
    for part in ("train", "test"):
        (folder / f"{part}.json").write_text(said)
    exam = (
        "dataset: {train_data: ./train.json, test_data: ./test.json}\n"
        "scenario: {name: IIL, rounds: 1}\nmetrics: [ROUGE_L]"
    )
    return write_job(folder, plugin=before + SEQUENTIAL, name="Sequential", hyperparameters=grid, testenv=exam,
                     sort_by="[{ROUGE_L: descend}]", engine="local" if before else "inline")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "grid", "errors"),
    [
        (
            "",
            "- base_model: {values: [/nope/model]}",
            [("refused-arguments", "algorithm.yaml:8:33")],
        ),
        (
            "",
            "- tuning: {values: [lora]}\n- target_modules: {values: [all-linear, [q_proj, qroj]]}",
            [("refused-arguments", "algorithm.yaml:9:49")],
        ),
        (
            "import sys\nsys.modules['transformers'] = sys.modules['peft'] = None\n",
            "- tuning: {values: [lora, full]}",
            [("refused-arguments", "algorithm.yaml:8:29"), ("refused-arguments", "algorithm.yaml:8:35")],
        ),
    ],
    ids=["a model that is nowhere", "modules that it lacks", "without the extra"],
)
def test_a_language_model_that_can_not_be_built(tmp_path: Path, before: str, grid: str, errors: list[Found]) -> None:
    assert refused(talk(tmp_path, grid, before)) == errors


@pytest.mark.slow
def test_a_base_model_that_would_have_to_be_fetched(tmp_path: Path) -> None:
    assert refused(talk(tmp_path, "- base_model: {values: [nobody/no-such-model]}")) == [
        ("refused-arguments", "algorithm.yaml:8:33")
    ]


# --- types of hyperparameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", ["epochs: {values: [twenty]}", "epochs: {values: [20.0]}", "learning_rate: {values: ['0.05']}"]
)
def test_values_of_a_wrong_type_are_found_through_the_training_arguments(tmp_path: Path, given: str) -> None:
    plugin = "from ianvs.testalgorithms.finetune.basemodel import Finetune\n"
    path = write_job(tmp_path, plugin=plugin, name="Finetune", hyperparameters=f"- {given}")
    column = 12 + given.index("[")
    assert refused(path) == [("wrong-type", f"algorithm.yaml:8:{column}")]


@pytest.mark.parametrize("value", ["word", "[1.0]", "null", "true", ".nan", ".inf"])
@pytest.mark.parametrize("before", ["from __future__ import annotations", ""])
def test_a_number_is_a_number(tmp_path: Path, value: str, before: str) -> None:
    path = write_job(tmp_path, plugin=model(", a: float", before=before), name="Model",
                     hyperparameters=f"- a: {{values: [1, {value}]}}")  # fmt: skip
    assert refused(path) == [("wrong-type", "algorithm.yaml:8:27")]


def test_types_that_hold_and_annotations_that_can_not_be_resolved_are_in_nobodys_way(tmp_path: Path) -> None:
    arguments = ", a: float, b: Sequence[int], c: NoSuchName, d=1, e: int | None = 3, f: float = None, g: int = 'auto'"
    grid = (
        "- a: {values: [1, 2.5]}\n- b: {values: [[1, 2]]}\n- c: {values: [whatever]}\n- d: {values: [text]}\n"
        "- e: {values: [null, 4]}\n- f: {values: [null]}\n- g: {values: [auto]}"
    )
    before = "from __future__ import annotations\nfrom collections.abc import Sequence"
    path = write_job(tmp_path, plugin=model(arguments, before=before), name="Model", hyperparameters=grid)
    ianvs.validate(path)


def test_a_constant_of_another_file_is_held_against_its_type_too(tmp_path: Path) -> None:
    (tmp_path / "constants.yaml").write_text("depth: 3\nrate: fast\n")
    grid = "- other_hyperparameters: {values: [./constants.yaml]}"
    path = write_job(tmp_path, plugin=model(", rate: float, depth: int"), name="Model", hyperparameters=grid)
    assert refused(path) == [("wrong-type", "constants.yaml:2:7")]


def test_a_secret_of_a_wrong_type_is_not_shown(tmp_path: Path) -> None:
    path = write_job(
        tmp_path, plugin=model(", api_key: int"), name="Model", hyperparameters="- api_key: {values: [abcdef]}"
    )
    with pytest.raises(IanvsError) as caught:
        ianvs.validate(path)
    assert "abcdef" not in str(caught.value)


# --- all together -----------------------------------------------------------------------------------------------------


def test_what_is_wrong_with_files_and_with_plugins_is_told_at_once(tmp_path: Path) -> None:
    path = write_job(tmp_path, plugin=model(", a: float"), name="Model", hyperparameters="- a: {values: [word]}",
                     testenv=edited(TESTENV, "{name: BWT}", "{name: mIuU}"))  # fmt: skip
    assert [location for _, location in refused(path)] == ["testenv.yaml:4:38", "algorithm.yaml:8:24"]


def test_a_run_after_validate_finds_the_exam_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_job(tmp_path, plugin=MAJORITY, testenv=DIGITS, hyperparameters="", job="seeds: [0]")
    ianvs.validate(path)
    [exam] = (tmp_path / "ws" / "exams").glob("*/exam.json")
    built = exam.stat().st_mtime_ns
    assert ianvs.run(path).exit_code == 0
    assert exam.stat().st_mtime_ns == built


@pytest.mark.slow
def test_validate_does_not_load_the_compiler_of_torch(tmp_path: Path) -> None:
    body = "\n        import sys; assert 'torch._dynamo' not in sys.modules"
    plugin = model(body=body, before="import torch\nimport ianvs.authoring")
    ianvs.validate(write_job(tmp_path, plugin=plugin, name="Model", hyperparameters="", engine="local"))
