"""What of a conversation a language model learns, and what it is asked with."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.edits import edited

pytest.importorskip("transformers")

from ianvs.testalgorithms.language.batches import collate, grouped_by_length, split_by_tokens
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded, conversations_of
from ianvs.testalgorithms.language.tiny import tiny_tokenizer

TEXTS = ["Who is the mayor of Tarnau?", "Hugo Moll", "It is 2022.", "Name the winner of the cup.", "Red Foxes"]

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
FORGETFUL = (  # leaves out what the assistant said before, as templates of models that think aloud do
    "{% for m in messages %}{% if m['role'] == 'user' or loop.last %}{{ m['role'] + ':' + m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
THINKING = (  # thinks aloud unless told not to, and prints the day of the run, as templates of some families do
    "{{ 'Today: ' + (date_string if date_string is defined else 'the day of the run') + '\\n' }}"
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
    "{% if m['role'] == 'assistant' and loop.last %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
    "{{ m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
    "{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no such role') }}{% endif %}"
    "{{ '[' + m['role'] + ']' + m['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"
)


def tokenizer(template="as it is"):
    made = tiny_tokenizer(TEXTS, 320)
    if template == CHATML:
        made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    if template != "as it is":
        made.chat_template = template
    return made


def learnt_text(template, encoded):
    return template.tokenizer.decode([t for t, learnt in zip(encoded.tokens, encoded.learnt, strict=True) if learnt])


TWO_TURNS = Conversation(("Who is the mayor?", "And the cup?"), ("Hugo Moll", "Red Foxes"), "It is 2022.")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("as it is", "Hugo Moll<|end|>Red Foxes<|end|>"),
        (CHATML, "Hugo Moll<|im_end|>Red Foxes<|im_end|>"),
        (NO_SYSTEM, "Hugo Moll<|end|>Red Foxes<|end|>"),
        (None, "Hugo Moll<|end|>Red Foxes<|end|>"),  # the plain template
    ],
)
def test_exactly_the_assistants_words_and_their_end_marks_are_learnt(template, expected):
    chat = ChatTemplate(tokenizer(template))
    assert learnt_text(chat, chat.encode(TWO_TURNS)) == expected


@pytest.mark.parametrize("template", ["as it is", CHATML, NO_SYSTEM, None])
def test_the_tokens_are_those_of_the_rendered_conversation(template):
    chat = ChatTemplate(tokenizer(template))
    messages = TWO_TURNS.messages(2)
    if template == NO_SYSTEM:
        messages = [{"role": "user", "content": "It is 2022.\n\nWho is the mayor?"}, *messages[2:]]
    rendered = chat.tokenizer.apply_chat_template(messages, tokenize=False)
    assert chat.tokenizer.decode(chat.encode(TWO_TURNS).tokens) == rendered


def test_a_prompt_has_the_same_tokens_in_training_and_when_a_reply_is_asked_for():
    chat = ChatTemplate(tokenizer(CHATML))
    encoded = chat.encode(TWO_TURNS)
    for turn, said in ((0, []), (1, ["Hugo Moll"])):
        prompt = chat.prompt(TWO_TURNS, said)
        assert tuple(prompt) == encoded.tokens[: len(prompt)]
        assert encoded.learnt[len(prompt)] and not encoded.learnt[len(prompt) - 1], turn


def test_the_models_own_replies_are_its_history():
    chat = ChatTemplate(tokenizer())
    assert "Nobody" in chat.tokenizer.decode(chat.prompt(TWO_TURNS, ["Nobody"]))
    assert "Hugo" not in chat.tokenizer.decode(chat.prompt(TWO_TURNS, ["Nobody"]))


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=3), st.none() | st.text())
def test_any_text_is_learnt_as_it_is(turns, system):
    def clean(text):
        return text.replace("<|", "").replace("\ufffd", "")

    chat = ChatTemplate(CACHED)
    said = Conversation(tuple(clean(u) for u, _ in turns), tuple(clean(r) for _, r in turns), system and clean(system))
    assert learnt_text(chat, chat.encode(said)) == "".join(reply + "<|end|>" for reply in said.replies)


CACHED = tokenizer()


def test_an_end_mark_is_added_where_a_template_has_none():
    bare = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + ' ' }}{% endfor %}"
    chat = ChatTemplate(tokenizer(bare + "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"))
    encoded = chat.encode(Conversation(("a",), ("b",)))
    assert encoded.tokens[-1] in chat.stops and encoded.learnt[-1]


def test_a_model_that_could_think_aloud_is_asked_to_reply_at_once_and_sees_no_date_of_the_run():
    made = tokenizer()
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    made.chat_template = THINKING
    chat, talk = ChatTemplate(made), Conversation(("Who is the mayor?",), ("Hugo Moll",))
    encoded = chat.encode(talk)
    assert learnt_text(chat, encoded) == "Hugo Moll<|im_end|>"
    prompt = chat.prompt(talk, [])
    assert list(encoded.tokens[: len(prompt)]) == prompt
    assert "the day of the run" not in made.decode(prompt)


def test_a_template_that_is_only_steady_with_its_own_settings_keeps_them():
    made = tokenizer()
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    marked = "{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{% endif %}"
    made.chat_template = edited(CHATML, "assistant\\n' }}", "assistant\\n' }}" + marked)
    assert made.chat_template != CHATML
    chat = ChatTemplate(made)
    assert learnt_text(chat, chat.encode(TWO_TURNS)) == "Hugo Moll<|im_end|>Red Foxes<|im_end|>"


def test_without_a_template_a_text_begins_with_the_mark_that_the_tokenizer_puts_there():
    from tokenizers.processors import TemplateProcessing

    made = tokenizer(None)
    made.add_special_tokens({"bos_token": "<s>"})
    plain = ChatTemplate(made).encode(TWO_TURNS).tokens
    made.chat_template = None
    mark = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", made.bos_token_id)])
    made.backend_tokenizer.post_processor = mark
    assert ChatTemplate(made).encode(TWO_TURNS).tokens == (made.bos_token_id, *plain)


def test_blanks_before_signs_stay_as_the_model_said_them():
    made = tokenizer()
    made.clean_up_tokenization_spaces = True
    assert ChatTemplate(made).text(made("two cents , it is")["input_ids"]) == "two cents , it is"


def test_of_a_template_that_rewrites_history_each_turn_is_learnt_after_the_prompt_that_asks_for_it():
    chat = ChatTemplate(tokenizer(FORGETFUL))
    parts = chat.learnable(TWO_TURNS)
    assert [learnt_text(chat, encoded) for _, encoded in parts] == ["Hugo Moll<|end|>", "Red Foxes<|end|>"]
    for turn, (_, encoded) in enumerate(parts):
        prompt = chat.prompt(TWO_TURNS, TWO_TURNS.replies[:turn])
        assert list(encoded.tokens[: len(prompt)]) == prompt


def test_a_tokenizer_never_saw_later_rounds_and_spells_them_all_the_same():
    made = tiny_tokenizer(["Ada Berg is mayor. Ada Berg."], 300)
    assert made.decode(made("Zoë Ångström 数").input_ids) == "Zoë Ångström 数"
    assert made.unk_token is None


def test_a_batch_is_padded_on_the_right_and_padding_is_not_learnt():
    batch = collate([Encoded((5, 6, 7), (False, True, True)), Encoded((8, 9), (False, True))], 0, torch.device("cpu"))
    assert batch.tokens.tolist() == [[5, 6, 7], [8, 9, 0]]
    assert batch.seen.tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch.targets.tolist() == [6, 7, 9]
    rows = torch.arange(6.0).reshape(2, 3, 1)  # row (b, l) is 3 b + l
    assert batch.of_learnt(rows).flatten().tolist() == [0, 1, 3]  # each predicts the token after it


@given(st.lists(st.integers(1, 50), min_size=1, max_size=70), st.integers(1, 9), st.integers(0, 99))
def test_a_pass_brings_every_conversation_once_in_batches_of_at_most_that_size(lengths, size, seed):
    batches = list(grouped_by_length(lengths, size, torch.Generator().manual_seed(seed)))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in batches)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 30))
def test_batches_by_tokens_hold_every_conversation_in_order_and_no_more_tokens_than_they_may(lengths, tokens):
    talks = [Encoded(tuple([i] * length), tuple([True] * length)) for i, length in enumerate(lengths)]
    parts = list(split_by_tokens(talks, tokens))
    assert [talk for part in parts for talk in part] == talks
    assert all(len(part) == 1 or len(part) * max(map(len, part)) <= tokens for part in parts)


def test_conversations_of_alike_lengths_go_together():
    lengths = torch.randint(1, 500, (400,), generator=torch.Generator().manual_seed(1)).tolist()
    batches = list(grouped_by_length(lengths, 8, torch.Generator().manual_seed(0)))
    padded = sum(max(lengths[i] for i in batch) * len(batch) for batch in batches)
    assert padded < 1.3 * sum(lengths)


def test_a_reply_of_weight_0_is_context_and_not_learnt():
    chat = ChatTemplate(tokenizer())
    whole = chat.encode(TWO_TURNS)
    some = chat.encode(Conversation(TWO_TURNS.user, TWO_TURNS.replies, TWO_TURNS.system, unlearnt=(0,)))
    assert some.tokens == whole.tokens and learnt_text(chat, some) == "Red Foxes<|end|>"


@pytest.mark.parametrize("template", ["as it is", CHATML, None])
def test_of_a_plain_text_everything_is_learnt_and_the_template_adds_nothing_but_the_end(template):
    chat = ChatTemplate(tokenizer(template))
    [text] = conversations_of([{"id": "a", "system": None, "user": []}], [["Name the winner of the cup."]])
    encoded = chat.encode(text)
    assert encoded.tokens == (*chat.tokenizer("Name the winner of the cup.")["input_ids"], chat.stops[0])
    assert all(encoded.learnt)


def test_a_tokenizer_that_begins_texts_with_a_mark_begins_plain_ones_with_it():
    made = tokenizer()
    made.add_special_tokens({"bos_token": "<|s|>"})
    chat = ChatTemplate(Marking(made))
    encoded = chat.encode(Conversation((), ("a b",)))
    assert encoded.tokens[0] == made.bos_token_id and not encoded.learnt[0] and all(encoded.learnt[1:])


class Marking:
    """A tokenizer that puts its mark before every text, unless told not to."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __call__(self, text, add_special_tokens=True):
        found = self.inner(text, add_special_tokens=False)["input_ids"]
        return {"input_ids": [self.inner.bos_token_id, *found] if add_special_tokens else found}
