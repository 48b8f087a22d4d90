"""Each language method against its written formula, and what it keeps from round to round."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, log_softmax, softmax

pytest.importorskip("transformers")

from ianvs.authoring import Anchor, flat_parameters
from ianvs.errors import PluginError
from ianvs.plugins.signature import constructor_parameters
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.agem.basemodel import AGEM
from ianvs.testalgorithms.language.averaging import DynamicAverage, dynamic_ratios
from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.conversation import conversations_of
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory
from ianvs.testalgorithms.language.ewc.basemodel import EWC
from ianvs.testalgorithms.language.gem.basemodel import GEM
from ianvs.testalgorithms.language.gradients import flat_gradient, memory_gradient
from ianvs.testalgorithms.language.grouping import Codebook, instruction_of, tfidf_cosines
from ianvs.testalgorithms.language.lwf.basemodel import LwF
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.language.olora.basemodel import NEW, OLD, OLoRA
from ianvs.testalgorithms.language.replay.basemodel import Replay
from ianvs.testalgorithms.language.sequential.basemodel import Sequential
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from tests.testalgorithms.talks import FIRST, SECOND, SIZE, Talks, asked, talks, taught, weights_of

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "methods.json").read_text())
METHODS = [Sequential, Replay, EWC, LwF, GEM, AGEM, MoELoRA, CIA, OLoRA, MultiTask]
LORA = {"lora_r": 4, "experts": 2}
ADAPTERS = (MoELoRA, OLoRA)  # whose tuning is one


def learner_of(method, **options):
    return method(**SIZE, **(LORA if method in ADAPTERS else {}), **options)


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


# All of them.


def test_hyperparameters_of_the_base_class_are_taken_by_every_method():
    for method in METHODS:
        assert {"base_model", "tuning", "epochs", "learning_rate"} <= set(constructor_parameters(method).names)


def test_a_step_of_several_batches_is_the_step_of_one(monkeypatch):
    """Conversations of a different number of tokens: the mean is over tokens, not over batches."""
    whole = LanguageLearner(**{**SIZE, "epochs": 1, "batch_size": 4})
    parts = LanguageLearner(**{**SIZE, "epochs": 1, "batch_size": 1, "accumulation": 4})
    taught(whole, (FIRST,))
    taught(parts, (FIRST,))
    for left, right in zip(whole.weights.values(), parts.weights.values(), strict=True):
        torch.testing.assert_close(left, right, atol=2e-6, rtol=1e-4)


def test_checkpointing_does_not_change_what_is_learnt():
    plain, saving = (taught(LanguageLearner(**SIZE, checkpointing=on), (FIRST,)) for on in (False, True))
    for left, right in zip(plain.weights.values(), saving.weights.values(), strict=True):
        torch.testing.assert_close(left, right)


def test_learning_in_bfloat16_is_near_to_learning_in_32_bits():
    plain, half = (taught(LanguageLearner(**SIZE, bf16=on), (FIRST,)) for on in (False, True))
    batch = plain.batch(plain.encode(conversations_of(FIRST.x, FIRST.y)))
    with torch.no_grad():
        assert float(half.loss(batch)) == pytest.approx(float(plain.loss(batch)), rel=0.05)
    assert all(w.dtype == torch.float32 for w in half.weights.values())


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_method_learns_and_goes_on_from_its_files_on_a_gpu(method, tmp_path):
    learner = learner_of(method, bf16=True, checkpointing=True)
    for k, data in ((1, FIRST), (2, SECOND)):
        learner.train(data, None, round=k, seed=0, device="cuda", train_rounds=(FIRST, SECOND)[:k])
        resumed = learner_of(method, bf16=True, checkpointing=True)
        resumed.load(learner.save(tmp_path / str(k)))
        assert resumed.predict(asked(FIRST), device="cuda") == learner.predict(asked(FIRST), device="cuda")
        learner = resumed


def test_a_round_of_which_no_reply_fits_is_refused():
    with pytest.raises(PluginError, match=r"none of the 4 conversations of round 1 .* larger max_length"):
        taught(LanguageLearner(**SIZE, max_length=5), (FIRST,))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_a_prompt_that_is_too_long_is_skipped_and_a_reply_cut_which_is_remarked(method, tmp_path):
    long = talks((None, [("Who is mayor? " * 40, "Ada")]), (None, [("Who is mayor?", "Ada Berg " * 40)]))
    both = Talks(np.concatenate([FIRST.x, long.x]), np.concatenate([FIRST.y, long.y]))
    fits, cut = Talks(both.x[[0, 1, 2, 3, 5]], both.y[[0, 1, 2, 3, 5]]), learner_of(method, max_length=64)
    cut._tokenizer = tiny_tokenizer(["Who is mayor? It is Ada Berg."], 300)
    alone = learner_of(method, max_length=64)
    alone._tokenizer = cut._tokenizer
    for learner, data in ((cut, both), (alone, fits)):
        taught(learner, (data, SECOND))
    seen = [both, SECOND]
    if getattr(cut, "sees_past_rounds", False):
        seen[1] = Talks(np.concatenate([both.x, SECOND.x]), np.concatenate([both.y, SECOND.y]))
    counts = []
    for data in seen:
        whole = [cut.template.encode(one) for one in conversations_of(data.x, data.y)]
        skipped = sum(not any(one.learnt[1:64]) for one in whole)
        counts.append((len(whole), skipped, sum(len(one) > 64 for one in whole) - skipped))
    assert list(cut.lengths.counts.values()) == counts and counts[0][1] == 1 and counts[0][2] >= 1
    assert "whose prompts alone are as long: 1 of 6 in round 1" in cut.remark
    assert f"; cut: {counts[0][2]} of 6 in round 1" in cut.remark
    theirs = weights_of(alone)
    assert all(torch.equal(theirs[name], weight) for name, weight in weights_of(cut).items())
    resumed = learner_of(method, max_length=64)
    resumed.load(cut.save(tmp_path / "model"))
    assert resumed.remark == cut.remark


# Orthogonal low-rank adaptation.


def subspaces(learner, name):
    """[(A, B)] of an adapter in every layer that has one."""
    return [(layer.lora_A[name].weight.detach().clone(), layer.lora_B[name].weight.detach().clone())
            for layer in learner.layers()]  # fmt: skip


@pytest.mark.parametrize("orthogonality", ["absolute", "squared"])
def test_olora_has_the_penalty_that_is_written_over_all_rounds_before(orthogonality):
    learner = taught(learner_of(OLoRA, orthogonality=orthogonality, lambda_1=0.3, lambda_2=0.1))
    assert learner.rounds == 2
    (one, *_), (new, *_) = subspaces(learner, OLD), subspaces(learner, NEW)
    assert one[0].shape == (8, 32) and new[0].shape == (4, 32)  # two rounds of rank 4
    total = 0.0
    for (old_A, _), (new_A, _) in zip(subspaces(learner, OLD), subspaces(learner, NEW), strict=True):
        for i in range(2):
            for j in range(4):
                for k in range(4):
                    product = float(old_A[4 * i + j].double() @ new_A[k].double())
                    total += abs(product) if orthogonality == "absolute" else product**2
    assert learner.overlap().item() == pytest.approx(total, rel=1e-5)
    norms = sum(float(part.norm()) for pair in subspaces(learner, NEW) for part in pair)
    batch = learner.batch(learner.encode(conversations_of(FIRST.x, FIRST.y)))
    learner.network.eval()
    plain = LanguageLearner.loss(learner, batch).item()
    assert learner.loss(batch).item() == pytest.approx(plain + 0.3 * total + 0.1 * norms, rel=1e-5)


def test_olora_leaves_the_old_adapters_and_the_base_as_they_are():
    learner = taught(learner_of(OLoRA), (FIRST,))
    old = subspaces(learner, OLD)
    base = {name: w.clone() for name, w in learner.network.state_dict().items() if "lora_" not in name}
    taught(learner, (SECOND,), first=2)
    for (A, B), (A2, B2) in zip(old, subspaces(learner, OLD), strict=True):
        assert torch.equal(A2[:4], A) and torch.equal(B2[:, :4], B)
        assert bool(B2[:, 4:].any()), "the second round has learnt"
    assert all(torch.equal(learner.network.state_dict()[name], w) for name, w in base.items())


def test_olora_says_the_same_before_and_after_a_round_joins_the_old_ones():
    class Watched(OLoRA):
        def after_round(self, data):
            batch = self.batch(data.encoded)
            self.network.eval()
            before = self.logits(batch).detach()
            super().after_round(data)
            torch.testing.assert_close(self.logits(batch), before, rtol=1e-4, atol=1e-5)

    taught(learner_of(Watched, lora_alpha=24))


def test_olora_pushes_the_subspaces_apart():
    def overlap(weight):
        found = []

        class Watched(OLoRA):
            def after_round(self, data):
                found.append(float(self.overlap()) if self.rounds else None)
                super().after_round(data)

        taught(Watched(**{**SIZE, "epochs": 60}, lora_r=4, lambda_1=weight))
        return found[1]

    assert overlap(0.5) < 0.7 * overlap(0.0)


def test_olora_tunes_adapters_only():
    with pytest.raises(PluginError, match="tuning is 'full'; O-LoRA tunes adapters: lora"):
        OLoRA(tuning="full")


# Elastic weight consolidation.


def test_ewc_has_the_penalty_and_the_gradient_of_the_worked_example():
    known = GOLDEN["ewc"]
    theta = torch.tensor(known["theta"], dtype=torch.float64, requires_grad=True)
    anchor = Anchor(torch.tensor(known["theta_old"]).double(), torch.tensor(known["fisher"]).double())
    penalty = 0.5 * anchor.distance(theta)
    penalty.backward()
    assert penalty.item() == pytest.approx(known["penalty_half_lambda1"])
    assert theta.grad.tolist() == pytest.approx(known["grad"])


def test_the_gradient_of_ewc_is_that_of_the_written_formula_and_not_zero():
    learner = taught(EWC(**SIZE, strength=300.0))
    network = learner.network.eval()
    batch = learner.batch(learner.encode(conversations_of(SECOND.x, SECOND.y)))
    weights = list(learner.weights.values())
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.01 * torch.ones_like(weight))
    plain = cross_entropy(
        batch.of_learnt(network(input_ids=batch.tokens, attention_mask=batch.seen).logits), batch.targets
    )
    own = torch.cat([g.reshape(-1) for g in torch.autograd.grad(plain, weights)])
    theta = flat_parameters(network).detach()
    written = own + sum(300.0 * anchor.fisher * (theta - anchor.theta) for anchor in learner.anchors)
    found = torch.cat([g.reshape(-1) for g in torch.autograd.grad(learner.loss(batch), weights)])
    torch.testing.assert_close(found, written, atol=1e-5, rtol=1e-4)
    assert (found - own).norm() > 1e-3
    assert len(learner.anchors) == 2


def test_the_fisher_information_is_the_mean_of_squared_gradients_of_single_conversations():
    learner = taught(EWC(**SIZE), (FIRST,))
    encoded = learner.encode(conversations_of(SECOND.x, SECOND.y))
    expected = 0
    for conversation in encoded:
        tokens = torch.tensor([conversation.tokens])
        chances = log_softmax(learner.network(input_ids=tokens).logits[0].float(), dim=-1)
        spoken = [i for i, learnt in enumerate(conversation.learnt) if learnt]
        likelihood = sum(chances[i - 1, conversation.tokens[i]] for i in spoken)
        gradients = torch.autograd.grad(likelihood, list(learner.weights.values()))
        expected += torch.cat([g.reshape(-1) for g in gradients]) ** 2 / len(encoded)
    torch.testing.assert_close(learner.fisher(encoded), expected)


def test_online_ewc_keeps_one_anchor():
    assert len(taught(EWC(**SIZE, gamma=0.5)).anchors) == 1


def test_strong_ewc_moves_less():
    def moved(strength):
        learner = taught(EWC(**{**SIZE, "epochs": 8}, strength=strength), (FIRST,))
        start, fisher = learner.anchors[0].theta, learner.anchors[0].fisher
        taught(learner, (SECOND,), first=2)
        return float((fisher * (flat_parameters(learner.network).detach() - start) ** 2).sum())

    assert moved(1e4) < 0.5 * moved(0.0)


# Learning without forgetting.


def test_the_gradient_of_lwf_is_that_of_the_written_formula_and_not_zero():
    learner = taught(LwF(**SIZE, alpha=0.7, temperature=3.0), (FIRST,))
    old = copy.deepcopy(learner.network).eval()
    learner.before_round(None)
    with torch.no_grad():
        for weight in learner.weights.values():
            weight.add_(0.02 * torch.ones_like(weight))
    batch = learner.batch(learner.encode(conversations_of(SECOND.x, SECOND.y)))
    given = {"input_ids": batch.tokens, "attention_mask": batch.seen}
    z, z_old = (batch.of_learnt(network(**given).logits) for network in (learner.network, old))
    p_old = softmax(z_old.detach() / 3, dim=1)
    distilled = 9 * (p_old * (p_old.log() - log_softmax(z / 3, dim=1))).sum(1).mean()
    own = cross_entropy(z, batch.targets)
    weights = list(learner.weights.values())

    def flat(loss):
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, weights, retain_graph=True)])

    torch.testing.assert_close(flat(learner.loss(batch)), flat(own + 0.7 * distilled), atol=1e-6, rtol=1e-4)
    assert flat(distilled).norm() > 1e-4


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_the_teacher_of_lwf_is_the_model_from_before_the_round_at_the_very_same_tokens(tuning):
    learner = taught(LwF(**SIZE, tuning=tuning), (FIRST,))
    learner.before_round(None)
    batch = learner.batch(learner.encode(conversations_of(SECOND.x, SECOND.y)))
    before = learner.network.eval()(input_ids=batch.tokens, attention_mask=batch.seen).logits.detach()
    learner.network.train()
    with torch.no_grad():
        for weight in learner.weights.values():
            weight.mul_(1.5)
    assert torch.equal(learner.logits(batch, learner.teacher), batch.of_learnt(before))
    assert learner.network.training


def test_the_first_round_of_lwf_is_plain():
    assert same(weights_of(taught(LwF(**SIZE), (FIRST,))), weights_of(taught(Sequential(**SIZE), (FIRST,))))


# Replay, GEM, A-GEM.


def test_replay_joins_each_batch_with_old_conversations_only():
    learner = taught(Replay(**SIZE, capacity=3), (FIRST,))
    assert len(learner.memory) == 3 and learner.memory.nbytes > 0
    stored = set(learner.memory.conversations)
    assert stored <= set(conversations_of(FIRST.x, FIRST.y))
    seen = []
    batch_of = learner.batch
    learner.batch = lambda conversations: seen.append(list(conversations)) or batch_of(conversations)
    taught(learner, (SECOND,), first=2)
    new = set(learner.encode(conversations_of(SECOND.x, SECOND.y)))
    old = set(learner.encode(list(stored)))
    assert all(sum(c in new for c in batch) == sum(c in old for c in batch) for batch in seen)


def test_a_memory_is_a_uniform_sample_of_all_that_came():
    counts = np.zeros(20)
    for seed in range(300):
        memory = ConversationMemory(5)
        for start in range(0, 20, 4):
            part = talks(*[(None, [(str(i), "a")]) for i in range(start, start + 4)])
            memory.add(conversations_of(part.x, part.y), torch.Generator().manual_seed(1000 * start + seed))
        counts[[int(c.user[0]) for c in memory.conversations]] += 1
    assert abs(counts / 300 - 0.25).max() < 4.5 * (0.25 * 0.75 / 300) ** 0.5  # 4.5 standard errors


@pytest.mark.parametrize(("method", "options"), [(AGEM, {"memory_batch": 4}), (GEM, {"per_round": 4, "margin": 0.0})])
def test_no_step_points_against_what_is_remembered(method, options):
    learner = taught(method(**{**SIZE, "epochs": 12, "learning_rate": 5e-3}, **options), (FIRST,))
    remembered = learner.encode(conversations_of(FIRST.x, FIRST.y))
    seen = []

    def checked():
        weights = list(learner.weights.values())
        old = torch.autograd.grad(learner.loss(learner.batch(remembered)), weights)
        own = sum(float((w.grad * m).sum()) for w, m in zip(weights, old, strict=True))
        method.before_step(learner)
        product = sum(float((w.grad * m).sum()) for w, m in zip(weights, old, strict=True))
        seen.append((own, product))

    learner.before_step = checked
    taught(learner, (SECOND,), first=2)
    assert any(own < -1e-3 for own, _ in seen), "there was no conflict to resolve"
    assert all(product > -1e-3 for _, product in seen)
    assert all(product == pytest.approx(own) for own, product in seen if own > 1e-3), "a constraint, not a mixture"


@pytest.mark.parametrize("max_length", [1024, 4])
def test_the_gradient_of_a_memory_is_that_of_one_batch_however_many_it_takes(max_length):
    learner = taught(AGEM(**SIZE), (FIRST,))
    encoded = learner.encode(conversations_of(FIRST.x, FIRST.y))
    loss = learner.loss(learner.batch(encoded))
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(learner.weights.values()))])
    learner.max_length = max_length  # 1024: all fit into a batch; 4: each is one by itself
    torch.testing.assert_close(memory_gradient(learner, encoded), expected, rtol=1e-4, atol=1e-6)


def test_weights_that_had_no_part_in_a_loss_have_the_gradient_0():
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
    assert flat_gradient((2 * used).sum(), [unused, used]).tolist() == [0, 0, 0, 2, 2]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (EWC, {"gamma": 3}),
        (EWC, {"strength": -1}),
        (LwF, {"temperature": 0}),
        (Replay, {"replay_ratio": -1}),
        (GEM, {"margin": -0.5}),
        (GEM, {"per_round": 0}),
        (AGEM, {"memory_batch": 0}),
        (CIA, {"threshold": 1.5}),
    ],
)
def test_a_number_that_can_not_be_is_told_by_its_name(method, wrong):
    with pytest.raises(PluginError, match=f"{next(iter(wrong))} is"):
        method(**wrong)


def test_a_reference_is_plain_tuning_of_the_same_adapter():
    assert {method.reference.split(":")[1] for method in (EWC, LwF, Replay, GEM, AGEM, CIA)} == {"Sequential"}
    assert MoELoRA.reference.endswith(":MoELoRA")


def test_gem_keeps_as_many_of_each_round():
    learner = taught(GEM(**SIZE, per_round=2))
    assert [len(part) for part in learner.kept] == [2, 2] and len(learner.memory) == 4


def test_multi_task_starts_anew_and_sees_all_rounds():
    both = talks(
        *[
            (x["system"], list(zip(x["user"], y, strict=True)))
            for d in (FIRST, SECOND)
            for x, y in zip(d.x, d.y, strict=True)
        ]
    )
    once = MultiTask(**SIZE)
    once.train(FIRST, None, round=1, seed=0, train_rounds=(FIRST,))
    once.train(SECOND, None, round=2, seed=0, train_rounds=(FIRST, SECOND))
    fresh = Sequential(**SIZE)
    fresh.train(FIRST, None, round=1, seed=0)  # gives the tokens
    fresh.reset()
    fresh.train(both, None, round=2, seed=0)
    assert same(weights_of(once), weights_of(fresh))


# CIA.


def worked(name):
    given = {
        key: torch.tensor(value, dtype=torch.float64) for key, value in GOLDEN["cia_dynamic_ema"]["inputs"].items()
    }
    return given, GOLDEN["cia_dynamic_ema"][name]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("paper_beta_on_old_k1_fallback0.99", {"formula_side": "old", "scale": 1.0, "fallback": 0.99}),
        ("coin_alpha_on_new_k2_fallback0.01", {"formula_side": "new", "scale": 2.0, "fallback": 0.01}),
        ("continual_next_alpha_on_new_k0.01_fallback0.001", {"formula_side": "new", "scale": 0.01, "fallback": 0.001}),
    ],
)
def test_the_average_of_cia_is_that_of_the_worked_example(name, rule):
    given, expected = worked(name)
    average = DynamicAverage(**rule, average={"w": given["star_prev"].clone()}, previous={"w": given["grad_prev"]})
    average.step({"w": given["theta"]}, {"w": given["grad"]})
    torch.testing.assert_close(average.average["w"], torch.tensor(expected["new_star"], dtype=torch.float64))
    assert average.record()["fallback_share"] == 0.0
    beta = expected["used"] if rule["formula_side"] == "old" else 1 - expected["used"]
    assert average.record()["mean_beta"] == pytest.approx(beta)


@pytest.mark.parametrize("preset", ["paper", "coin", "continual_next"])
def test_presets_are_those_worked_examples(preset):
    rule = CIA(preset=preset).rule
    name = {"paper": "paper_beta", "coin": "coin_alpha", "continual_next": "continual_next_alpha"}[preset]
    key = next(key for key in GOLDEN["cia_dynamic_ema"] if key.startswith(name))
    assert f"on_{rule['formula_side']}_k{rule['scale']:g}_fallback{rule['fallback']:g}" in key


def test_the_first_step_and_a_ratio_beyond_1_use_the_fallback():
    average = DynamicAverage(average={"w": torch.zeros(2)})
    ones = {"w": torch.ones(2)}
    assert average.step(ones, ones) == {"w": 0.99}
    assert average.step(ones, ones) == {"w": 0.99}  # the gradient stayed the same: the ratio is infinite
    assert average.record() == {"mean_beta": pytest.approx(0.99), "fallback_share": 1.0, "left": pytest.approx(0.99**2)}
    torch.testing.assert_close(average.average["w"], torch.full((2,), 1 - 0.99**2))


def test_one_ratio_for_all_tensors_sums_the_norms_over_them():
    draw = torch.Generator().manual_seed(0)
    theta, star, g, before = ({n: torch.rand(3, generator=draw) for n in "ab"} for _ in range(4))
    joined = [{"w": torch.cat([part["a"], part["b"]])} for part in (theta, star, g, before)]
    expected = dynamic_ratios(*joined)["w"]
    assert dynamic_ratios(theta, star, g, before, together=True) == pytest.approx({"a": expected, "b": expected})
    assert dynamic_ratios(theta, star, g, before)["a"] != pytest.approx(expected)


def recorded(learner, data, k):
    """(weights after each step, gradients of each step) of a round, noted beside the method."""
    steps, after = [], learner.after_step

    def note():
        weights = learner.weights.items()
        steps.append(({n: w.detach().clone() for n, w in weights}, {n: w.grad.clone() for n, w in weights}))
        after()

    learner.after_step = note
    taught(learner, (data,), first=k)
    return steps


@pytest.mark.parametrize("init", ["before_first_step", "after_first_step"])
def test_after_a_round_the_weights_and_the_checkpoint_are_the_average(init, tmp_path):
    learner = taught(CIA(**{**SIZE, "epochs": 4}, preset="paper", init=init), (FIRST,))
    start = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    steps = recorded(learner, SECOND, 2)
    star = dict(start) if init == "before_first_step" else dict(steps[0][0])
    previous = None
    for theta, g in steps:  # the paper's algorithm, written out
        for name in star:
            beta = 0.99
            if previous is not None:
                below = (theta[name] - star[name]).abs().sum() * (g[name] - previous[name]).abs().sum()
                ratio = float((1 + g[name].abs().sum()) / below) if below > 0 else 2.0
                beta = ratio if 0 < ratio < 1 else 0.99
            star[name] = beta * star[name] + (1 - beta) * theta[name]
        previous = g
    for name, weight in learner.weights.items():
        torch.testing.assert_close(weight.detach(), star[name], atol=1e-6, rtol=1e-4)
    assert not same(star, steps[-1][0])
    from transformers import AutoModelForCausalLM

    stored = AutoModelForCausalLM.from_pretrained(learner.save(tmp_path / "model") / "model")
    for name, weight in stored.named_parameters():
        torch.testing.assert_close(weight.detach(), star[name], atol=1e-6, rtol=1e-4)


def test_betas_are_kept_for_the_reader(tmp_path):
    learner = taught(CIA(**SIZE), folder=tmp_path)
    assert [record["round"] for record in learner.betas] == [1, 2]
    assert learner.betas[0]["mean_beta"] is None, "the first round is trained without an average"
    assert 0 < learner.betas[1]["mean_beta"] < 1 and 0 < learner.betas[1]["fallback_share"] <= 1
    assert json.loads((tmp_path / "cia_betas.json").read_text()) == learner.betas


def test_slips_in_the_options_of_cia_are_explained():
    for options, message in (
        ({"preset": "papr"}, "Did you mean 'paper'"),
        ({"formula_side": "left"}, "'old' or 'new'"),
        ({"fallback": 1.5}, "between 0 and 1"),
        ({"init": "first"}, "before_first_step"),
        ({"beta": 1.5}, "beta is 1.5; it is a number from 0 to 1"),
        ({"beta": True}, "beta is True"),
        ({"beta": 0.9, "scale": 2.0, "fallback": 0.01}, "beta is 0.9, and scale and fallback"),
    ):
        with pytest.raises(PluginError, match=message):
            CIA(**options)


@pytest.mark.parametrize("beta", [0, 0.9, 1])
def test_a_constant_beta_is_a_plain_moving_average(beta):
    learner = taught(CIA(**{**SIZE, "epochs": 4}, beta=beta), (FIRST,))
    star = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    steps = recorded(learner, SECOND, 2)
    for theta, _ in steps:
        star = {name: beta * star[name] + (1 - beta) * theta[name] for name in star}
    for name, weight in learner.weights.items():
        torch.testing.assert_close(weight.detach(), star[name], atol=1e-6, rtol=1e-5)
    assert learner.betas[1]["left"] == pytest.approx(beta ** len(steps))
    assert learner.betas[1]["fallback_share"] == 0


def test_the_default_of_cia_is_the_released_code_from_before_the_first_step():
    plain = CIA()
    assert plain.rule == CIA(preset="coin").rule != CIA(preset="paper").rule
    assert plain.start == "before_first_step"


@pytest.mark.parametrize("init", ["before_first_step", "after_first_step"])
def test_the_share_that_is_left_is_what_the_start_weighs_in_the_average(init):
    """Moved by one, an average moves by the share that is left of its start: measured so, by a second average."""
    draw = torch.Generator().manual_seed(0)
    start = {"big": torch.rand(9, generator=draw), "small": torch.rand(3, generator=draw)}
    steps = [({n: 10 * torch.rand(len(w), generator=draw) for n, w in start.items()},) * 2 for _ in range(4)]
    average = DynamicAverage("new", 2.0, 0.01, average=dict(start) if init == "before_first_step" else None)
    betas = [average.step(*step) for step in steps]
    moved = {n: torch.ones(len(w)) for n, w in start.items()}  # of the start, while all else stays where it is
    for used in betas if init == "before_first_step" else betas[1:]:
        moved = {n: used[n] * w for n, w in moved.items()}
    expected = torch.cat(list(moved.values())).mean()  # over all numbers: a large tensor counts more
    assert average.record()["left"] == pytest.approx(float(expected))
    assert len({tuple(used.values()) for used in betas}) > 1 and betas[-1]["big"] != betas[-1]["small"]


def test_the_remark_says_what_is_left_of_the_weights_of_before():
    learner = taught(CIA(**SIZE, beta=0.5))
    steps = SIZE["epochs"]  # of one batch each
    assert f"{0.5**steps:.2g} of round 2" in learner.remark and "round 1" not in learner.remark
    assert "group" not in learner.remark
    assert CIA().remark == ""


def test_the_remark_warns_where_every_round_has_a_group_of_its_own():
    apart = taught(CIA(**SIZE, grouping="tfidf", threshold=1.0))
    assert "every round founded a group of its own" in apart.remark and "gives the task away" in apart.remark
    again = taught(apart, (SECOND,), first=3)
    assert "every round" not in again.remark, "a group was met again"


# Instructions that are alike.


def test_similarities_of_instructions_are_those_of_the_worked_example():
    texts = GOLDEN["instructions_original"]
    for pair, expected in GOLDEN["cia_tfidf_pair_similarity"].items():
        left, right = (texts[name] for name in pair.split("|"))
        assert tfidf_cosines([left], [right])[0, 0] == pytest.approx(expected, abs=1e-12)


def test_the_instructions_of_coin_make_four_groups():
    texts = GOLDEN["instructions_original"]
    short = texts["TextVQA"]
    book = Codebook(0.9)
    order = [texts["ScienceQA"], short, texts["ImageNet"], short, short, texts["Grounding"], short, short]
    assert [book.assign([text]) for text in order] == [
        (0, False), (1, False), (2, False), (1, True), (1, True), (3, False), (1, True), (1, True)
    ]  # fmt: skip
    assert [book.route(text) for text in dict.fromkeys(order)] == [0, 1, 2, 3]


def test_strings_of_stop_words_are_alike_only_if_equal():
    assert tfidf_cosines(["the of", "and"], ["and"]).tolist() == [[0.0], [1.0]]


def test_an_instruction_is_the_system_prompt_or_the_last_line():
    both = talks(("Be brief.", [("a\nb", "c")]), (None, [("Some question\nAnswer in one word.\n", "c")]))
    assert [instruction_of(c) for c in conversations_of(both.x)] == ["Be brief.", "Answer in one word."]


def test_groups_have_weights_of_their_own_and_test_conversations_find_them(tmp_path):
    cooking = talks(
        ("Answer as a cook.", [("What now?", "Stir soup")]), ("Answer as a cook.", [("And then?", "Add salt")])
    )
    sailing = talks(
        ("Reply like sailors.", [("What now?", "Set sail")]), ("Reply like sailors.", [("And then?", "Aye")])
    )
    size = {**SIZE, "width": 64, "epochs": 40, "learning_rate": 5e-3}
    learner = taught(CIA(**size, grouping="tfidf", threshold=0.5), (cooking, sailing))
    assert learner.codebook.groups == [["Answer as a cook."], ["Reply like sailors."]]
    assert learner.predict(asked(cooking)) == list(cooking.y), "the second round did not touch the first's weights"
    assert learner.predict(asked(sailing)) == list(sailing.y)
    again = CIA(**size, grouping="tfidf", threshold=0.5)
    again.load(learner.save(tmp_path / "model"))
    assert again.predict(asked(cooking)) == list(cooking.y)
    taught(again, (cooking,), first=3)
    assert again.group == 0 and again.betas[-1]["mean_beta"] is not None, "a group that is met again is averaged"
