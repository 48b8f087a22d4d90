"""Memories of OCDM and PRS against their definitions, and losses against sums over samples and classes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ianvs.testalgorithms.multilabel import label_memories as memories
from ianvs.testalgorithms.multilabel import multilabel_learner as losses
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "multilabel.json").read_text())["ocdm"]


@pytest.mark.parametrize("rho", [0, 1])
def test_worked_values_of_ocdm(rho: int) -> None:
    expected = GOLDEN["expected"][f"rho_{rho}"]
    target = memories.target_shares(torch.tensor(GOLDEN["seen_counts"]), rho)
    assert target.tolist() == pytest.approx(expected["target"], rel=0, abs=1e-9)
    stored = torch.tensor(GOLDEN["memory"])
    assert memories.closest_to(target, stored, GOLDEN["capacity"]).tolist() == expected["kept"]
    removed = {step["index"] for step in expected["removed"][:1]}
    assert memories.closest_to(target, stored, len(stored) - 1).tolist() == sorted({*range(len(stored))} - removed)


def divergence(target: list[float], rest: list[list[int]]) -> tuple[float, float]:
    """What of the target has no label in the rest, and KL over what has one."""
    counts = [sum(column) for column in zip(*rest, strict=True)] if rest else [0] * len(target)
    lost = sum(p for p, n in zip(target, counts, strict=True) if not n)
    return lost, sum(p * math.log(p * sum(counts) / n) for p, n in zip(target, counts, strict=True) if n and p)


def removed_one_by_one(target: list[float], labels: list[list[int]], capacity: int) -> list[int]:
    """Positions that stay, from the definition: each removal is tried out."""
    kept = list(range(len(labels)))
    while len(kept) > capacity:
        tried = [divergence(target, [labels[i] for i in kept if i != goes]) for goes in kept]
        best = min(round(lost, 9) for lost, _ in tried)
        least = min(kl for lost, kl in tried if round(lost, 9) == best)
        place = next(i for i, (lost, kl) in enumerate(tried) if round(lost, 9) == best and kl <= least + 1e-9)
        kept.pop(place)
    return kept


@given(
    st.integers(1, 4).flatmap(
        lambda C: st.lists(st.lists(st.integers(0, 1), min_size=C, max_size=C), min_size=1, max_size=10)
    ),
    st.integers(0, 10),
    st.sampled_from([-0.5, 0.0, 1.0]),
)
def test_ocdm_keeps_what_trying_out_each_removal_keeps(labels: list[list[int]], capacity: int, rho: float) -> None:
    stored = torch.tensor(labels, dtype=torch.uint8)
    target = memories.target_shares(stored.sum(0), rho)
    found = memories.closest_to(target, stored, capacity).tolist()
    assert found == removed_one_by_one(target.tolist(), labels, capacity)


def stream(samples: int, classes: int = 6, seed: int = 0) -> torch.Tensor:
    """(N, C) labels with a long tail: class c has a share of about 1 / (c + 2)."""
    shares = 1 / torch.arange(2, classes + 2)
    return (torch.rand(samples, classes, generator=torch.Generator().manual_seed(seed)) < shares).to(torch.uint8)


def filled(memory: memories.Memory, labels: torch.Tensor) -> memories.Memory:
    generator = torch.Generator().manual_seed(1)
    for start in range(0, len(labels), 10):
        batch = labels[start : start + 10]
        memory.add(torch.arange(start, start + len(batch)), batch, generator)
    return memory


@pytest.mark.parametrize("kind", [memories.DistributionMatchingMemory, memories.PartitioningReservoirMemory])
def test_memories_hold_the_ids_and_labels_that_were_offered(kind: type[memories.Memory]) -> None:
    labels = stream(200)
    memory = filled(kind(30), labels)
    assert len(memory) == len(set(memory.x.tolist())) == 30
    assert torch.equal(memory.y, labels[memory.x])
    assert torch.equal(memory.counts, labels.sum(0))


@pytest.mark.parametrize("kind", [memories.DistributionMatchingMemory, memories.PartitioningReservoirMemory])
def test_memories_go_on_from_their_state(kind: type[memories.Memory]) -> None:
    labels = stream(100)
    whole, restored = filled(kind(20), labels), kind(20)
    restored.restore(whole.state())
    for memory in (whole, restored):
        memory.add(torch.arange(100, 120), stream(20, seed=3), torch.Generator().manual_seed(5))
    assert torch.equal(whole.x, restored.x)


@pytest.mark.parametrize("kind", [memories.DistributionMatchingMemory, memories.PartitioningReservoirMemory])
def test_memories_hold_more_of_the_tail_than_the_stream(kind: type[memories.Memory]) -> None:
    labels = stream(2000)
    kept = filled(kind(60, rho=0.0), labels).y.double().sum(0)
    stream_share, share = (n[-1] / n.sum() for n in (labels.double().sum(0), kept))
    assert share > 1.2 * stream_share


@pytest.mark.parametrize("kind", [memories.DistributionMatchingMemory, memories.PartitioningReservoirMemory])
def test_memories_of_no_capacity_and_labels_of_one_class_are_handled(kind: type[memories.Memory]) -> None:
    assert len(filled(kind(0), stream(20))) == 0
    assert errors_of(lambda: kind(5).add(torch.arange(2), torch.tensor([0, 1]), torch.Generator())) == [
        ("refused-arguments", "")
    ]


def test_prs_accepts_by_the_shares_of_a_samples_labels() -> None:
    memory = memories.PartitioningReservoirMemory(2)
    memory.counts = torch.tensor([2, 4])  # p = (.5, .5), m p = 1: .5 and .25, weights by softmax(-2, -4)
    weight = 1 / (1 + math.exp(-2))
    generator, label = torch.Generator().manual_seed(0), torch.tensor([1, 1])
    share = sum(memory.accepts(label, generator) for _ in range(4000)) / 4000
    assert share == pytest.approx(weight / 2 + (1 - weight) / 4, abs=0.03)
    assert not memory.accepts(torch.tensor([0, 0]), generator)


def test_prs_removes_from_the_largest_surplus_what_hurts_the_rest_least() -> None:
    """Class 0 has 30 of 33 labels: of its samples, those with no other label go, the first of them."""
    memory = memories.PartitioningReservoirMemory(31)
    memory.counts = torch.tensor([100, 100])
    labels = torch.tensor([[1, 1], [1, 1], [0, 1], *[[1, 0]] * 28], dtype=torch.float64)
    assert memory.leaves(labels, torch.Generator().manual_seed(0)) == 3


Z = torch.tensor([[2.0, -1.0, 0.3], [-3.0, 0.1, -torch.inf]])
Y = torch.tensor([[1, 0, 1], [0, 1, 0]], dtype=torch.uint8)


def test_binary_cross_entropy_is_the_mean_over_the_given_classes() -> None:
    p = Z[:, :2].sigmoid()
    expected = -torch.where(Y[:, :2] > 0, p, 1 - p).log().mean()
    assert losses.binary_cross_entropy(Z, Y, [0, 1]).item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize(("positive", "negative", "margin"), [(0, 4, 0.05), (1, 4, 0.05), (0, 0, 0), (2, 1, 0.2)])
def test_asymmetric_loss_is_the_sum_of_its_equations(positive: float, negative: float, margin: float) -> None:
    total = 0.0
    for z, y in zip(Z[:, :2].flatten().tolist(), Y[:, :2].flatten().tolist(), strict=True):
        p = 1 / (1 + math.exp(-z))
        q = max(p - margin, 0)
        total -= (1 - p) ** positive * math.log(p) if y else q**negative * math.log(1 - q)
    found = losses.asymmetric_loss(Z, Y, [0, 1], gamma_positive=positive, gamma_negative=negative, margin=margin)
    assert found.item() == pytest.approx(total / 2, abs=1e-6)


def test_asymmetric_loss_without_margin_and_gammas_is_the_cross_entropy_of_all_classes() -> None:
    found = losses.asymmetric_loss(Z, Y, [0, 1], gamma_negative=0, margin=0)
    assert found.item() == pytest.approx(2 * losses.binary_cross_entropy(Z, Y, [0, 1]).item(), abs=1e-6)


def test_asymmetric_loss_takes_its_weights_as_constants_unless_told_otherwise() -> None:
    z, y = torch.tensor([[1.0]], requires_grad=True), torch.tensor([[0]])
    p = torch.sigmoid(torch.tensor(1.0)).item()
    (gradient,) = torch.autograd.grad(losses.asymmetric_loss(z, y, [0], margin=0), z)
    assert gradient.item() == pytest.approx(p**4 * p, abs=1e-6)
    (gradient,) = torch.autograd.grad(losses.asymmetric_loss(z, y, [0], margin=0, through_weights=True), z)
    assert gradient.item() == pytest.approx(p**4 * p - 4 * p**4 * (1 - p) * math.log(1 - p), abs=1e-6)
