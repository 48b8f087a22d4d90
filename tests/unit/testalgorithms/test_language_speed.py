"""Fewer logits, no padding, and what is told within a round: none of it changes what is learnt."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

pytest.importorskip("transformers")

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.batches import collate
from ianvs.testalgorithms.language.conversation import conversations_of
from ianvs.testalgorithms.language.ewc.basemodel import EWC
from ianvs.testalgorithms.language.tuning_loop import warm_cosine
from tests.errors import errors_of
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, SIZE, Talks, taught, weights_of

ADAPTED = {"tuning": "lora", "lora_r": 4}


class Reports(list):
    """Keeps what is told of a round."""

    def __call__(self, share, **numbers):
        self.append((share, numbers))

    def of(self, name):
        return [(share, numbers[name]) for share, numbers in self if name in numbers]


@pytest.fixture(scope="module")
def learner():
    return taught(LanguageLearner(**SIZE), (FIRST,))


def encoded(learner, data=FIRST):
    return learner.encode(conversations_of(data.x, data.y))


# Logits.


@pytest.mark.parametrize("options", [{}, ADAPTED], ids=["full", "lora"])
def test_logits_are_asked_for_where_something_is_learnt_alone(options):
    learner = taught(LanguageLearner(**SIZE, **options), (FIRST,))
    batch = learner.batch(encoded(learner))
    seen = []
    hook = learner.network.register_forward_hook(lambda module, given, answer: seen.append(answer.logits))
    with torch.no_grad():
        few = learner.logits(batch)
        whole = learner.network(input_ids=batch.tokens, attention_mask=batch.seen, use_cache=False).logits
    hook.remove()
    assert seen[0].shape[1] == len(batch.columns) < batch.tokens.shape[1] == seen[1].shape[1]
    wanted = torch.stack([whole[row, at - 1] for row, at in batch.learnt.nonzero().tolist()])
    torch.testing.assert_close(few, wanted, rtol=1e-5, atol=1e-6)


def test_likelihoods_of_replies_are_those_of_plain_transformers(learner):
    both = conversations_of(FIRST.x, FIRST.y)
    found = learner.teacher_forced(FIRST)
    with torch.no_grad():
        for one, (right, tokens, likelihood) in zip(learner.encode(both), found, strict=True):
            said = torch.tensor([one.tokens])
            labels = torch.tensor([[t if learnt else -100 for t, learnt in zip(one.tokens, one.learnt, strict=True)]])
            plain = learner.network(input_ids=said, labels=labels)  # its own loss: a mean over labels
            count = int((labels[:, 1:] != -100).sum())
            each = plain.logits[0, :-1].float().log_softmax(-1).gather(1, said[0, 1:, None])[:, 0].double()
            kept = labels[0, 1:] != -100
            assert tokens == count
            assert likelihood == pytest.approx(float(each[kept].sum()), abs=1e-6 * count)
            assert likelihood == pytest.approx(-count * float(plain.loss), rel=1e-5)
            assert right == int((plain.logits[0, :-1].argmax(-1)[kept] == said[0, 1:][kept]).sum())


# Conversations in one row.


@pytest.mark.parametrize("attention", [None, "sdpa", "eager"])
def test_conversations_in_one_row_do_not_see_each_other(attention):
    learner = taught(LanguageLearner(**SIZE, attention=attention), (FIRST,))
    assert attention is None or learner.network.config._attn_implementation == attention
    some, pad = encoded(learner), learner.template.pad
    padded = collate(some, pad, learner.device)
    packed = collate(some, pad, learner.device, packed=True)
    assert packed.tokens.shape == (1, sum(map(len, some))), "no padding"
    assert packed.targets.tolist() == padded.targets.tolist()
    torch.testing.assert_close(learner.logits(packed), learner.logits(padded), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [LanguageLearner, EWC])
def test_packing_takes_the_same_steps(method):
    plain, packed = (taught(method(**SIZE, packing=packing)) for packing in (False, True))
    before, left, right = weights_of(taught(method(**SIZE), (FIRST,))), weights_of(plain), weights_of(packed)
    apart = max(float((left[name] - right[name]).abs().max()) for name in left)
    moved = max(float((left[name] - before[name]).abs().max()) for name in left)
    assert apart < 0.05 * moved


def test_a_network_that_mixes_packed_conversations_is_refused(learner, monkeypatch):
    packing = taught(LanguageLearner(**SIZE, packing=True), (FIRST,))
    forward = packing.network.forward

    def mixing(input_ids, position_ids=None, **given):  # sees everything before, as if it were one conversation
        return forward(input_ids=input_ids, **given)

    monkeypatch.setattr(packing.network, "forward", mixing)
    assert errors_of(taught, packing, (SECOND,), first=2) == [("refused-arguments", "")]


def test_an_attention_that_is_not_there_is_refused():
    assert errors_of(LanguageLearner, **SIZE, attention="spda") == [("invalid-choice", "")]
    if not torch.cuda.is_available():
        assert errors_of(lambda: LanguageLearner(**SIZE, attention="flash_attention_2").check_exam()) == [
            ("conflicting-keys", "")
        ]


# What is told.


def test_a_round_tells_its_mean_loss_and_pace_a_hundred_times_at_most():
    step_losses, told = [], Reports()

    class Watched(LanguageLearner):
        def loss(self, batch):
            loss = super().loss(batch)
            step_losses.append(float(loss.detach()))
            return loss

    learner = Watched(**{**SIZE, "epochs": 150, "batch_size": 2, "warmup": 0.1})
    learner.train(FIRST, None, progress=told)
    assert len(told) == 100, "300 steps"
    shares = [share for share, _ in told.of("loss")]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert [rate for _, rate in told.of("learning_rate")] == [
        pytest.approx(1e-3 * warm_cosine(300, 30, step - 1)) for step in range(3, 301, 3)
    ]
    losses = [loss for _, loss in told.of("loss")]
    assert losses[0] > 5 > 2 > losses[-1] > 0
    ends = [round(share * 300) for share in shares]
    means = [sum(step_losses[a:b]) / (b - a) for a, b in zip([0, *ends], ends, strict=False)]
    assert losses == pytest.approx(means, rel=1e-5)
    assert all(pace > 0 for _, pace in told.of("tokens_per_second"))


def test_held_out_conversations_are_told_of_and_not_learnt():
    told, plain = Reports(), LanguageLearner(**SIZE)
    plain.train(FIRST, None)
    watched = LanguageLearner(**SIZE)
    watched.train(FIRST, SECOND, progress=told)
    assert all(torch.equal(weights_of(plain)[name], tensor) for name, tensor in weights_of(watched).items())
    found = told.of("held_out_loss")
    assert [share for share, _ in found] == [0.5, 1.0]
    assert found[-1][1] == pytest.approx(
        -sum(one[2] for one in watched.teacher_forced(SECOND)) / sum(one[1] for one in watched.teacher_forced(SECOND)),
        rel=1e-5,
    )


def test_dropout_draws_the_same_with_held_out_conversations():
    given = {**SIZE, **ADAPTED, "lora_dropout": 0.3}
    plain, watched = LanguageLearner(**given), LanguageLearner(**given)
    plain.train(FIRST, None, progress=Reports())
    watched.train(FIRST, Talks(SECOND.x, SECOND.y), progress=Reports())
    assert all(torch.equal(weights_of(plain)[name], tensor) for name, tensor in weights_of(watched).items())
    assert math.isfinite(watched.held_out_loss())


def test_the_whole_loss_of_packed_conversations_is_one_mean(learner):
    batch = collate(encoded(learner), learner.template.pad, learner.device, packed=True)
    alone = [learner.batch([one]) for one in encoded(learner)]
    with torch.no_grad():
        total = sum(cross_entropy(learner.logits(one), one.targets, reduction="sum") for one in alone)
        assert float(learner.loss(batch)) == pytest.approx(
            float(total) / sum(len(one.targets) for one in alone), rel=1e-5
        )
