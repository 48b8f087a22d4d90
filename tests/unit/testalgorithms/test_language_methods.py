"""What language methods promise beside their trajectories (tests/nightly/conformance)."""

import json
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from ianvs.authoring import Anchor
from ianvs.authoring.projection import flat_gradient
from ianvs.plugins.signature import constructor_parameters
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.agem.basemodel import AGEM
from ianvs.testalgorithms.language.averaging import DynamicAverage
from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.conversation import conversations_of
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory, memory_gradient
from ianvs.testalgorithms.language.ewc.basemodel import EWC
from ianvs.testalgorithms.language.gem.basemodel import GEM
from ianvs.testalgorithms.language.grouping import Codebook, instruction_of
from ianvs.testalgorithms.language.lwf.basemodel import LwF
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.language.olora.basemodel import OLoRA
from ianvs.testalgorithms.language.replay.basemodel import Replay
from ianvs.testalgorithms.language.sequential.basemodel import Sequential
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from tests.errors import errors_of, printed
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, SIZE, Talks, asked, talks, taught, weights_of

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "methods.json").read_text())
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
    assert errors_of(taught, LanguageLearner(**SIZE, max_length=5), (FIRST,)) == [("refused-arguments", "")]


@pytest.mark.parametrize("method", [Sequential, LwF, CIA])
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
    assert "1 of 6 in round 1" in cut.remark
    assert f"{counts[0][2]} of 6 in round 1" in cut.remark
    theirs = weights_of(alone)
    assert all(torch.equal(theirs[name], weight) for name, weight in weights_of(cut).items())
    resumed = learner_of(method, max_length=64)
    resumed.load(cut.save(tmp_path / "model"))
    assert resumed.remark == cut.remark


# Orthogonal low-rank adaptation.


# Elastic weight consolidation.


def test_ewc_has_the_penalty_and_the_gradient_of_the_worked_example():
    known = GOLDEN["ewc"]
    theta = torch.tensor(known["theta"], dtype=torch.float64, requires_grad=True)
    anchor = Anchor(torch.tensor(known["theta_old"]).double(), torch.tensor(known["fisher"]).double())
    penalty = 0.5 * anchor.distance(theta)
    penalty.backward()
    assert penalty.item() == pytest.approx(known["penalty_half_lambda1"])
    assert theta.grad.tolist() == pytest.approx(known["grad"])


def test_the_fisher_information_is_a_mean_over_as_many_conversations_as_it_is_given():
    few, all_of_them, as_many = (EWC(**SIZE, fisher_samples=n) for n in (2, None, 99))
    for learner in (few, all_of_them, as_many):
        taught(learner, (FIRST,))
    assert torch.equal(as_many.anchors[0].fisher, all_of_them.anchors[0].fisher)
    encoded = few.encode(conversations_of(FIRST.x, FIRST.y))
    pairs = [few.fisher([one, other]) for one, other in combinations(encoded, 2)]
    assert [torch.allclose(few.anchors[0].fisher, pair, rtol=1e-4) for pair in pairs].count(True) == 1
    assert errors_of(EWC, **SIZE, fisher_samples=0) == [("out-of-range", "")]


# Learning without forgetting.


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


# Replay, GEM, A-GEM.


def test_a_memory_is_a_uniform_sample_of_all_that_came():
    counts = np.zeros(20)
    for seed in range(300):
        memory = ConversationMemory(5)
        for start in range(0, 20, 4):
            part = talks(*[(None, [(str(i), "a")]) for i in range(start, start + 4)])
            memory.add(conversations_of(part.x, part.y), torch.Generator().manual_seed(1000 * start + seed))
        counts[[int(c.user[0]) for c in memory.conversations]] += 1
    assert abs(counts / 300 - 0.25).max() < 4.5 * (0.25 * 0.75 / 300) ** 0.5  # 4.5 standard errors


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


def test_a_reference_is_plain_tuning_of_the_same_adapter():
    assert {method.reference.split(":")[1] for method in (EWC, LwF, Replay, GEM, AGEM, CIA)} == {"Sequential"}
    assert MoELoRA.reference.endswith(":MoELoRA")


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


def test_betas_are_kept_for_the_reader(tmp_path):
    learner = taught(CIA(**SIZE), folder=tmp_path)
    assert [record["round"] for record in learner.betas] == [1, 2]
    assert learner.betas[0]["mean_beta"] is None, "the first round is trained without an average"
    assert 0 < learner.betas[1]["mean_beta"] < 1 and 0 < learner.betas[1]["fallback_share"] <= 1
    assert json.loads((tmp_path / "cia_betas.json").read_text()) == learner.betas


@pytest.mark.parametrize("beta", [0, 0.9, 1])
def test_of_a_constant_beta_its_power_is_left_of_where_the_average_began(beta):
    learner = taught(CIA(**{**SIZE, "epochs": 4}, beta=beta), (FIRST,))
    steps = recorded(learner, SECOND, 2)
    assert learner.betas[1]["left"] == pytest.approx(beta ** (len(steps) - 1))  # it begins after the first
    assert learner.betas[1]["fallback_share"] == 0


