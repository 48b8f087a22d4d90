"""`ianvs examples`, over a made-up checkout: one job finishes, the others say why not."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import ianvs
from ianvs.base.types import Failure
from ianvs.cli.command_line import main
from ianvs.cli.ianvs_examples.examples_command import _ACTION
from ianvs.cli.ianvs_examples.examples_table import new_failures, read_table, write_table
from ianvs.cli.ianvs_examples.failure_owner import _owner, cause_of_refusal
from ianvs.cli.ianvs_examples.one_example import Example, _judged
from ianvs.processes.proc import descendants, state
from ianvs.testenv.ianvs_layouts.tiny_data import UnknownLayoutError, made, shrunk
from ianvs.testenv.ianvs_layouts.tiny_weights import stand_ins
from tests.errors import printed
from tests.waiting import PATIENCE, wait_for

PLUGIN = """
from sedna.common.class_factory import ClassFactory, ClassType
{imports}

@ClassFactory.register(ClassType.GENERAL, alias="Guess")
class Guess:
    def __init__(self, learning_rate=0.1, epochs=1):
        self.learning_rate, self.epochs = learning_rate, epochs
    def train(self, train_data, valid_data=None):
        assert self.epochs == 1 and len(train_data.x) > 3
        open("written_by_the_plugin", "w").write("here")
        open(__file__ + ".trained", "w").write("beside it")
    def save(self, path):
        return path
    def load(self, path):
        pass
    def predict(self, data):
        return ["A" if self.learning_rate < 1 else "none of them" for _ in data]

@ClassFactory.register(ClassType.GENERAL, alias="exact")
def exact(y, answers):
    return sum(map(str.__eq__, y, answers)) / len(y)
