"""What stands in for pretrained weights in `ianvs examples`, and how it is noticed that a train() changed weights."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ianvs.processes.interpreters.lock import make_environment
from ianvs.testenv.ianvs_layouts.tiny_weights import checkpoints, stand_ins


def run(tmp_path: Path, code: str, text: str = "") -> tuple[str, dict[str, list[str]]]:
    """(what a script prints, lines of each record) with the variables that an example gets whose source is `text`."""
    script, records = tmp_path / "script.py", tmp_path / "records"
    script.write_text(code)
    variables, _ = stand_ins(text, tmp_path / "weights", records)
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | variables, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, {file.name: file.read_text().splitlines() for file in records.iterdir() if file.suffix == ""}


def test_weights_of_torch_s_hub_are_random_and_of_the_right_shapes(tmp_path):
    pytest.importorskip("torchvision")
    printed, records = run(
        tmp_path,
        "from torchvision.models import resnet18\n"
        "a, b = (resnet18(weights='IMAGENET1K_V1').fc.weight for _ in range(2))\n"
        "print(tuple(a.shape), bool((a == b).all()))\n",
    )
    assert printed == "(1000, 512) True\n" and set(records["random_weights"]) == {"resnet18-f37072fd.pth"}


@pytest.mark.parametrize(
    ("body", "changed"),
    [("loss(net(x)).backward(); step()", True), ("loss(net(x)).backward()", False), ("step()", False)],
)
def test_a_step_below_train_that_changes_a_weight_is_recorded(tmp_path, body, changed):
    code = (
        "import torch\nnet, x = torch.nn.Linear(2, 1), torch.ones(3, 2)\n"
        "step, loss = torch.optim.SGD(net.parameters(), lr=0.1).step, lambda y: y.sum()\n"
        f"def train():\n    {body}\ntrain()\n"
    )
    assert ("trained" in run(tmp_path, code)[1]) == changed


def test_a_step_that_is_not_below_train_is_no_training(tmp_path):
    code = (
        "import torch\nnet = torch.nn.Linear(2, 1)\nnet(torch.ones(3, 2)).sum().backward()\n"
        "torch.optim.SGD(net.parameters(), lr=0.1).step()\n"
    )
    assert "trained" not in run(tmp_path, code)[1]


def test_a_checkpoint_that_is_not_there_leaves_a_network_its_own_weights(tmp_path):
    algorithm = {"paradigm_type": "multiedgeinference", "initial_model_url": "./models/net_IBN.pth.tar", "modules": []}
    trained = {"paradigm_type": "singletasklearning", "initial_model_url": "./models/net.pth", "modules": []}
    assert checkpoints([algorithm, trained], tmp_path / "weights") == ["net_IBN.pth.tar"]
    assert trained["initial_model_url"] == "./models/net.pth"
    code = (
        "import torch\nnet = torch.nn.Linear(2, 1)\nbefore = net.weight.clone()\n"
        f"held = torch.load({algorithm['initial_model_url']!r})\n"
        "net.load_state_dict(held['state_dict'])\nprint(bool((before == net.weight).all()))\n"
    )
    assert run(tmp_path, code)[0] == "True\n"


def test_a_model_of_transformers_is_made_of_its_class_alone(tmp_path):
    pytest.importorskip("transformers")
    code = (
        "from transformers import SegformerForSemanticSegmentation as Net\n"
        "print(type(Net.from_pretrained('nvidia/segformer-b0-finetuned-cityscapes-1024-1024')).__name__)\n"
    )
    printed, records = run(tmp_path, code)
    assert printed == "SegformerForSemanticSegmentation\n"
    assert records["random_weights"] == ["nvidia/segformer-b0-finetuned-cityscapes-1024-1024"]


def test_the_tiny_language_model_answers_with_a_letter_whatever_it_is_called(tmp_path):
    pytest.importorskip("transformers")
    code = (
        "from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer\n"
        "words = AutoTokenizer.from_pretrained('somebody/large', trust_remote_code=True)\n"
        "chat = [{'role': 'user', 'content': 'Which letter?'}]\n"
        "text = words.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)\n"
        "asked = words([text], return_tensors='pt')\n"
        "for kind in (AutoModelForCausalLM, AutoModelForSeq2SeqLM):\n"
        "    answer = kind.from_pretrained('somebody/large').generate(**asked, max_new_tokens=9)[0]\n"
        "    print(words.decode(answer[asked.input_ids.shape[1]:], skip_special_tokens=True).strip())\n"
    )
    answers = run(tmp_path, code, "AutoModelForCausalLM")[0].split()
    assert len(answers) == 2 and set(answers) <= {*"ABCD"}


def test_a_tiny_model_of_llama_cpp_has_the_form_that_its_tools_read(tmp_path):
    gguf = pytest.importorskip("gguf")
    variables, _ = stand_ins("from llama_cpp import Llama", tmp_path, tmp_path / "records")
    reader = gguf.GGUFReader(variables["IANVS_TINY_GGUF"])
    shapes = {tensor.name: tensor.shape.tolist() for tensor in reader.tensors}
    assert shapes["token_embd.weight"] == [32, 263] and shapes["blk.0.ffn_down.weight"] == [64, 32]
    assert reader.fields["general.architecture"].contents() == "llama"


def test_an_environment_over_installed_packages_has_its_own_first(tmp_path):
    beneath = tmp_path / "beneath"
    beneath.mkdir()
    (beneath / "one_of_them.py").write_text("version = 'beneath'\n")
    (beneath / "another.py").write_text("version = 'beneath'\n")
    wheel = tmp_path / "one_of_them-1.0-py3-none-any.whl"
    about = "one_of_them-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("one_of_them.py", "version = 'installed'\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: one-of-them\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    packages = [str(beneath), *(path for path in sys.path if path.endswith("site-packages"))]
    make_environment(Path(sys.executable), ["--no-index", str(wheel)], tmp_path / "made", "a toy", tmp_path, packages)
    code = "import one_of_them, another; print(one_of_them.version, another.version)"
    python = str(tmp_path / "made/bin/python")
    assert subprocess.check_output([python, "-c", code], text=True) == "installed beneath\n"