def test_the_default_of_cia_is_the_released_code_and_both_codes_begin_after_the_first_step():
    plain = CIA()
    assert plain.rule == CIA(preset="coin").rule != CIA(preset="paper").rule
    starts = [CIA(preset=preset).start for preset in ("paper", "coin", "continual_next")]
    assert starts == ["before_first_step", "after_first_step", "after_first_step"]


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
    assert f"{0.5 ** (steps - 1):.2g} of round 2" in learner.remark and "round 1" not in learner.remark
    assert "group" not in learner.remark
    assert CIA().remark == ""


def test_the_remark_warns_where_every_round_has_a_group_of_its_own():
    apart = taught(CIA(**SIZE, grouping="tfidf", threshold=1.0))
    warned = apart.remark
    printed(warned)
    again = taught(apart, (SECOND,), first=3)
    assert again.remark and again.remark != warned, "a group was met again"
    printed(again.remark)


# Instructions that are alike.


def test_similarities_of_instructions_are_those_of_the_worked_example():
    texts = GOLDEN["instructions_original"]
    for pair, expected in GOLDEN["cia_tfidf_pair_similarity"].items():
        left, right = (texts[name] for name in pair.split("|"))
        assert Codebook(0.9, [[right]]).match([left])[1] == pytest.approx(expected, abs=1e-12)


def test_the_instructions_of_coin_make_four_groups():
    texts = GOLDEN["instructions_original"]
    short = texts["TextVQA"]
    book = Codebook(0.9)
    order = [texts["ScienceQA"], short, texts["ImageNet"], short, short, texts["Grounding"], short, short]
    assert [book.assign([text]) for text in order] == [
        (0, False), (1, False), (2, False), (1, True), (1, True), (3, False), (1, True), (1, True)
    ]  # fmt: skip
    assert book.route(list(dict.fromkeys(order))) == [0, 1, 2, 3]


def test_strings_of_stop_words_are_alike_only_if_equal():
    book = Codebook(0.9, [["and"], ["the of"]])
    assert book.match(["and"]) == (0, 1.0)
    assert book.match(["the of", "and"]) == (0, 0.5)
    assert book.route(["the of", "and", "or"]) == [1, 0, 0]


def test_how_near_a_group_is_is_the_mean_of_all_pairs():
    words = ["sort", "list", "number", "name", "reply", "sea", "ship", "soup", "salt", "cook", "the", "of", "and"]
    draws = np.random.default_rng(3)
    strings = [" ".join(draws.choice(words, size=4)) for _ in range(60)]
    groups, new = [strings[:7], strings[7:20], strings[20:50]], list(dict.fromkeys(strings[45:]))
    vectorizer = TfidfVectorizer(stop_words="english").fit(list(dict.fromkeys(strings)))
    means = []
    for group in groups:
        pairs = cosine_similarity(vectorizer.transform(new), vectorizer.transform(group))
        pairs[np.array(new)[:, None] == np.array(group)] = 1.0
        means.append(pairs.mean())
    best, near = Codebook(0.9, groups).match(new)
    assert (best, near) == (int(np.argmax(means)), pytest.approx(max(means), abs=1e-12))


@pytest.mark.slow
def test_twenty_thousand_instructions_are_grouped_and_routed_in_seconds(monkeypatch):
    draws = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    strings = [" ".join(words[draws.integers(0, len(words), 12)]) for _ in range(20_000)]
    fits = []
    plain = TfidfVectorizer.fit
    monkeypatch.setattr(TfidfVectorizer, "fit", lambda self, *texts: fits.append(1) or plain(self, *texts))
    book, begun = Codebook(0.0), time.process_time()
    for start in (0, 10_000):
        book.assign(strings[start : start + 10_000])
    routed = book.route(strings)
    assert book.route(strings[:3]) == routed[:3], "no answer depends on what else is asked"
    assert len(fits) == 2, "once in a round that is compared with others, once for all that is asked after it"
    assert time.process_time() - begun < 20


def test_what_is_asked_does_not_depend_on_neighbours_it_is_asked_with():
    book = Codebook(0.9, [["sort the list"], ["name the sea", "name the ship"]])
    asked = ["list of ships", "sort names", "sea of salt", "name soup"]
    assert [book.route([one])[0] for one in asked] == book.route(asked)


def test_an_instruction_is_the_system_prompt_or_a_part_of_the_first_turn():
    both = talks(("Be brief.", [("a\nb", "c")]), (None, [("Some question\nAnswer in one word.\n", "c")]))
    asked = conversations_of(both.x)
    assert [instruction_of(c) for c in asked] == ["Be brief.", "Answer in one word."]
    assert [instruction_of(c, "first_line") for c in asked] == ["Be brief.", "Some question"]
    assert instruction_of(asked[1], "first_turn") == "Some question\nAnswer in one word."
    assert errors_of(CIA, **SIZE, instruction="last_lines") == [("invalid-choice", "")]
    learner = taught(CIA(**SIZE, grouping="tfidf", instruction="first_line"), (both,))
    assert learner.codebook.groups == [["Be brief.", "Some question"]]


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
