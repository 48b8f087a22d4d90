"""Routers of joint inference, on tables of what an edge model says.

After kubeedge/sedna 2c30e56, lib/sedna/algorithms/hard_example_mining/hard_example_mining.py. Threshold: hard if the
mean score of a sample's boxes is below the threshold (:87-91); a classified sample has one score, that of its likeliest
class. IBT: hard if enough boxes score at most threshold_box (:191-195), for one box the same but at equality.
CrossEntropy: hard if 1 + sum p ln p / ln C is below the threshold (:138-142; a p of 0 ends in an error there, and adds
nothing here). Random: hard with a probability (:221). Their defaults are .5, .5 and .3, ours .9, .7 and .5.
"""

import math

import numpy as np
import torch

from ianvs.testalgorithms.routing.routers import CrossEntropyRouter, RandomRouter, ThresholdRouter
from tests.nightly.conformance.harness import After, Check, Mutant

TABLES = [
    np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.6, 0.3], [0.0, 1.0, 0.0]]),
    np.array([[0.7, 0.3, 0.0], [0.05, 0.9, 0.05], [0.2, 0.2, 0.6], [0.0, 0.5, 0.5], [0.4, 0.35, 0.25]]),
    np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 5),
]


def threshold(p, draw, *, threshold):
    return max(p) < threshold


def cross_entropy(p, draw, *, threshold):
    return 1 + sum(x * math.log(x) for x in p if x > 0) / math.log(len(p)) < threshold


def random(p, draw, *, share):
    return draw.random() < share


def router(method, naive, mutants, **options):
    """What is sent of three tables, one after the other."""

    def after(sent):
        return After([torch.tensor(sent, dtype=torch.float64)], [], np.array(sent))

    def ours():
        made = method(**options)
        for k, table in enumerate(TABLES):
            given = {"generator": np.random.default_rng(k)} if method is RandomRouter else {}
            yield after(made.hard(table, table, **given).tolist())

    def theirs():
        for k, table in enumerate(TABLES):
            draw = np.random.default_rng(k)
            yield after([bool(naive(p, draw, **options)) for p in table])

    return Check(method, ours, theirs, mutants)


CHECKS = [
    router(
        ThresholdRouter,
        threshold,
        [
            Mutant("sign", ".max(axis=1) < self", ".max(axis=1) > self"),
            Mutant("factor", ".max(axis=1)", ".mean(axis=1)"),
            Mutant("equality", ".max(axis=1) < self", ".max(axis=1) <= self"),
        ],
        threshold=0.6,
    ),
    router(
        CrossEntropyRouter,
        cross_entropy,
        [
            Mutant("sign", "1 - entropy", "entropy"),
            Mutant("factor", "entropy / np.log(p.shape[1])", "entropy"),
            Mutant("mask", "np.where(p > 0, p, 1.0)", "p + 0.1"),
        ],
        threshold=0.4,
    ),
    router(
        RandomRouter,
        random,
        [
            Mutant("sign", "< self.share", "> self.share"),
            Mutant("factor", "< self.share", "< self.share / 2"),
            Mutant("order of rounds", "random(len(data))", "random(len(data))[::-1]"),
        ],
        share=0.4,
    ),
]


def test_routers_send_what_their_rules_say():
    for check in CHECKS:
        check.conforms()
