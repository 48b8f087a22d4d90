"""Losses and class weights of MDIL-SS against worked values, libraries and naive second implementations."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from ianvs.testalgorithms.mdil_ss.losses import class_weights, distillation, weighted_cross_entropy
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "mdil.json").read_text())
KLD = GOLDEN["kld"]


def double(values, grad=False):
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize(
    ("kind", "value", "gradient"),
    [("kl", "true_kl_mean_over_pixels", "true_grad"), ("reference_quirk", "code_loss_softmax_input_mean", "code_grad")],
)
def test_distillation_has_the_worked_value_and_gradient(kind, value, gradient):
    student, teacher = double(KLD["student_logits"], grad=True), double(KLD["teacher_logits"], grad=True)
    loss = distillation(student, teacher, kind)
    loss.backward()
    assert loss.item() == pytest.approx(KLD[value], rel=1e-12)
    torch.testing.assert_close(student.grad, double(KLD[gradient]), rtol=1e-10, atol=1e-14)
    assert teacher.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distillation_of_equals_is_nothing_to_the_last_bit(dtype):
    torch.manual_seed(0)
    student = (10 * torch.randn(2, 20, 6, 7, dtype=dtype)).requires_grad_()
    loss = distillation(student, student.detach().clone())
    loss.backward()
    assert loss.item() == 0.0
    assert not student.grad.any()


def test_the_quirk_pulls_even_where_student_and_teacher_agree():
    student = double(KLD["teacher_logits"], grad=True)
    loss = distillation(student, student.detach(), "reference_quirk")
    loss.backward()
    assert loss.item() == pytest.approx(KLD["code_loss_when_student_equals_teacher"], rel=1e-12)
    torch.testing.assert_close(student.grad, double(KLD["code_grad_when_equal"]), rtol=1e-10, atol=1e-14)


def test_distillation_and_its_gradient_are_those_of_the_library():
    torch.manual_seed(1)
    student = torch.randn(2, 5, 4, 3, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(2, 5, 4, 3, dtype=torch.float64)
    elements = kl_div(log_softmax(student, 1), log_softmax(teacher, 1), reduction="none", log_target=True)
    expected = elements.sum(1).mean()
    ours = distillation(student, teacher)
    torch.testing.assert_close(ours, expected)
    (gradient,) = torch.autograd.grad(3.0 * ours, student)
    torch.testing.assert_close(gradient, torch.autograd.grad(3.0 * expected, student)[0])
    assert torch.autograd.gradcheck(lambda logits: distillation(logits, teacher), student)


@pytest.mark.parametrize("kind", ["kl", "reference_quirk"])
def test_logits_in_half_precision_lose_nothing_further(kind):
    torch.manual_seed(4)
    student, teacher = (torch.randn(2, 20, 16, 16).bfloat16() for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        ours = distillation(student, teacher, kind)
    assert ours.dtype == torch.float32
    assert ours.item() == pytest.approx(distillation(student.double(), teacher.double(), kind).item(), rel=1e-5)
    labels, weights = torch.randint(0, 20, (2, 16, 16)), torch.rand(20)
    with torch.autocast("cpu", torch.bfloat16):
        loss = weighted_cross_entropy(student, labels, weights)
    assert loss.item() == pytest.approx(weighted_cross_entropy(student.double(), labels, weights).item(), rel=1e-5)


def test_an_unknown_distillation_is_refused_with_the_nearest_name():
    logits = torch.zeros(1, 2, 1, 1)
    assert errors_of(distillation, logits, logits, "referencequirk") == [("invalid-choice", "")]


def test_cross_entropy_equals_a_loop_over_pixels():
    torch.manual_seed(2)
    logits, labels = torch.randn(2, 4, 3, 5, dtype=torch.float64), torch.randint(0, 4, (2, 3, 5))
    weights = double([2.0, 0.5, 7.0, 0.0])
    total = weight = 0.0
    for b in range(2):
        for i in range(3):
            for j in range(5):
                label = labels[b, i, j].item()
                z = logits[b, :, i, j].tolist()
                total += weights[label].item() * (math.log(sum(map(math.exp, z))) - z[label])
                weight += weights[label].item()
    assert weighted_cross_entropy(logits, labels, weights).item() == pytest.approx(total / weight, rel=1e-12)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_cross_entropy_and_its_gradient_are_those_of_the_library(layout, dtype):
    torch.manual_seed(3)
    logits = torch.randn(2, 6, 8, 8).to(memory_format=layout).requires_grad_()
    labels, weights = torch.randint(0, 6, (2, 8, 8)), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0])
    expected = cross_entropy(logits, labels, weight=weights)
    ours = weighted_cross_entropy(logits, labels.to(dtype), weights)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, expected)))


def test_a_batch_of_ignored_pixels_teaches_nothing_and_breaks_nothing():
    logits = torch.randn(1, 3, 2, 2, requires_grad=True)
    loss = weighted_cross_entropy(logits, torch.full((1, 2, 2), 2), torch.tensor([1.0, 1.0, 0.0]))
    loss.backward()
    assert loss.item() == 0.0
    assert not logits.grad.any()


def test_class_weights_have_the_worked_values():
    worked = GOLDEN["class_weights"]
    weights = class_weights(torch.tensor(worked["pixel_counts"]))
    assert weights.tolist() == pytest.approx(worked["weights_decoder_1.1"], rel=1e-12)


def test_class_weights_lie_between_their_limits_whatever_the_counts():
    worked = GOLDEN["class_weights"]
    weights = class_weights(torch.tensor([0, 10**15, 0]))
    assert weights[0].item() == pytest.approx(worked["limit_p0"], abs=1e-9)
    assert weights[1].item() == pytest.approx(worked["limit_p1"], abs=1e-9)
    assert weights[2].item() == 0.0


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=30))
def test_a_rarer_class_never_weighs_less(counts):
    weights = class_weights(torch.tensor([*counts, 7])).tolist()[:-1]
    from_rare_to_common = [weight for _, weight in sorted(zip(counts, weights, strict=True), key=lambda pair: pair[0])]
    assert all(rare >= common for rare, common in pairwise(from_rare_to_common))
