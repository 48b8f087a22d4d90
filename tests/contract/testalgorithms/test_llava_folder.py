"""A LLaVA that lies in a folder, as transformers saves it, and CoIN's job on it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import CLIPImageProcessor, LlavaProcessor

from ianvs.cli import main
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.sight import tiny_seeing_model
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from tests.coin_layout import TASKS, write_coin

ROOT = Path(__file__).parents[3]
PARTS = (  # passes over contents that are texts, as templates of models that see do
    "{% for m in messages %}{{ m['role'].upper() + ': ' }}"
    "{% for c in m['content'] %}{% if c.type == 'image' %}<image>\n{% elif c.type == 'text' %}{{ c.text }}{% endif %}"
    "{% endfor %}{{ '<|end|>' if m['role'] == 'assistant' else '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT: {% endif %}"
)
TOLD = {"tuning": "lora", "lora_r": 2, "epochs": 1, "batch_size": 2, "max_new_tokens": 3, "vision": "tuned"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("llava")
    tokenizer = tiny_tokenizer([text for _, *texts in TASKS.values() for text in texts], 400, ["<image>"])
    tokenizer.chat_template = None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tiny_seeing_model(tokenizer, 32, 1, 2).save_pretrained(place)
    pictures = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    LlavaProcessor(pictures, tokenizer, patch_size=8, chat_template=PARTS).save_pretrained(place)
    return place


def rows() -> SimpleNamespace:
    x, y = np.empty(2, dtype=object), np.empty(2, dtype=object)
    for i, reply in enumerate(("red", "blue")):
        picture = np.random.default_rng(i).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        x[i] = {"id": str(i), "system": None, "user": ["<image>\nWhat?"], "pictures": [picture]}
        y[i] = [reply]
    return SimpleNamespace(x=x, y=y)


def test_its_processor_and_template_say_what_it_sees(folder: Path) -> None:
    learner = LanguageLearner(base_model=str(folder), **TOLD)
    assert learner.check_exam(conversations=[(rows().x, rows().y)]) == ""
    learner.train(rows(), round=1, seed=0)
    [one, _] = learner.encode(learner_conversations())
    text = learner._tokenizer.decode([token for token in one.tokens if token != learner.template.sight.token])
    assert text == "USER: \nWhat?\nASSISTANT: red<|end|>" and len(one.spans) == 1
    batch = learner.batch([one])
    processor = LlavaProcessor.from_pretrained(folder)
    theirs = processor(
        images=[rows().x[0]["pictures"][0]], text="USER: <image>\nWhat?\nASSISTANT: ", return_tensors="pt"
    )
    torch.testing.assert_close(batch.pictures["pixel_values"], theirs["pixel_values"])
    assert list(one.tokens[: theirs["input_ids"].shape[1]]) == theirs["input_ids"][0].tolist()


def learner_conversations() -> list:
    from ianvs.testalgorithms.language.conversation import conversations_of

    return conversations_of(rows().x, rows().y)


def test_an_adapter_is_loaded_with_what_was_tuned_beside_it(folder: Path, tmp_path: Path) -> None:
    first, second = (LanguageLearner(base_model=str(folder), **TOLD) for _ in range(2))
    first.train(rows(), round=1, seed=0)
    first.save(tmp_path / "a")
    assert not (tmp_path / "a" / "model").exists()
    second.load(tmp_path / "a")
    ours, theirs = first.network.state_dict(), second.network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert second.predict(rows()) == first.predict(rows())


@pytest.mark.slow
def test_coins_eight_tasks_are_checked_and_planned_on_their_layout(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_coin(tmp_path / "coin")
    monkeypatch.chdir(tmp_path)
    job = ["-f", str(ROOT / "configs/coin/benchmarkingjob.yaml"), "--root", "coin"]
    small = ["--set", f"base_model={folder}", "--set", "bf16=false", "--set", "device=cpu"]
    assert main(["validate", *job, *small]) == 0
    assert "no errors" in capsys.readouterr().out
    assert main(["plan", *job, *small]) == 0
    assert "7" in capsys.readouterr().out
    assert main(["exam", *job]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("ScienceQA", "Grounding", "OCR-VQA"))
