"""Qwen2-VL, Idefics3 and SmolVLM: tiny models, made by transformers, against its own processors and plain calls."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.conversation import conversations_of
from tests.errors import errors_of
from tests.marks import slow
from tests.unit.testalgorithms.seeing_folders import TOKENS, write_seeing

TUNING = {"lora_r": 2, "epochs": 2, "batch_size": 3, "max_new_tokens": 5, "learning_rate": 1e-2}


def picture(seed: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def talks(*rows: tuple[list[str], list[str], list[np.ndarray]]) -> SimpleNamespace:
    x, y = np.empty(len(rows), dtype=object), np.empty(len(rows), dtype=object)
    for i, (user, replies, pictures) in enumerate(rows):
        x[i] = {"id": str(i), "system": None, "user": user, "pictures": pictures}
        y[i] = replies
    return SimpleNamespace(x=x, y=y)


TALKS = talks(
    (["<image>\nWhat is this?", "And <image> this?"], ["red", "blue"], [picture(1, 40, 20), picture(2, 24, 64)]),
    (["Who?"], ["nobody"], []),
    (["<image>\nWhat is this?"], ["green"], [picture(3, 20, 30)]),
)


FEW = {"qwen2_5_vl", "smolvlm"}  # one of each family


@pytest.fixture(scope="module", params=[name if name in FEW else slow(name) for name in sorted(TOKENS)])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp(request.param)
    with torch.random.fork_rng():
        write_seeing(place, request.param)
    return place


@pytest.fixture(scope="module")
def learner(folder: Path) -> LanguageLearner:
    made = LanguageLearner(base_model=str(folder), tuning="lora", **TUNING)
    assert made.check_exam(conversations=[(TALKS.x, TALKS.y)]) == ""
    made.train(TALKS, round=1, seed=0)
    made.network.eval()
    return made


def expanded(learner: LanguageLearner, text: str, pictures: list[np.ndarray]) -> str:
    """As transformers' processor of the kind replaces the mark of each picture."""
    kind = learner.network.config.model_type
    module = __import__(f"transformers.models.{kind}.processing_{kind}", fromlist=["x"])
    [processor] = [v for n, v in vars(module).items() if n.endswith("Processor") and v.__module__ == module.__name__]
    made = processor.__new__(processor)
    tokenizer, images = learner._tokenizer, learner.template.sight.processor
    made.image_processor, made.tokenizer, made.image_token = images, tokenizer, learner.template.sight.mark
    made.image_seq_len, made.fake_image_token = 4, "<fake_token_around_image>"
    made.global_image_token = made.global_image_tag = "<global-img>"
    more = {} if kind.startswith("qwen") else {"return_row_col_info": True}
    for one in pictures:
        inputs = images(images=[one], return_tensors="pt", **more)
        head, mark, tail = text.partition(made.image_token)
        text = f"{head}{made.replace_image_token(inputs, 0).replace(mark, '§')}{tail}"
    return text.replace("§", made.image_token)


def test_tokens_are_those_of_the_processor(learner: LanguageLearner) -> None:
    for asked, talk in zip(TALKS.x, conversations_of(TALKS.x, TALKS.y), strict=True):
        said = learner.template._taken(talk.messages(len(talk.user)))
        text = learner._tokenizer.apply_chat_template(said, tokenize=False)
        theirs = learner._tokenizer(expanded(learner, text, asked["pictures"]), add_special_tokens=False)["input_ids"]
        one = learner.template.encode(talk)
        assert list(one.tokens) == theirs and len(one.spans) == len(asked["pictures"])
        said = [token for token, learnt in zip(one.tokens, one.learnt, strict=True) if learnt]
        assert learner._tokenizer.decode(said).replace(" ", "") == "".join(f"{r}<|im_end|>" for r in talk.replies)


def test_logits_of_a_batch_are_those_of_a_plain_call_for_each_conversation(learner: LanguageLearner) -> None:
    encoded = learner.encode(conversations_of(TALKS.x, TALKS.y))
    with torch.no_grad():
        batch = learner.batch(encoded)
        together = learner.logits(batch).split(batch.learnt[:, 1:].sum(1).tolist())
        for found, one, asked in zip(together, encoded, TALKS.x, strict=True):
            tokens, shown = torch.tensor([one.tokens]), {}
            if asked["pictures"]:
                made = learner.template.sight.processor(images=[asked["pictures"]], return_tensors="pt")
                shown = {name: value for name, value in made.items() if isinstance(value, torch.Tensor)}
                if "image_grid_thw" in shown:
                    shown["mm_token_type_ids"] = (tokens == learner.template.sight.token).int()
            logits = learner.network(input_ids=tokens, **shown).logits[0, :-1]
            torch.testing.assert_close(found, logits[torch.tensor(one.learnt[1:])], atol=1e-5, rtol=1e-4)


def test_replies_are_the_likeliest_tokens_whatever_the_batch(learner: LanguageLearner, tmp_path: Path) -> None:
    replies = learner.predict(TALKS)
    single = LanguageLearner(base_model=learner.options.base_model, tuning="lora", generation_batch=1, **TUNING)
    single.load(learner.save(tmp_path / "kept"))
    assert single.predict(TALKS) == replies and [len(one) for one in replies] == [2, 1, 1]
    asked = learner.template.encoded_prompt(conversations_of(TALKS.x[2:])[0], [])
    tokens = list(asked.tokens)
    with torch.no_grad():
        for _ in range(TUNING["max_new_tokens"]):
            inputs = torch.tensor([tokens])
            shown = learner.template.sight.inputs([asked.pictures], inputs)
            tokens.append(int(learner.network(input_ids=inputs, **shown).logits[0, -1].argmax()))
            if tokens[-1] in learner.template.stops:
                break
    assert replies[2] == [learner.template.text(tokens[len(asked.tokens) :])]


@pytest.mark.parametrize("tuning", ["lora", slow("full")])
def test_it_goes_on_from_what_it_saved_bit_for_bit(folder: Path, tuning: str, tmp_path: Path) -> None:
    first, second = (LanguageLearner(base_model=str(folder), tuning=tuning, vision="tuned", **TUNING) for _ in range(2))
    first.train(TALKS, round=1, seed=0)
    before = {name: weight.clone() for name, weight in first.network.named_parameters()}
    second.load(first.save(tmp_path / "kept"))
    for one in (first, second):
        one.train(TALKS, round=2, seed=0)
    ours, theirs = first.network.state_dict(), second.network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    moved = {name for name, weight in first.network.named_parameters() if not torch.equal(weight, before[name])}
    tower = "visual." if any("visual." in name for name in before) else "vision_model."
    parts = (tower, {"visual.": "visual.merger."}.get(tower, "connector."), "lora_" if tuning == "lora" else "layers.")
    assert all(any(part in name for name in moved) for part in parts)
    adapted = [name for name in before if "lora_" in name]
    assert not any(part in name for name in adapted for part in ("visual", "vision_model", "connector"))


def test_packed_rows_of_pictures_with_two_dimensions_are_refused(folder: Path) -> None:
    packing = LanguageLearner(base_model=str(folder), tuning="lora", packing=True, **TUNING)
    if "qwen" in folder.name:
        assert errors_of(packing.check_exam, conversations=[(TALKS.x, TALKS.y)]) == [("refused-arguments", "")]
    else:
        assert packing.check_exam(conversations=[(TALKS.x, TALKS.y)]) == ""
