"""What language models make of true replies, against the same computed the long way."""

import math

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.conversation import Encoded, conversations_of
from ianvs.testalgorithms.language.teacher_forced import teacher_forced
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, SIZE, Talks, asked, talks, taught

BOTH = Talks(np.concatenate([FIRST.x, SECOND.x]), np.concatenate([FIRST.y, SECOND.y]))


@pytest.fixture(scope="module")
def learner():
    return taught(LanguageLearner(**{**SIZE, "epochs": 12}), (FIRST,))


def templated(learner, data):
    """(tokens, where the assistant speaks) of each conversation, by the tokenizer's own chat template."""
    tokenizer = learner.template.tokenizer
    end, assistant = tokenizer.convert_tokens_to_ids(["<|end|>", "<|assistant|>"])
    for conversation in conversations_of(data.x, data.y):
        text = tokenizer.apply_chat_template(conversation.messages(len(conversation.user)), tokenize=False)
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        speaks, learnt = False, []
        for token in tokens:
            learnt.append(speaks and token != assistant)
            speaks = token == assistant or (speaks and token != end)
        yield tokens, learnt


def test_it_is_what_each_token_gets_when_the_model_reads_up_to_it(learner):
    said = learner.teacher_forced(BOTH)
    for (right, tokens, likelihood), (text, learnt) in zip(said, templated(learner, BOTH), strict=True):
        hits, total, count = 0, 0.0, 0
        for position in range(1, len(text)):
            if learnt[position]:
                with torch.no_grad():
                    last = learner.network(torch.tensor([text[:position]])).logits[0, -1].double()
                hits += int(last.argmax()) == text[position]
                total += float(last.log_softmax(-1)[text[position]])
                count += 1
        assert (right, tokens) == (hits, count)
        assert likelihood / tokens == pytest.approx(total / count, abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_perplexity_is_that_of_the_loss_of_transformers_in_padded_batches(learner, size):
    texts = list(templated(learner, BOTH))
    total, hits, count = 0.0, 0, 0
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        length = max(len(tokens) for tokens, _ in part)
        padded = torch.tensor([tokens + [0] * (length - len(tokens)) for tokens, _ in part])
        seen = torch.tensor([[1] * len(tokens) + [0] * (length - len(tokens)) for tokens, _ in part])
        labels = torch.full_like(padded, -100)
        for row, (tokens, learnt) in enumerate(part):
            labels[row, : len(tokens)] = torch.tensor(
                [t if told else -100 for t, told in zip(tokens, learnt, strict=True)]
            )
        with torch.no_grad():
            out = learner.network(input_ids=padded, attention_mask=seen, labels=labels)
        here = labels[:, 1:] != -100
        total += float(out.loss) * int(here.sum())
        hits += int((out.logits[:, :-1].argmax(-1) == labels[:, 1:])[here].sum())
        count += int(here.sum())
    right, tokens, likelihood = np.array(learner.teacher_forced(BOTH)).sum(0)
    assert (right, tokens) == (hits, count) and 0 < right < tokens
    assert math.exp(-likelihood / tokens) == pytest.approx(math.exp(total / count), rel=1e-6)


def test_the_same_bits_whatever_is_asked_beside_it_and_whatever_the_batch(learner):
    together = learner.teacher_forced(BOTH)
    alone = [learner.teacher_forced(Talks(BOTH.x[i : i + 1], BOTH.y[i : i + 1]))[0] for i in range(len(BOTH))]
    assert alone == together
    for options in ({"batch_size": 1}, {"generation_batch": 2}):
        other = LanguageLearner(**{**SIZE, **options})
        other._adopt(learner.network, learner.template.tokenizer)
        assert other.teacher_forced(BOTH) == together


def test_to_be_asked_changes_nothing(learner):
    before = [weight.clone() for weight in learner.weights.values()]
    learner.teacher_forced(BOTH)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.values(), strict=True))
    assert all(weight.requires_grad for weight in learner.weights.values())


def test_what_lies_beyond_the_window_counts_as_wrong_and_as_a_guess(learner):
    one = Encoded(tokens=tuple(range(5, 15)), learnt=(False,) * 4 + (True,) * 6)
    with torch.no_grad():
        [inside] = teacher_forced(learner.network, [Encoded(one.tokens[:7], one.learnt[:7])])
        [whole] = teacher_forced(learner.network, [one], window=7)
    vocabulary = learner.network.config.vocab_size
    assert inside[1] == 3
    assert whole == [inside[0], 6.0, pytest.approx(inside[2] - 3 * math.log(vocabulary))]


def test_a_tiny_model_has_no_tokens_before_it_was_trained():
    assert LanguageLearner(**SIZE).teacher_forced(FIRST) == [[0, 0, 0]] * len(FIRST)


def test_each_group_judges_its_own_conversations():
    learner = taught(CIA(**{**SIZE, "epochs": 12}, grouping="tfidf", threshold=1.0, below="nearest"))
    found = learner.teacher_forced(BOTH)
    groups = learner.codebook.route([c.system or c.user[0] for c in conversations_of(BOTH.x)])
    assert len(set(groups)) == 2
    for i, group in enumerate(groups):
        alone = LanguageLearner(**SIZE)
        alone._adopt(learner.network, learner.template.tokenizer)
        learner.set_weights(learner.shelf[group])
        assert alone.teacher_forced(Talks(BOTH.x[i : i + 1], BOTH.y[i : i + 1])) == [found[i]]


def test_plain_texts_are_learnt_whole_and_have_no_reply():
    texts = talks(*[(None, [])] * 3)
    texts.y[:] = [["Bread costs two cents."], ["Milk costs six dimes."], ["The fair was at Old Fjord."]]
    before, after = (taught(LanguageLearner(**{**SIZE, "epochs": epochs}), (texts,)) for epochs in (1, 30))
    assert after.predict(asked(texts)) == [[], [], []]
    first, last = (np.array(learner.teacher_forced(texts)) for learner in (before, after))
    tokens = [len(after.template.tokenizer(text)["input_ids"]) + 1 for [text] in texts.y]  # and the end mark
    assert last[:, 1].tolist() == [count - 1 for count in tokens]  # nothing comes before the first one
    assert last[:, 0].sum() > first[:, 0].sum() and last[:, 2].sum() > first[:, 2].sum()
