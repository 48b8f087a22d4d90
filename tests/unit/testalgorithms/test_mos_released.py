"""MOS as released: adapters are merged in place before every layer, in testing too."""

import numpy as np
import torch

from ianvs.testalgorithms.mos.basemodel import MOS
from tests.errors import errors_of
from tests.unit.authoring.test_learner import CONTEXT, Vectors, taught

MERGING = 0.3


def learner(merge):
    options = {"epochs": 1, "batch_size": 20, "bottleneck": 2, "alignment_epochs": 1, "alignment_samples": 4}
    made = MOS(merge=merge, merging=MERGING, learning_rate=0.5, **options)
    data = Vectors(dtype=np.uint8, shape=(3, 8, 8))
    for k in (1, 2, 3):
        taught(made, data, round=k)
    return made


def test_each_layer_of_each_pass_moves_kept_adapters_to_the_mean_of_earlier_ones():
    """Before layer l of pass b, A_i = mean + (1 - m)^(b L + l + 1) (A_i - mean), mean over the rounds before i."""
    body = learner("layer").network[0].eval()
    x = torch.randn(4, 3, 8, 8)
    originals = [[p.detach().clone() for p in one.parameters()] for one in body.round_adapters]
    transformer, layers = body.frozen.body, len(body.adapters)
    with torch.no_grad(), body.unchanged():
        found = [body.by_round(x) for _ in range(2)]
    with torch.no_grad():
        for number, features in enumerate(found):
            for i, (kept, own) in enumerate(zip(body.round_adapters, originals, strict=True)):
                tokens = transformer.tokens(x)
                for layer, block in enumerate(transformer.blocks):
                    for j, (p, value) in enumerate(zip(kept.parameters(), own, strict=True)):
                        mean = torch.stack([originals[k][j] for k in range(i)]).mean(0) if i else value
                        p.copy_(mean + (1 - MERGING) ** (number * layers + layer + 1) * (value - mean))
                    tokens = block(tokens, None, kept[layer])
                wanted = transformer.pooled(_normed(transformer, tokens))
                torch.testing.assert_close(features[:, i], wanted, rtol=1e-4, atol=1e-5)
                for p, value in zip(kept.parameters(), own, strict=True):
                    p.copy_(value)


def _normed(transformer, tokens):
    blocks, transformer.blocks = transformer.blocks, ()
    try:
        return transformer.encode(tokens)
    finally:
        transformer.blocks = blocks


def test_an_examination_leaves_no_trace_and_the_rule_matters():
    released, paper = learner("layer"), learner("step")
    test = Vectors(dtype=np.uint8, shape=(3, 8, 8), labelled=False)
    before = {name: value.clone() for name, value in released.network.state_dict().items()}
    first = released.probabilities(test, **CONTEXT)
    assert all(torch.equal(value, before[name]) for name, value in released.network.state_dict().items())
    assert (first == released.probabilities(test, **CONTEXT)).all()
    assert (first != paper.probabilities(test, **CONTEXT)).any()


def test_an_unknown_rule_is_refused():
    assert errors_of(MOS, merge="twice") == [("invalid-choice", "")]
