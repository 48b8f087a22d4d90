"""Chat templates built as those of known families: what is learnt, and that the tokens are transformers' own."""

import random

import pytest

from tests.errors import errors_of

pytest.importorskip("transformers")

from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation
from ianvs.testalgorithms.language.lengths import Lengths
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.models import load_tokenizer
from ianvs.testalgorithms.language.tiny import tiny_tokenizer

TEXTS = ["Who is the mayor of Tarnau?", "Hugo Moll", "It is 2022.", "Name the winner of the cup.", "Red Foxes"]
TWO_TURNS = Conversation(("Who is the mayor?", "And the cup?"), ("Hugo Moll", "Red Foxes"))
ONE_TURN = Conversation(("Who is the mayor?",), ("Hugo Moll",))

QWEN3 = (  # thoughts, if only empty ones, before the last reply alone
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{% endif %}"
)
PHI3 = (  # an end of text behind the whole conversation, which is not there when it goes on
    "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
R1 = (  # asks for thoughts, and shows none of a reply
    "{% for m in messages %}{% if m.role == 'user' %}{{ '<|user|>' + m.content }}"
    "{% else %}{{ '<|assistant|>' + m.content.split('</think>')[-1] + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|><think>\n' }}{% endif %}"
)
MARKED = (  # TRL's way of saying what the assistant says
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}"
    "{% else %}{{ m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token + '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content + ' ' + eos_token }}{% endif %}{% endfor %}"
)
VICUNA = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}"
    "{% else %}{{ 'ASSISTANT: ' + m.content + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"
)


def byte_level(template):
    made = tiny_tokenizer(TEXTS, 320)
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>", "<|text|>"]})
    if template == PHI3:
        made.eos_token = "<|text|>"
    made.chat_template = template
    return made


