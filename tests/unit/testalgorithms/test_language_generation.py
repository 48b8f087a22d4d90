"""Replies: batched as one by one, whatever the padding; they end where they end."""

import pytest
import torch

pytest.importorskip("transformers")

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.conversation import conversations_of
from ianvs.testalgorithms.language.generation import Replying, generate, reply
from tests.errors import errors_of
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SIZE, asked, talks, taught


@pytest.fixture(scope="module")
def learner():
    made = taught(LanguageLearner(**{**SIZE, "width": 64, "epochs": 50, "learning_rate": 4e-3}), (FIRST,))
    made.network.eval()
    return made


def greedy(learner, prompt, most):
    """One token after the other, without a cache, without padding."""
    tokens = list(prompt)
    for _ in range(most):
        with torch.inference_mode():
            token = int(learner.network(input_ids=torch.tensor([tokens])).logits[0, -1].argmax())
        tokens.append(token)
        if token in learner.template.stops:
            break
    return tokens[len(prompt) :]


def test_what_was_learnt_is_said_with_its_own_earlier_replies_as_history(learner):
    assert learner.predict(asked(FIRST)) == list(FIRST.y)


def test_batched_replies_are_those_of_a_plain_greedy_loop(learner):
    many = talks(*[(s, [("Who " + "really " * n + "is mayor?", "")]) for n in range(7) for s in (None, "It is 2022.")])
    prompts = [learner.template.prompt(c, []) for c in conversations_of(many.x)]
    assert len({len(prompt) for prompt in prompts}) > 7
    found = generate(learner.network, learner.template, prompts, Replying(6))
    for prompt, said in zip(prompts, found, strict=True):
        expected = greedy(learner, prompt, 6)
        assert said[: len(expected)] == expected
        assert set(said[len(expected) :]) <= {learner.template.pad}


@pytest.mark.parametrize("size", [1, 2, 32])
def test_the_size_of_a_batch_does_not_change_replies(learner, size):
    conversations = conversations_of(asked(FIRST).x)
    found = reply(learner.network, learner.template, conversations, Replying(16, size))
    assert found == learner.predict(asked(FIRST))


def test_padding_on_the_right_would_give_other_replies(learner):
    """The trap that the tests above would not see if all prompts were of one length."""
    prompts = [learner.template.prompt(c, []) for c in conversations_of(FIRST.x)]
    length = max(map(len, prompts))
    right = torch.tensor([prompt + [learner.template.pad] * (length - len(prompt)) for prompt in prompts])
    with torch.inference_mode():
        first = learner.network(input_ids=right).logits[:, -1].argmax(1).tolist()
    assert first != [greedy(learner, prompt, 1)[0] for prompt in prompts]


def test_a_reply_ends_at_its_end_mark(learner):
    end = learner.template.stops[0]
    inside = learner.template.tokenizer("Ada Berg").input_ids
    assert learner.template.text([*inside, end, *inside]) == "Ada Berg"


def test_a_prompt_that_leaves_no_room_is_not_answered_and_nor_are_its_later_turns(learner):
    long = talks((None, [("Who is mayor?", ""), ("word " * 300, ""), ("Who is mayor?", "")]), FIRST_TALK)
    conversations = conversations_of(long.x)
    found = reply(learner.network, learner.template, conversations, Replying(16, 4), window=130)
    assert isinstance(found[0][0], str) and found[0][1:] == [None, None]
    assert found[1] == ["Ada Berg"]


FIRST_TALK = ("It is 2022.", [("Who is mayor?", "")])


def test_a_penalty_in_the_models_own_settings_is_not_applied(learner):
    before = learner.predict(asked(FIRST))
    settings = learner.network.generation_config
    try:
        settings.repetition_penalty, settings.do_sample = 5.0, True
        learner._adopt(learner.network, learner.template.tokenizer)
        assert learner.predict(asked(FIRST)) == before
    finally:
        settings.repetition_penalty, settings.do_sample = None, False


def test_a_tiny_model_says_nothing_before_it_was_taught():
    assert LanguageLearner(**SIZE).predict(asked(FIRST)) == [[None] * len(said) for said in FIRST.y]


def test_drawn_replies_repeat_with_their_seed_and_come_from_the_likeliest_tokens(learner):
    other = learner.replying
    try:
        learner.replying = Replying(12, temperature=1.5)
        drawn = [learner.predict(asked(FIRST), seed=seed) for seed in (0, 0, 1, 2)]
        assert drawn[0] == drawn[1] and len({str(said) for said in drawn}) > 1
        learner.replying = Replying(12, temperature=1.5, top_p=1e-6)
        assert learner.predict(asked(FIRST), seed=3) == list(FIRST.y), "of one token alone: as greedy"
    finally:
        learner.replying = other


def test_temperature_and_top_p_are_those_of_transformers(learner):
    prompt = learner.template.prompt(conversations_of(FIRST.x)[0], [])
    tokens = torch.tensor([prompt])
    torch.manual_seed(5)
    wanted = learner.network.generate(
        input_ids=tokens, attention_mask=torch.ones_like(tokens), do_sample=True, temperature=2.0, top_p=0.8, top_k=0,
        max_new_tokens=8, eos_token_id=list(learner.template.stops), pad_token_id=learner.template.pad,
    )  # fmt: skip
    torch.manual_seed(5)
    assert generate(learner.network, learner.template, [prompt], Replying(8, temperature=2.0, top_p=0.8)) == [
        wanted[0, len(prompt) :].tolist()
    ]


def test_a_reply_ends_before_a_stop_string_and_no_more_is_generated(learner):
    conversations = conversations_of(asked(FIRST).x)
    whole = reply(learner.network, learner.template, conversations, Replying(16))
    stopping = Replying(16, stop_strings=["Berg", " Foxes"])
    found = reply(learner.network, learner.template, conversations, stopping)
    assert whole[0] == ["Ada Berg"] and found[0] == ["Ada"] and found[1][0] == "Red" and found[2] == whole[2]
    prompt = learner.template.prompt(conversations[0], [])
    [said] = generate(learner.network, learner.template, [prompt], stopping)
    assert learner.template.text(said) == "Ada Berg" and not set(said) & set(learner.template.stops)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"temperature": -0.1}, "out-of-range"),
        ({"top_p": 1.2, "temperature": 1.0}, "out-of-range"),
        ({"top_p": 0.9}, "conflicting-keys"),
        ({"stop_strings": [3]}, "wrong-type"),
        ({"generation_batch": 0}, "out-of-range"),
    ],
)
def test_what_can_not_be_generated_with_is_told(options, code):
    assert errors_of(LanguageLearner, **options) == [(code, "")]
