"""Language methods on conversations with pictures, against plain calls of transformers and values worked by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ianvs.base.lazy_images import Picture, Pictures
from ianvs.testalgorithms.language import Conversation, Encoded, LanguageLearner, VisionLanguageLearner
from ianvs.testalgorithms.language.agem.basemodel import AGEM
from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.conversation import conversations_of
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory
from ianvs.testalgorithms.language.ewc.basemodel import EWC
from ianvs.testalgorithms.language.gem.basemodel import GEM
from ianvs.testalgorithms.language.grouping import Codebook, instruction_of
from ianvs.testalgorithms.language.lwf.basemodel import LwF
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.language.olora.basemodel import OLoRA
from ianvs.testalgorithms.language.replay.basemodel import Replay
from ianvs.testalgorithms.language.shuffled_pictures.basemodel import ShuffledPictures
from tests.errors import errors_of
from tests.marks import slow

K = 16  # tokens of a picture of tiny-vision: (32 / 8)^2
SIZE = {"width": 32, "layers": 1, "heads": 2, "vocabulary": 300, "epochs": 1, "batch_size": 2, "max_new_tokens": 4}
SEEING = {**SIZE, "base_model": "tiny-vision", "vision": "tuned", "projector_learning_rate": 1e-3}


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def said(*rows):
    """rows: ([question, ...], [reply, ...], [seed of a picture, ...]) of each conversation."""
    x, y = np.empty(len(rows), dtype=object), np.empty(len(rows), dtype=object)
    for i, (user, replies, seeds) in enumerate(rows):
        x[i] = {"id": str(i), "system": None, "user": user, "pictures": [picture(seed) for seed in seeds]}
        y[i] = replies
    return SimpleNamespace(x=x, y=y)


FIRST = said(
    (["<image>\nWhat?", "And <image> this?"], ["red", "blue"], [1, 2]),
    (["Who?"], ["nobody"], []),
    (["<image>\nWhat?"], ["green"], [3]),
)
SECOND = said((["<image>\nWhere?"], ["A"], [4]), (["<image>\nWhere?"], ["B"], [5]))


@pytest.fixture(scope="module")
def learner() -> VisionLanguageLearner:
    made = VisionLanguageLearner(**SIZE)
    made.train(FIRST, round=1, seed=0)
    made.network.eval()
    return made


@pytest.fixture
def three(learner: VisionLanguageLearner) -> list[Encoded]:
    return learner.encode(conversations_of(FIRST.x, FIRST.y))


def test_a_mark_becomes_sixteen_tokens_of_which_none_is_learnt(learner, three):
    image, text = learner.template.sight.token, learner.template._ids("\nWhat?")
    found = learner.template._ids("<image>\nWhat?", [Picture.from_value(picture(1))])
    assert len(found) == len(text) + K and found == [image] * K + text
    two = three[0]
    assert [end - start for start, end in two.spans] == [K, K] and len(two.pictures) == 2
    assert not any(learnt for token, learnt in zip(two.tokens, two.learnt, strict=True) if token == image)
    assert np.array_equal(two.pictures[1].pixels, picture(2))


def test_a_batch_has_its_pictures_in_reading_order(learner, three):
    pixels = learner.batch(three).pictures["pixel_values"]
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    by_hand = [((picture(seed) / 255 - mean) / std).transpose(2, 0, 1) for seed in (1, 2, 3)]
    assert pixels.shape == (3, 3, 32, 32) and pixels.dtype == torch.float32
    np.testing.assert_allclose(pixels.numpy(), np.stack(by_hand), atol=1e-5)
    assert not learner.batch(three[1:2]).pictures


def rows_of(batch, logits):
    """The logits of each row of a batch."""
    counts = batch.learnt[:, 1:].sum(1).tolist()
    return logits.split(counts)


def test_logits_are_those_of_a_plain_call_for_each_conversation_in_whatever_order(learner, three):
    with torch.no_grad():
        batch = learner.batch(three)
        together = rows_of(batch, learner.logits(batch))
        turned = learner.batch(three[::-1])
        backward = rows_of(turned, learner.logits(turned))[::-1]
        for one, found, again in zip(three, together, backward, strict=True):
            tokens = torch.tensor([one.tokens])
            shown = learner.template.sight.inputs([one.pictures], tokens)
            plain = learner.network(input_ids=tokens, **shown).logits[0, :-1]
            plain = plain[torch.tensor(one.learnt[1:])]
            torch.testing.assert_close(found, plain, atol=1e-5, rtol=0)
            torch.testing.assert_close(found, again, atol=1e-6, rtol=0)


def test_another_picture_gives_other_logits(learner):
    one, other = (learner.encode([Conversation(("<image>\nWhat?",), ("red",), pictures=(picture(s),))]) for s in (1, 9))
    assert one[0].tokens == other[0].tokens
    with torch.no_grad():
        found = [learner.logits(learner.batch(each)) for each in (one, other)]
    assert (found[0] - found[1]).abs().max() > 1e-4


def test_likelihoods_of_true_replies_are_those_of_the_loss(learner, three):
    told = learner.teacher_forced(FIRST)
    with torch.no_grad():
        for one, (_, tokens, likelihood) in zip(three, told, strict=True):
            batch = learner.batch([one])
            picked = learner.logits(batch).log_softmax(-1).gather(1, batch.targets[:, None]).double().sum()
            assert tokens == len(batch.targets) and likelihood == pytest.approx(float(picked), abs=1e-4)


def test_generated_replies_are_the_likeliest_tokens_of_plain_calls(learner):
    [[reply]] = learner.predict(SimpleNamespace(x=FIRST.x[2:]))
    [asked] = [learner.template.encoded_prompt(conversations_of(FIRST.x[2:])[0], [])]
    tokens = list(asked.tokens)
    shown = learner.template.sight.inputs([asked.pictures], torch.tensor([tokens]))
    with torch.no_grad():
        for _ in range(SIZE["max_new_tokens"]):
            logits = learner.network(input_ids=torch.tensor([tokens]), **shown).logits[0, -1]
            tokens.append(int(logits.argmax()))
            if tokens[-1] in learner.template.stops:
                break
    assert reply == learner.template.text(tokens[len(asked.tokens) :])
    assert len(learner.predict(FIRST)[0]) == 2  # of two turns, each with a picture of its own


@pytest.mark.parametrize(("length", "pictures", "learns"), [(K, 0, False), (K + 1, 1, False), (60, 1, True)])
def test_a_cut_is_never_within_a_picture(learner, length, pictures, learns):
    [whole] = learner.encode([Conversation(("<image>\nWhat?",), ("red",), pictures=(picture(1),))])
    start, _ = whole.spans[0]
    cut = whole.cut(start + length)
    assert len(cut.pictures) == len(cut.spans) == (1 if length >= K else 0) if length != K else True
    inside = whole.cut(start + K - 1)
    assert (inside.pictures, inside.spans, any(inside.learnt)) == ((), (), False) and len(inside) == start
    assert any(cut.learnt[1:]) == learns


def test_who_is_cut_within_a_picture_is_skipped_and_counted():
    made = VisionLanguageLearner(**SIZE, max_length=12)
    made.train(FIRST, round=1, seed=0)
    assert made.lengths.counts[1][:2] == (3, 2)  # all but the one without a picture
    assert "2 of 3 in round 1" in made.remark


def test_marks_without_a_picture_are_refused(learner):
    assert errors_of(learner.encode, [Conversation(("<image>\nWhat?",), ("red",))]) == [("refused-arguments", "")]
    assert errors_of(learner.encode, [Conversation(("What?",), ("<image>",))]) == [("refused-arguments", "")]


def test_who_cannot_see_is_told_before_training():
    assert errors_of(lambda: LanguageLearner(**SIZE).check_exam(conversations=[(FIRST.x, FIRST.y)])) == [
        ("refused-arguments", "")
    ]
    assert errors_of(lambda: LanguageLearner(**SIZE).train(FIRST)) == [("refused-arguments", "")]
    named = [{**one, "pictures": Pictures(map(Picture.from_value, one["pictures"])).named()} for one in FIRST.x]
    assert VisionLanguageLearner(**SIZE).check_exam(conversations=[(named, FIRST.y)]) == ""


METHODS = {
    "cia": (CIA, {}), "cia with groups": (CIA, {"grouping": "tfidf", "threshold": 0.5}), "ewc": (EWC, {}),
    "lwf": (LwF, {}), "replay": (Replay, {"capacity": 2}), "agem": (AGEM, {"capacity": 2}),
    "gem": (GEM, {}), "lora": (Replay, {"capacity": 2, "tuning": "lora", "lora_r": 2}),
    "moelora": (MoELoRA, {"lora_r": 4, "experts": 2}), "olora": (OLoRA, {"lora_r": 2}), "multi_task": (MultiTask, {}),
    "shuffled_pictures": (ShuffledPictures, {}),
}  # fmt: skip


FEW = {"ewc", "lora", "moelora", "gem"}


@pytest.mark.parametrize(
    ("kind", "options"), [each if name in FEW else slow(*each) for name, each in METHODS.items()], ids=METHODS
)
def test_every_method_goes_on_from_what_it_saved_bit_for_bit(kind, options, tmp_path):
    def taught(one, data, number):
        past = {"train_rounds": (FIRST, SECOND)[:number]} if getattr(one, "sees_past_rounds", False) else {}
        one.train(data, round=number, seed=0, **past)

    first = kind(**SEEING, **options)
    taught(first, FIRST, 1)
    first.save(tmp_path / "model")
    second = kind(**SEEING, **options)
    second.load(tmp_path / "model")
    assert second.predict(SECOND) == first.predict(SECOND)
    for one in (first, second):
        taught(one, SECOND, 2)
    ours, theirs = first.network.state_dict(), second.network.state_dict()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_method_may_be_derived_from_both():
    class SeeingEWC(EWC, VisionLanguageLearner):
        pass

    made = SeeingEWC(**SIZE, strength=1.0)
    made.train(SECOND, round=1, seed=0)
    assert made.template.sight is not None and len(made.anchors) == 1


@pytest.mark.parametrize(
    ("projector", "vision", "tuning"),
    [
        ("tuned", "frozen", "lora"),
        ("frozen", "tuned", "full"),
        *(slow(*each) for each in (("tuned", "frozen", "full"), ("frozen", "tuned", "lora"))),
        *(slow("frozen", "frozen", tuning) for tuning in ("full", "lora")),
    ],
)
def test_what_is_frozen_stays_and_what_is_tuned_moves(projector, vision, tuning, tmp_path):
    made = VisionLanguageLearner(**SIZE, tuning=tuning, lora_r=2, projector=projector, vision=vision)
    made.train(FIRST, round=1, seed=0)
    made.save(tmp_path / "a")
    before = {name: tensor.clone() for name, tensor in made.network.state_dict().items()}
    made.train(FIRST, round=2, seed=0)
    moved = {name for name, tensor in made.network.state_dict().items() if not torch.equal(tensor, before[name])}
    adapted = {name for name in moved if "lora_" in name}
    assert any("multi_modal_projector" in name for name in moved) == (projector == "tuned")
    assert any("vision_tower" in name for name in moved) == (vision == "tuned")
    assert bool(adapted) == (tuning == "lora") and all("language_model" in name for name in adapted)
    again = VisionLanguageLearner(**SIZE, tuning=tuning, lora_r=2, projector=projector, vision=vision)
    again.load(tmp_path / "a")
    assert all(torch.equal(tensor, before[name]) for name, tensor in again.network.state_dict().items())


def test_the_projector_has_a_learning_rate_of_its_own():
    made = VisionLanguageLearner(**SIZE, learning_rate=1e-3, warmup=0.0)
    made.train(SECOND, round=1, seed=0)  # one step; the first of Adam moves each weight by its learning rate
    assert made.projector_learning_rate == 2e-5 and set(made.rates.values()) == {2e-5}
    assert {name.rpartition(".linear")[0].rpartition(".")[2] for name in made.rates} == {"multi_modal_projector"}
    fresh = VisionLanguageLearner(**SIZE)
    fresh._ready(conversations_of(SECOND.x, SECOND.y), "cpu", 0)
    steps = {name: (w - fresh.weights[name]).abs().max().item() for name, w in made.weights.items()}
    assert max(step for name, step in steps.items() if name in made.rates) == pytest.approx(2e-5, rel=0.1)
    assert max(step for name, step in steps.items() if name not in made.rates) == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"projector": "thawed"}, "invalid-choice"),
        ({"vision": "blind"}, "invalid-choice"),
        ({"projector_learning_rate": 0}, "out-of-range"),
    ],
)
def test_wrong_options_are_refused_by_name(wrong, code):
    assert errors_of(VisionLanguageLearner, **wrong) == [(code, "")]


def test_a_memory_counts_conversations_and_the_bytes_of_pixels_and_keeps_files(tmp_path):
    memory = ConversationMemory(2)
    memory.add(conversations_of(FIRST.x, FIRST.y), torch.Generator())
    text = sum(len(one.encode()) for c in memory.conversations for one in (*c.user, *c.replies))
    pictures = sum(len(c.pictures) for c in memory.conversations)
    assert len(memory) == 2 and pictures and memory.nbytes == text + pictures * 32 * 32 * 3
    made = Replay(**SEEING, capacity=3)
    made.train(FIRST, round=1, seed=0)
    made.save(tmp_path / "a")
    held = torch.load(tmp_path / "a" / "method.pt", weights_only=True)["method"]["conversations"]
    names = {one["picture"] for *_, shown in held for one in shown}
    assert names == {file.name for file in (tmp_path / "a" / "pictures").iterdir()} and len(names) == 3


COIN = {
    "ScienceQA": "Answer with the option's letter from the given choices directly.",
    "TextVQA": "Answer the question using a single word or phrase.",
    "ImageNet": "Answer the question using a single word or phrase.",
    "GQA": "Answer the question using a single word or phrase.",
    "VizWiz": "Answer the question using a single word or phrase.",
    "Grounding": "Please provide the bounding box coordinate of the region this sentence describes.",
    "VQAv2": "Answer the question using a single word or phrase.",
    "OCR-VQA": "Reference OCR token: what does the cover of this book say?",
}


def test_the_last_lines_of_coins_eight_tasks_are_four_groups():
    book = Codebook(0.9)
    for task, last in COIN.items():
        book.assign([instruction_of(Conversation((f"<image>\nSomething about {task}\n{last}",)))])
    assert len(book.groups) == 4