def sentence_piece(template):
    """As those of Llama 2: blanks are signs, and a text begins with one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    signs = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = [*TEXTS, "[INST] [/INST]", "USER: ASSISTANT:"]
    words = [f"▁{word}" for text in words for word in text.split()]  # nothing is merged across blanks
    made.train_from_iterator(words, trainers.BpeTrainer(vocab_size=500, special_tokens=signs))
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>", chat_template=template
    )


def learnt(chat, encoded):
    return chat.tokenizer.decode([t for t, learnt in zip(encoded.tokens, encoded.learnt, strict=True) if learnt])


def messages(conversation):
    return conversation.messages(len(conversation.replies))


def of_transformers(tokenizer, conversation, **more):
    settings = {"enable_thinking": False, **more}
    return list(
        tokenizer.apply_chat_template(messages(conversation), tokenize=True, return_dict=True, **settings)["input_ids"]
    )


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (byte_level(PHI3), "Hugo Moll<|end|>Red Foxes<|end|>"),
        (byte_level(MARKED), "Hugo Moll<|im_end|>Red Foxes<|im_end|>"),
        (sentence_piece(LLAMA2), "Hugo Moll </s>Red Foxes </s>"),
        (sentence_piece(VICUNA), "Hugo Moll</s>Red Foxes</s>"),
        (sentence_piece(MISTRAL), "Hugo Moll</s>Red Foxes</s>"),
    ],
    ids=["Phi-3", "marked", "Llama 2", "Vicuna", "Mistral 0.1"],
)
def test_a_conversation_of_several_turns_has_the_tokens_of_transformers_and_its_replies_are_learnt(made, said):
    chat = ChatTemplate(made)
    [(_, encoded)] = chat.learnable(TWO_TURNS)
    assert list(encoded.tokens) == of_transformers(made, TWO_TURNS)
    assert learnt(chat, encoded).replace("  ", " ").replace("</s> ", "</s>") == said


def test_what_the_template_marks_is_what_transformers_says_is_the_assistants():
    made = byte_level(MARKED)
    told = made.apply_chat_template(
        messages(TWO_TURNS), tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    [(_, encoded)] = ChatTemplate(made).learnable(TWO_TURNS)
    mask = told["assistant_masks"] if "assistant_masks" in told else told["assistant_tokens_mask"]
    assert [int(one) for one in encoded.learnt] == list(mask)


def test_an_end_mark_that_the_template_does_not_count_as_said_is_learnt_too():
    template = MARKED.replace(
        "{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}",
        "{{ m.content }}{% endgeneration %}{{ '<|im_end|>\n' }}",
    )
    assert template != MARKED
    chat = ChatTemplate(byte_level(template))
    [(_, encoded)] = chat.learnable(TWO_TURNS)
    assert learnt(chat, encoded) == "Hugo Moll<|im_end|>Red Foxes<|im_end|>"
    assert list(encoded.tokens) == of_transformers(chat.tokenizer, TWO_TURNS)


def test_several_turns_of_a_template_that_takes_thoughts_out_are_learnt_one_by_one():
    made = byte_level(QWEN3)
    chat = ChatTemplate(made)
    parts = chat.learnable(TWO_TURNS)
    assert [learnt(chat, encoded) for _, encoded in parts] == ["Hugo Moll<|im_end|>", "Red Foxes<|im_end|>"]
    for turn, (part, encoded) in enumerate(parts):
        assert list(encoded.tokens) == of_transformers(made, part)
        prompt = chat.prompt(TWO_TURNS, TWO_TURNS.replies[:turn])
        assert list(encoded.tokens[: len(prompt)]) == prompt
        assert chat.encode(part) == encoded


def test_a_reply_of_weight_0_gets_no_part_of_its_own():
    chat = ChatTemplate(byte_level(QWEN3))
    some = Conversation(TWO_TURNS.user, TWO_TURNS.replies, None, unlearnt=(0,))
    assert [learnt(chat, encoded) for _, encoded in chat.learnable(some)] == ["Red Foxes<|im_end|>"]


@pytest.mark.parametrize("said", [ONE_TURN, TWO_TURNS])
def test_after_a_prompt_that_asks_for_thoughts_the_reply_is_learnt_as_it_is_asked_for(said):
    chat = ChatTemplate(byte_level(R1))
    parts = chat.learnable(said)
    assert [learnt(chat, encoded) for _, encoded in parts] == [f"{reply}<|end|>" for reply in said.replies]
    for turn, (_, encoded) in enumerate(parts):
        prompt = chat.prompt(said, said.replies[:turn])
        assert list(encoded.tokens[: len(prompt)]) == prompt
        assert chat.tokenizer.decode(prompt).endswith("<think>\n")


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_of_random_conversations_the_tokens_are_those_of_transformers(make):
    draw = random.Random(1)
    signs = "ab Zé数😀\n\t<|>[]/INST ▁  .,'"
    for template in [MARKED, PHI3] if make is byte_level else [LLAMA2, VICUNA, MISTRAL]:
        made = make(template)
        chat = ChatTemplate(made)
        for _ in range(60):
            texts = ["x" + "".join(draw.choices(signs, k=draw.randint(0, 12))).strip() for _ in range(4)]
            said = Conversation(tuple(texts[:2]), tuple(texts[2:]))
            [(_, encoded)] = chat.learnable(said)
            assert list(encoded.tokens) == of_transformers(made, said)
            assert sum(encoded.learnt) and encoded.learnt[-1] in (True, False)


def test_a_round_of_such_a_template_has_as_many_samples_as_turns():
    kept, encoded = Lengths(200).fitting([TWO_TURNS, ONE_TURN], ChatTemplate(byte_level(QWEN3)), 1)
    assert [len(one.replies) for one in kept] == [1, 2, 1] and len(encoded) == 3


def options(**more):
    return ModelOptions(**{
        "base_model": "tiny", "tuning": "full", "revision": None, "download": False, "trust_remote_code": False,
        "lora_r": 1, "lora_alpha": 1, "lora_dropout": 0.0, "target_modules": "all-linear", "experts": 1,
        "vocabulary": 300, "width": 32, "layers": 1, "heads": 2, "bf16": False, **more,
    })  # fmt: skip


def test_a_file_takes_the_place_of_the_models_template(tmp_path):
    (tmp_path / "mine.jinja").write_text(MARKED)
    made = load_tokenizer(options(chat_template=str(tmp_path / "mine.jinja")), TEXTS)
    assert made.chat_template == MARKED
    assert errors_of(options, chat_template=str(tmp_path / "yours.jinja")) == [("missing-file", "")]
