"""CIA as Qiao et al. 2025 state it (arXiv 2410.10868), and as both public codes have it.

theta*_t = beta_t theta*_{t-1} + (1 - beta_t) theta_t after every step, one beta for each tensor,
beta_t = (1 + |g_t|) / (|theta_t - theta*_{t-1}| |g_t - g_{t-1}|), L1 norms, and .99 where that is not in (0, 1).

The codes put twice the ratio (CoIN efa9cb4, CoIN/peft/tuners/lora.py:645) or a hundredth of it (Continual-NExT
3658f2d, peft/tuners/lora/model.py:964) on the new weights, else .01 and .001 (lora.py:649, model.py:968). Both copy
theta* at the first call (:639, :957), which comes after the optimiser's step (CoIN,
llava/train/transformers/trainer.py:1891-1893; Continual-NExT, swift/trainers/trainers.py:1420-1421): it begins as the
weights after the first step, the paper's as those before it. There is no earlier gradient at the first step, so the
fallback is used (:651, :971). g is the clipped gradient that the step used. theta <- theta* after the last step
(trainer.py:1936, trainers.py:1487). The presets of that name follow the codes, "paper" the paper.

Instructions, as the paper says: a round belongs to the group whose strings are nearest by the mean cosine of TF-IDF
vectors, from a threshold on. The script (CoIN, instruct/LoRASelect.py) fits the vectors on each pair of strings, ours
on all strings that are known. A group that is met for the first time is trained without an average.
"""

import math
import re

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ianvs.testalgorithms.language.averaging import DynamicAverage
from ianvs.testalgorithms.language.cia.basemodel import CIA
from ianvs.testalgorithms.language.grouping import Codebook
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.language import ASKED, ROUNDS, Exam, language, surprise

PAPER = {"side": "old", "scale": 1.0, "fallback": 0.99, "init": "before"}
COIN = {"side": "new", "scale": 2.0, "fallback": 0.01, "init": "after"}
NEXT = {"side": "new", "scale": 0.01, "fallback": 0.001, "init": "after"}
QUICK = Exam(learning_rate=1e-2)  # fast enough for groups that reply otherwise


def naive(exam, *, side, scale, fallback, init, constant=None, whole=False, threshold=None, fresh=True):
    net = exam.network()
    weights = list(net.parameters())
    first, shelf, groups, learnt = [w.detach().clone() for w in weights], {}, [], set()
    for k in exam.rounds:
        group = 0
        if threshold is not None:
            group, known = found(groups, [instruction(x) for x in ROUNDS[k - 1].x], threshold)
            put(weights, shelf[group] if known else first if fresh else weights)
        star = [w.detach().clone() for w in weights] if init == "before" else None
        before = None

        def average():
            nonlocal star, before
            g = [w.grad.clone() for w in weights]
            if star is None:
                star = [w.detach().clone() for w in weights]
            sizes = [(0.0, 0.0, 0.0)] * len(g)
            if before is not None:
                sizes = [(l1(w - s), l1(a), l1(a - b)) for w, s, a, b in zip(weights, star, g, before, strict=True)]
            if whole:
                sizes = [tuple(map(sum, zip(*sizes, strict=True)))] * len(g)
            for i, (moved, gradient, changed) in enumerate(sizes):
                ratio = scale * (1 + gradient) / (moved * changed) if moved * changed > 0 else math.inf
                share = ratio if 0 < ratio < 1 else fallback
                beta = share if side == "old" else 1 - share
                beta = beta if constant is None else constant
                star[i] = beta * star[i] + (1 - beta) * weights[i].detach()
            before = g

        again = group in learnt
        exam.descend(
            k, exam.talks(k), weights, lambda some: surprise(net, some), after=average if again else lambda: None
        )
        put(weights, star if again else weights)
        learnt.add(group)
        shelf[group] = [w.detach().clone() for w in weights]
        answers = None
        if threshold is not None:
            here, said = shelf[group], []
            for x in ASKED.x:
                put(weights, shelf[nearest(groups, [instruction(x)])[0]])
                said.append(exam.replies(net, x))
            put(weights, here)
            answers = np.array(said)
        yield exam.after(net, answers=answers)


@torch.no_grad()
def put(weights, values):
    for weight, value in zip(weights, values, strict=True):
        weight.copy_(value)


def l1(tensor):
    return tensor.detach().abs().sum().item()


def instruction(x):
    return x["system"] or x["user"][0].splitlines()[-1]


def found(groups, texts, threshold):
    """(number of the group of a round, whether it was there before)."""
    texts = list(dict.fromkeys(texts))
    best, cosine = nearest(groups, texts) if groups else (None, 0.0)
    if best is None or cosine < threshold:
        groups.append(texts)
        return len(groups) - 1, False
    groups[best] = list(dict.fromkeys([*groups[best], *texts]))
    return best, True