"""


def example(checkout: Path, name: str, data: str, imports: str = "", rates: bool = True, renamed: bool = True) -> None:
    """A job as examples of Ianvs have them: its paths are those of its author, and of a folder that was renamed."""
    folder = checkout / "examples" / name
    folder.mkdir(parents=True)
    (folder / "plugin.py").write_text(PLUGIN.format(imports=imports))
    before = f"./examples/{'before_' if renamed else ''}{name}"
    grid = [{"epochs": {"values": [50]}}, *([{"learning_rate": {"values": [0.1, 3.0]}}] if rates else [])]
    module = {"type": "basemodel", "name": "Guess", "url": f"{before}/plugin.py", "hyperparameters": grid}
    files = {
        "algorithm": {"paradigm_type": "singletasklearning", "modules": [module]},
        "testenv": {
            "dataset": {"train_data": f"/home/author/{data}", "test_data": f"/home/author/{data}"},
            "metrics": [{"name": "exact", "url": f"{before}/plugin.py"}],
        },
        "benchmarkingjob": {
            "name": "job",
            "workspace": "/home/author/workspace",
            "testenv": f"{before}/testenv.yaml",
            "test_object": {"type": "algorithms", "algorithms": [{"name": "guess", "url": f"{before}/algorithm.yaml"}]},
            "rank": {"sort_by": [{"exact": "descend"}]},
        },
    }
    for kind, content in files.items():
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump({kind: content}))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    found = tmp_path / "checkout"
    example(found, "good", "data.jsonl")
    example(found, "lacking", "data.jsonl", "import no_such_package_at_all")
    example(found, "strange", "index.txt")
    return found


def tried_from(checkout: Path, out: Path) -> dict[str, str]:
    """The row of the one job of `checkout`, of which nothing is written."""
    before = contents(checkout)
    assert main(["examples", ".", "--out", str(out), "--seconds", "300"]) == 0
    assert contents(checkout) == before
    with (out / "examples.csv").open(newline="") as file:
        return next(csv.DictReader(file))


@pytest.mark.slow
def test_a_job_of_one_setting_is_judged_by_two_sets_of_data(tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    example(checkout, "single", "data.jsonl", rates=False, renamed=False)
    monkeypatch.chdir(checkout)  # as in the action: its paths lead to its own plugins, of which copies are to run
    row = tried_from(checkout, tmp_path / "out")
    assert (row["finishes"], row["configurations"]) == ("True", "1")
    assert row["scores"].startswith("exact ") and " 2 sets " in row["scores"]


@pytest.mark.slow
def test_an_error_is_told_with_who_raised_it(tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    example(checkout, "broken", "data.jsonl", rates=False)
    monkeypatch.chdir(checkout)
    plugin = checkout / "examples/broken/plugin.py"
    plugin.write_text(plugin.read_text().replace('return ["A"', 'return {}["its own"] or ["A"'))
    row = tried_from(checkout, tmp_path / "out")
    assert (row["starts"], row["finishes"], row["cause"]) == ("True", "False", "checkout")
    assert "plugin.py:" in row["missing"]


def test_scores_that_are_the_same_for_all_show_nothing():
    judged = partial(_judged, Example("job"), over="2 configurations")
    assert not judged([{"a": 0.5}, {"a": 0.5}]).finishes
    printed(judged([{"a": 0.5}, {"a": 0.5}]).missing)
    printed(judged([{"a": math.nan}, {"a": 0.5}]).missing)
    assert judged([{"a": 0.5, "b": 1}, {"a": 0.5, "b": 2}]).scores.startswith("b 1 to 2 ")


def test_who_raised_an_error_is_told_by_the_file_it_came_from(tmp_path):
    site = Path("/env/lib/site-packages")
    for file, who in (
        (tmp_path / "examples/plugin.py", "checkout"),
        (Path(ianvs.__file__).with_name("api.py"), "ours"),
        (site / "keras/src/layers/layer.py", "package keras"),
        (site / "transformers/utils/hub.py", "weights"),
        (site / "openai/_base_client.py", "service"),
    ):
        log = f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    f()\nTypeError: x\n'
        later = 'Traceback (most recent call last):\n  File "/other.py", line 1, in g\nPluginError: y\n'
        log += f"\nThe above exception was the direct cause of the following exception:\n\n{later}"
        assert _owner(Failure("exception", "TypeError", "x"), log, tmp_path) == who
    assert _owner(Failure("memory", "SIGKILL", "x"), "", tmp_path) == "limit"
    for message, who in (
        ("ZeroDivisionError: integer modulo by zero", "ours"),
        ("NVMLError: no driver", "card"),
        ("it is cut by onnx: pip install onnx.", "package onnx"),
    ):
        assert _owner(Failure("exception", "PluginError", message), log, tmp_path) == who
    absent = "basemodel 'G' (examples/g.py), constructor: FileNotFoundError: unable to open 'examples/weights.h5'"
    assert _owner(Failure("exception", "PluginError", absent), log, tmp_path) == "checkout"


def test_what_the_checks_refuse_is_the_checkout_s_the_data_s_or_a_package_s(tmp_path):
    missing = "a/plugin.py:3:1: this file imports '{}', which is not installed. {}"
    own = "/x/RFNet has no 'RFNet.config': a file that belongs to the plugin is missing."
    for said, who in (
        (missing.format("mmcv.image", "Install it (pip install mmcv)."), ("package", "packages: mmcv")),
        (missing.format("RFNet.config", own), ("checkout", "files that its code imports: RFNet.config")),
        (
            ".run/job.yaml:7:1: toy: import of p.py: ModuleNotFoundError: No module named 'langchain.chains'. Install",
            ("package langchain, too new", "modules that moved: langchain.chains"),
        ),
        (".run/job.yaml:8:1: there is no file x.py.", ("checkout", "there is no file x.py.")),
        (".data/train.jsonl:2:1: no 'answer'.", ("ours", ".data/train.jsonl:2:1: no 'answer'.")),
    ):
        assert cause_of_refusal(said, tmp_path) == who


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.slow
def test_one_table_says_which_jobs_run_and_why_others_do_not(checkout, tmp_path, monkeypatch, capsys):
    before = contents(checkout)
    called_from = tmp_path / "called from"
    (called_from / "examples").mkdir(parents=True)  # as in a checkout of ours, or of theirs
    monkeypatch.chdir(called_from)
    out = tmp_path / "out"
    assert main(["examples", str(checkout), "--out", str(out), "--jobs", "3", "--seconds", "120"]) == 0
    said = capsys.readouterr()
    assert "1 of 3 " in said.out
    assert contents(checkout) == before  # nothing of it is written
    assert not contents(called_from)  # nor where one happens to be

    with (out / "examples.csv").open(newline="") as file:
        rows = {Path(row["job"]).parent.name: row for row in csv.DictReader(file)}
    good, lacking, strange = (rows[name] for name in ("good", "lacking", "strange"))
    assert good["finishes"] == "True" and good["configurations"] == "2"
    assert good["scores"].startswith("exact 0 to 0.") and " 2 configurations" in good["scores"]
    assert good["changed"] == "epochs 1"
    assert (lacking["starts"], lacking["cause"]) == ("False", "package")
    assert "no_such_package_at_all" in lacking["missing"]
    assert strange["cause"] == "ours" and "index.txt" in strange["missing"]
    assert json.loads((out / "badge.json").read_text())["message"] == "1/3 finish"
    lines = (out / "examples.md").read_text().splitlines()
    assert sum(line.startswith("| examples/") for line in lines) == 3

    # What is done is not done again, unless its files changed; the table is of all, also of those that are stored.
    logs = {file: file.stat().st_mtime_ns for file in out.rglob("example.json")}
    assert main(["examples", str(checkout), "--out", str(out), "--seconds", "120"]) == 0
    assert {file: file.stat().st_mtime_ns for file in out.rglob("example.json")} == logs
    shutil.copy(checkout / "examples/lacking/plugin.py", checkout / "examples/strange/plugin.py")
    assert main(["examples", str(checkout), "--out", str(out), "--seconds", "120"]) == 0
    again = [file.parent.name for file in out.rglob("example.json") if file.stat().st_mtime_ns != logs[file]]
    assert again == ["examples_strange_benchmarkingjob"]


def test_a_table_is_read_back_and_says_what_is_worse(tmp_path):
    good = Example(
        "a.yaml",
        "singletasklearning",
        True,
        True,
        2,
        "exact 0 to 1",
        "changed",
        "x.pth",
        "epochs 1",
        "timm==1",
        seconds=3.5,
    )
    lacking = Example("b.yaml", cause="package", missing="packages: x, y")
    write_table([good, lacking], tmp_path, "a checkout")
    table = read_table(tmp_path / "examples.csv")
    assert table == {"a.yaml": good, "b.yaml": lacking}
    assert not new_failures([good, lacking, Example("new.yaml")], table)
    worse = [replace(good, finishes=False), replace(good, starts=False)]
    assert new_failures(worse, table) == worse


def test_a_baseline_decides_the_exit_status_and_a_part_leaves_other_rows(tmp_path, monkeypatch):
    """The jobs are not run: what trying them gives is set here."""
    checkout, out = tmp_path / "checkout", tmp_path / "out"
    outcome = {"a": True, "b": False}
    for name in outcome:
        (checkout / "examples" / name).mkdir(parents=True)
        (checkout / "examples" / name / "job.yaml").write_text("benchmarkingjob:\n")
    module = "ianvs.cli.ianvs_examples.one_example"
    monkeypatch.setattr(f"{module}.run_example", lambda job, *_: Example(str(job), finishes=outcome[job.parent.name]))
    out.mkdir()
    command = ["examples", str(checkout), "--out", str(out)]
    assert main(command) == 0
    outcome["b"] = True
    assert main([*command, "--only", "/b/"]) == 0
    assert [row.finishes for row in read_table(out / "examples.csv").values()] == [True, True]
    shutil.copy(out / "examples.csv", tmp_path / "baseline.csv")
    outcome["a"] = False
    assert main(command) == 1  # worse than the run before
    assert main(command) == 0  # as bad as that
    assert main([*command, "--baseline", str(tmp_path / "baseline.csv")]) == 1
    assert main([*command, "--baseline", str(tmp_path / "nowhere.csv")]) == 2
    assert main([*command, "--baseline", str(checkout / "examples/a/job.yaml")]) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_it_has_started_ends_with_it(checkout, tmp_path):
    plugin = checkout / "examples" / "good" / "plugin.py"
    began = tmp_path / "began"
    plugin.write_text(f"import time\nopen({str(began)!r}, 'w').close()\ntime.sleep(600)\n" + plugin.read_text())
    options = ["--out", str(tmp_path / "out"), "--only", "good"]
    process = subprocess.Popen([sys.executable, "-m", "ianvs", "examples", str(checkout), *options])
    wait_for(began.exists)
    started = [*descendants(process.pid)]
    process.terminate()
    assert process.wait(PATIENCE) == 130 and started
    wait_for(lambda: not any(map(state, started)))
    assert not [*(tmp_path / "out").rglob("example.json")]


def test_a_folder_that_is_no_checkout_and_an_output_within_it_are_refused(tmp_path, capsys):
    for arguments in (
        ["nowhere"],
        [str(tmp_path), "--out", str(tmp_path / "out")],
        [str(tmp_path), "--out", str(tmp_path.parent / "other")],
    ):
        assert main(["examples", *arguments]) == 2
        printed(capsys.readouterr().err)


def test_the_action_runs_the_command_with_options_that_it_has(capsys):
    assert main(["examples", "--action"]) == 0
    text = capsys.readouterr().out
    assert text == _ACTION.read_text()
    steps = yaml.safe_load(text)["jobs"]["examples"]["steps"]
    assert any("ianvs-bench examples . --out" in step.get("run", "") for step in steps)


def test_segmentation_and_arrays_have_the_form_that_examples_read(tmp_path):
    from PIL import Image

    dataset = {"train_url": "/home/a/train.txt", "test_url": "/home/a/test.txt", "name": "x"}
    found = made(dataset, "examples/cityscapes-synthia/segmentation", "lifelonglearning", tmp_path / "s")
    picture, label = Path(found["train_url"]).read_text().splitlines()[0].split(" ")
    assert Image.open(picture).size == Image.open(label).size == (192, 96)
    assert len(np.unique(np.asarray(Image.open(label)))) > 1 and "aachen" in picture
    found = made(dataset, "examples/cifar100/fedavg", "federatedlearning", tmp_path / "a")
    assert found["name"] == "x"
    texts = (Path(found[key]).read_text() for key in ("train_url", "test_url"))
    train, test = ([line.split("\t") for line in text.splitlines()] for text in texts)
    assert [label for _, label in train] == [str(n) for n in range(20)]
    assert np.load(train[0][0]).shape == (16, 32, 32, 3) and np.load(test[0][0]).shape == (1, 32, 32, 3)
    counts = Counter(label for _, label in test)
    assert len(counts) == 20 and len(set(counts.values())) > 1  # one answer to all is right more often for some classes
    found = made(dataset, "examples/cifar100/federated_learning/fedavg", "federatedlearning", tmp_path / "b")
    assert Path(found["train_url"]).read_text().splitlines()[-1].endswith("\t99")
    with pytest.raises(UnknownLayoutError, match=r"train\.txt"):
        made(dataset, "examples/unheard_of", "singletasklearning", tmp_path / "u")


def test_the_same_boxes_can_be_read_in_three_forms(tmp_path):
    def first(words: str, suffix: str) -> Path:
        found = made({"test_url": f"/a/test{suffix}"}, words, "singletasklearning", tmp_path / words)
        return Path(found["test_url"])

    picture, label = map(Path, first("palletizing", ".txt").read_text().splitlines()[0].split())
    assert picture.is_file() and picture.parts[-3] == "images" and label.parts[-3] == "labels"
    share = np.array(label.read_text().split()[1:], dtype=float)
    _, annotation = first("pcb-aoi", ".txt").read_text().splitlines()[0].split()
    corners = [int(ElementTree.parse(annotation).findtext(f".//{key}")) for key in ("xmin", "ymin", "xmax", "ymax")]
    coco = json.loads(first("mot17", ".json").read_text())
    x, y, width, height = coco["annotations"][0]["bbox"]
    assert corners == [x, y, x + width, y + height]
    assert share == pytest.approx([(x + width / 2) / 64, (y + height / 2) / 48, width / 64, height / 48])
    assert {one["image_id"] for one in coco["annotations"]} == {one["id"] for one in coco["images"]}


def test_data_that_a_plugin_finds_by_itself_lie_where_the_testenv_says(tmp_path):
    copy = tmp_path / "copy"
    dataset = {"train_index": "../examples/llio/data/train_index.txt", "test_index": "/far/away/test_index.txt"}
    for draw in (0, 1):
        found = made(dataset, "examples/llio", "singletasklearning", copy / ".data", draw, copy / ".run")
        data = copy / "examples/llio/data"
        assert (data / "train_index.txt").samefile(found["train_index"])  # of this draw
        drive = data / (data / "train_index.txt").read_text().splitlines()[0]
        steps = [len(list((drive / kind).iterdir())) for kind in ("oxts/data", "velodyne_points/data")]
        assert steps == [12, 12] and len((drive / "oxts/timestamps.txt").read_text().splitlines()) == 12
        assert len((drive / "oxts/data/0000000000.txt").read_text().split()) == 30
    outside = {"train_index": "../../kitti/train_index.txt"}
    made(outside, "examples/llio", "singletasklearning", copy / ".data", 0, copy / ".run")
    assert {one.name for one in tmp_path.iterdir()} == {"copy"}  # nothing is linked outside the copy


def test_what_is_changed_in_the_copy_is_said():
    exam = {"round": 200, "incremental_rounds": 2, "model_eval": {"model_metric": {"mode": "no-inference"}}}
    split = {"splitting_method": "default", "train_ratio": 0.9}
    module = {"hyperparameters": [{"lr": {"values": ["1e-4"]}}, {"local_epochs": {"values": [5, 10]}}]}
    lifelong = {"paradigm_type": "lifelonglearning", "modules": [module], "lifelong_learning_data_setting": split}
    changed = shrunk(exam, [lifelong])
    assert changed[0] == "round 1" and exam["round"] == 1 and exam["incremental_rounds"] == 2
    assert lifelong["lifelong_learning_data_setting"] == {"splitting_method": "fwt_splitting", "train_ratio": 0.9}
    assert any("splitting_method" in one for one in changed)
    assert module["hyperparameters"] == [{"lr": {"values": ["1e-4"]}}, {"local_epochs": {"values": [1]}}]
    assert "local_epochs 1" in changed


def test_stand_ins_are_named_for_code_that_asks_for_them_alone(tmp_path):
    environment, notes = stand_ins("import torch\n", tmp_path / "w", tmp_path / "records")
    assert notes == [] and not {"IANVS_TINY_MODEL", "IANVS_TINY_GGUF"} & {*environment}
    code = "net = net.cuda()\nmake_grid(x, 3,\n    range=(0, 255))\n"
    environment, notes = stand_ins(code, tmp_path / "w", tmp_path / "records")
    assert [text.split()[0] for text in notes] == ["cuda", "make_grid"] and environment["PYTHONPATH"]


def test_a_chat_gets_its_last_message_back_and_a_judge_the_points_that_it_was_told(tmp_path):
    metadata = {"train_data": "/a/data.jsonl", "test_data_info": "/a/metadata.json"}
    found = made(metadata, "examples/government", "singletasklearning", tmp_path / "d")
    text = Path(found["test_data_info"]).with_name("data.jsonl").read_text()
    assert len(set(re.findall(r"'Overall Points': (\d+), 'Composite score': \d", text))) > 6

    package = tmp_path / "openai/resources/chat/completions"
    package.mkdir(parents=True)
    validated = "    model_validate = staticmethod(dict)\n"
    kinds = ("Completions:\n    def create(self, **_): raise OSError", "ChatCompletion:", "ChatCompletionChunk:")
    (package / "completions.py").write_text("".join(f"class {kind}\n{validated}" for kind in kinds))
    asking = tmp_path / "plugin.py"
    asking.write_text(
        "from openai.resources.chat.completions.completions import Completions\nimport json, os\n"
        "assert os.getenv('DEEPSEEK_API_KEY')\n"
        "messages = [{'role': 'system', 'content': 'x'}, {'role': 'user', 'content': 'say it'}]\n"
        "whole = Completions().create(messages=messages, model='m', temperature=1)\n"
        "parts = list(Completions().create(messages=messages, model='m', stream=True))\n"
        "print(whole['choices'][0]['message']['content'], parts[0]['choices'][0]['delta']['content'])\n"
    )
    environment, notes = stand_ins(f"import openai\n{asking.read_text()}", tmp_path / "w", tmp_path / "records")
    assert len(notes) == 1 and "openai" in notes[0]
    run = (sys.executable, str(asking))
    assert subprocess.run(run, env=environment, capture_output=True, text=True).stdout == "say it say it\n"
