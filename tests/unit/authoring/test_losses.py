"""Distillation, Fisher information and anchors against worked values, autograd and naive second implementations."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from ianvs.authoring import Anchor, distillation_loss, fisher_diagonal, flat_parameters, mlp, resnet

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "methods.json").read_text())


def naive_fisher(network, x, y, mask=0.0):
    """One sample, one backward pass, at a time."""
    total = 0.0
    for i in range(len(y)):
        network.zero_grad()
        cross_entropy(network(x[i : i + 1]) + mask, y[i : i + 1]).backward()
        total = total + torch.cat([p.grad.flatten() for p in network.parameters()]) ** 2
    return total / len(y)


def test_anchor_and_gradient_have_the_worked_values():
    worked = GOLDEN["ewc"]
    theta = torch.tensor(worked["theta"], dtype=torch.float64, requires_grad=True)
    anchor = Anchor(*(torch.tensor(worked[name], dtype=torch.float64) for name in ("theta_old", "fisher")))
    penalty = 0.5 * anchor.distance(theta)
    penalty.backward()
    assert penalty.item() == pytest.approx(worked["penalty_half_lambda1"], abs=1e-12)
    assert theta.grad.tolist() == pytest.approx(worked["grad"], abs=1e-12)


def test_an_anchor_stays_where_it_was_dropped():
    network = mlp((4,), 3, hidden=(5,))
    anchor = Anchor.from_network(network, torch.ones(flat_parameters(network).shape))
    assert anchor.distance(flat_parameters(network)).item() == 0.0
    with torch.no_grad():
        for p in network.parameters():
            p += 2.0
    assert anchor.distance(flat_parameters(network)).item() == pytest.approx(4.0 * len(anchor.theta), rel=1e-5)


def test_fisher_of_a_network_with_batch_normalisation_does_not_mix_samples():
    torch.manual_seed(0)
    network = resnet((3, 8, 8), 4, widths=(4, 8)).double()
    x, y = torch.randn(9, 3, 8, 8, dtype=torch.float64), torch.randint(0, 4, (9,))
    network(x)  # so that running statistics are not the first ones
    before = {name: value.clone() for name, value in network.state_dict().items()}
    ours = fisher_diagonal(network, [(x, y)])
    assert network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    torch.testing.assert_close(ours, naive_fisher(network.eval(), x, y), rtol=1e-10, atol=1e-15)


def test_fisher_of_logistic_regression_has_its_closed_form():
    torch.manual_seed(0)
    network = nn.Linear(3, 2, bias=False).double()
    x, y = torch.randn(20, 3, dtype=torch.float64), torch.randint(0, 2, (20,))
    residual = network(x).softmax(1).detach() - one_hot(y, 2)  # d(-log p)/d logits
    expected = (residual[:, :, None] ** 2 * x[:, None, :] ** 2).mean(0).flatten()
    torch.testing.assert_close(fisher_diagonal(network, [(x, y)]), expected)


def test_fisher_leaves_frozen_parameters_out_as_flat_parameters_does():
    network = mlp((6,), 4, hidden=(7,))
    network[1].weight.requires_grad_(False)
    x, y = torch.randn(5, 6), torch.randint(0, 4, (5,))
    assert fisher_diagonal(network, [(x, y)]).shape == flat_parameters(network).shape == (7 + 28 + 4,)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 4.0])
def test_distillation_is_the_formula(temperature):
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 5, 3, dtype=torch.float64)
    p, q = (teacher / temperature).softmax(1), (student / temperature).softmax(1)
    expected = temperature**2 * sum(float(a * (a / b).log()) for a, b in zip(p.flatten(), q.flatten(), strict=True)) / 5
    assert distillation_loss(student, teacher, temperature).item() == pytest.approx(expected, abs=1e-12)


def test_distillation_gradient_is_t_times_the_difference_of_probabilities():
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 5, 3, dtype=torch.float64)
    student.requires_grad_()
    distillation_loss(student, teacher, 2.0).backward()
    expected = 2.0 * ((student / 2).softmax(1) - (teacher / 2).softmax(1)) / 5
    torch.testing.assert_close(student.grad, expected.detach())


def test_distillation_rests_where_student_and_teacher_agree():
    logits = torch.randn(5, 3, dtype=torch.float64)
    student = (logits + 7.0).requires_grad_()  # a constant changes no probability
    loss = distillation_loss(student, logits, 2.0)
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert student.grad.abs().max() < 1e-12


def test_a_teacher_that_is_certain_gives_a_finite_loss():
    student = torch.zeros(1, 3, requires_grad=True)
    loss = distillation_loss(student, torch.tensor([[1e4, 0.0, 0.0]]), 1.0)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3), rel=1e-6)
    assert student.grad.isfinite().all()