def nearest(groups, texts):
    """(group, mean cosine) of tf (ln((1 + n) / (1 + df)) + 1), over all n strings that are known and these."""
    known = list(dict.fromkeys([*texts, *(text for group in groups for text in group)]))
    words = {t: [w for w in re.findall(r"\b\w\w+\b", t.lower()) if w not in ENGLISH_STOP_WORDS] for t in known}
    spread = {w: sum(w in of for of in words.values()) for of in words.values() for w in of}
    idf = {w: math.log((1 + len(known)) / (1 + df)) + 1 for w, df in spread.items()}

    def cosine(a, b):
        va, vb = ({w: words[t].count(w) * idf[w] for w in words[t]} for t in (a, b))
        length = math.sqrt(sum(v * v for v in va.values()) * sum(v * v for v in vb.values()))
        return 1.0 if a == b else sum(v * vb.get(w, 0.0) for w, v in va.items()) / length if length else 0.0

    near = [sum(cosine(a, b) for a in texts for b in group) / len(texts) / len(group) for group in groups]
    return near.index(max(near)), max(near)


SLIPS = [
    Mutant("sign", '== "old" else 1.0 - weight', '!= "old" else 1.0 - weight', DynamicAverage),
    Mutant("first epoch only", "if self.average is not None:\n            weights",
           "if self.average is not None and self.average.count < 12:\n            weights"),
    Mutant("factor", "(1.0 + gradient) / below", "gradient / below", DynamicAverage),
]  # fmt: skip
STARTS = [
    Mutant("memory before or after the step", 'if self.start == "before', 'if self.start != "before'),
    Mutant("factor", "self.scale * ratio for", "ratio for", DynamicAverage),
    Mutant("order of rounds", "if again else None", "if data.round == 2 else None"),
    Mutant("factor", "gradient[n] - previous[n]", "gradient[n]", DynamicAverage),
]
GROUPS = [
    Mutant("order of rounds", "self.set_weights(self.shelf[self.group])", "pass"),
    Mutant("mask", "self.set_weights(self.shelf[group])\n            chosen", "chosen"),
    Mutant("factor", "cosines(new).mean(axis=0)", "cosines(new).min(axis=0)", Codebook),
]
FACTORS = [
    Mutant("factor", "1.0 - betas[name]", "betas[name]", DynamicAverage),
    Mutant("order of rounds", "self.set_weights(self.average.average)", "pass"),
    Mutant(
        "first epoch only", "self.learnt.add(self.group)", "self.learnt |= {self.group} if data.round > 1 else set()"
    ),
]
CHECKS = [
    language(CIA, naive, [*SLIPS, STARTS[0]], title="CIA, paper", naive_options=PAPER, preset="paper"),
    language(CIA, naive, [*SLIPS, *STARTS], title="CIA, coin", naive_options=COIN),
    language(CIA, naive, STARTS[:3], title="CIA, continual_next", naive_options=NEXT, preset="continual_next"),
    language(
        CIA,
        naive,
        [*SLIPS, Mutant("mask", "if together:", "if not together:", DynamicAverage)],
        title="CIA, one ratio",
        naive_options={**COIN, "scale": 3.0, "fallback": 0.2, "whole": True},
        per="global",
        scale=3.0,
        fallback=0.2,
    ),
    language(CIA, naive, FACTORS, title="EMA", naive_options={**COIN, "constant": 0.7}, beta=0.7),
    language(
        CIA,
        naive,
        [*GROUPS, Mutant("order of rounds", "self.set_weights(self.first)", "pass")],
        title="CIA, grouping",
        exam=QUICK,
        tolerance=1e-4,
        naive_options={**COIN, "threshold": 0.3},
        grouping="tfidf",
        threshold=0.3,
        new_group="fresh",
        vectors="round",
        below="nearest",
    ),
    language(
        CIA,
        naive,
        GROUPS,
        title="CIA, paper, grouping",
        exam=QUICK,
        tolerance=1e-4,
        naive_options={**PAPER, "threshold": 0.3, "fresh": False},
        preset="paper",
        grouping="tfidf",
        threshold=0.3,
        new_group="continue",
    ),
]


def test_cia_averages_as_the_paper_and_as_both_codes_do():
    for check in CHECKS:
        check.conforms()


def test_the_second_round_founds_a_group_and_the_third_comes_back():
    groups = []
    rounds = [[instruction(x) for x in data.x] for data in ROUNDS]
    assert [found(groups, texts, 0.3) for texts in rounds] == [(0, False), (1, False), (0, True)]
    assert 0.3 < nearest([rounds[0], rounds[1]], rounds[2])[1] < 0.9
    said = [after.answers.tolist() for after in CHECKS[-1].naive()]
    assert said[0][0] == said[1][0] and said[0][1] != said[1][1], "each is asked what it was told"
