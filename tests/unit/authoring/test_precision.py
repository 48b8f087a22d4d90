"""In which numbers a network computes, and whether its steps are compiled."""

import pytest
import torch

from ianvs.authoring import TorchLearner
from ianvs.authoring.precision import use_precision
from ianvs.testalgorithms.segmentation import SegmentationLearner
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_arrays import digits, examine, teach

SHORT = {"epochs": 1, "batch_size": 32, "hidden": 16}


def learned(**options):
    return examine(TorchLearner(**SHORT, **options), digits(), seed=2, rounds=1)[2][-1]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def test_bf16_is_what_amp_was_and_not_fp32():
    bf16 = learned(precision="bf16")
    assert same(bf16, learned(amp=True)) and not same(bf16, learned())
    assert same(learned(), learned(precision="fp32"))
    assert all(w.dtype == torch.float32 for w in bf16)


def test_bf16_computes_in_bfloat16_and_answers_in_float32():
    learner = TorchLearner(**SHORT, precision="bf16")
    teach(learner, digits(), 1, seed=2)
    seen = []
    learner.network[1].register_forward_hook(lambda layer, given, answer: seen.append(answer.dtype))
    said = learner.logits(torch.zeros(2, 1, 8, 8))
    assert seen == [torch.bfloat16] and said.dtype == torch.float32


@pytest.mark.parametrize("learner", [TorchLearner, SegmentationLearner])
def test_what_can_not_be_meant_is_refused(learner):
    assert errors_of(learner, precision="fp23") == [("invalid-choice", "")]
    assert errors_of(learner, precision="tf32", amp=True) == [("conflicting-keys", "")]


def test_tf32_is_refused_on_a_processor():
    assert errors_of(learned, precision="tf32") == [("refused-arguments", "")]


def rounds_products():
    """(of matrices, of convolutions) whether a card rounds what it multiplies."""
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


def test_a_card_multiplies_as_the_precision_says():
    found = {}
    try:
        for precision in ("tf32", "bf16", "fp32"):
            use_precision(precision, "cuda")
            found[precision] = rounds_products()
    finally:
        use_precision("fp32", "cuda")
    assert found == {"tf32": (True, True), "bf16": (False, False), "fp32": (False, False)}


@pytest.mark.slow
def test_compiled_training_learns_the_same_up_to_rounding():
    for ours, theirs in zip(learned(compile=True), learned(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
