"""Projections of gradients against worked values, brute force, a quadratic-programming solver and their conditions."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ianvs.authoring.projection import agem_projection, flat_gradients, gem_projection, set_flat_gradients


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def drawn(seed, k, size):
    draw = np.random.default_rng(seed)
    return torch.from_numpy(draw.normal(size=size)), torch.from_numpy(draw.normal(size=(k, size)))


problems = st.builds(drawn, st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 12))


def test_agem_takes_away_the_part_that_points_against_the_memory():
    # g.m = -2, m.m = 4: g - (-2 / 4) m = (-1, 1) + 0.5 (2, 0)
    assert agem_projection(vector(-1, 1), vector(2, 0)).tolist() == [0.0, 1.0]
    assert agem_projection(vector(1, 1), vector(2, 0)).tolist() == [1.0, 1.0]
    assert agem_projection(vector(1, 1), vector(0, 0)).tolist() == [1.0, 1.0]


@given(problems)
def test_with_one_memory_gem_is_agem(problem):
    g, G = problem
    torch.testing.assert_close(gem_projection(g, G[:1]), agem_projection(g, G[0]), rtol=1e-9, atol=1e-12)


def test_two_memories_by_hand():
    # g = (-1, -1, 2) is against both axes: nearest with g~_1 >= 0 and g~_2 >= 0 is (0, 0, 2)
    memories = torch.stack([vector(3, 0, 0), vector(0, 0.5, 0)])
    torch.testing.assert_close(gem_projection(vector(-1, -1, 2), memories), vector(0, 0, 2))


def test_a_margin_pushes_on_by_hand():
    # G = (2, 0), g = (-1, 1), GG' = 4, Gg = -2: v = max(-(-2) / 4, margin); g~ = g + 2 v
    memory = vector(2, 0)[None]
    torch.testing.assert_close(gem_projection(vector(-1, 1), memory, margin=0.1), vector(0, 1))
    torch.testing.assert_close(gem_projection(vector(-1, 1), memory, margin=0.75), vector(0.5, 1))


def brute_force(g, G):
    """The nearest of the projections on the subspaces where some of the constraints hold with equality."""
    best = None
    for size in range(len(G) + 1):
        for active in itertools.combinations(range(len(G)), size):
            A = G[list(active)].numpy()
            x = g.numpy() - A.T @ np.linalg.lstsq(A @ A.T, A @ g.numpy(), rcond=None)[0] if size else g.numpy()
            feasible = (G.numpy() @ x >= -1e-9).all()
            if feasible and (best is None or np.linalg.norm(x - g.numpy()) < np.linalg.norm(best - g.numpy())):
                best = x
    return best


@given(problems)
def test_gem_is_the_nearest_vector_that_harms_no_memory(problem):
    g, G = problem
    np.testing.assert_allclose(gem_projection(g, G).numpy(), brute_force(g, G), rtol=1e-6, atol=1e-7)


@given(problems, st.sampled_from([0.0, 0.5]))
def test_the_conditions_of_karush_kuhn_and_tucker_hold(problem, margin):
    g, G = problem
    projected = gem_projection(g, G, margin)
    if bool((G @ g >= 0).all()):
        assert projected is g
        return
    scale = float(g.norm() * G.norm())
    assert float((G @ projected).min()) >= -1e-8 * scale  # primal: also the gradient of the dual in v
    if len(G) <= len(g):  # v is unique
        v = torch.linalg.lstsq(G.T, (projected - g)[:, None]).solution[:, 0]
        assert float(v.min()) >= margin - 1e-6
        slack = (v - margin) * (G @ projected)  # complementarity
        assert float(slack.abs().max()) <= 1e-6 * max(1.0, scale)


@given(problems, st.sampled_from([0.0, 0.5]))
def test_gem_agrees_with_a_solver_of_quadratic_programs(problem, margin):
    quadprog = pytest.importorskip("quadprog")
    g, G = problem
    if bool((G @ g >= 0).all()) or len(G) > len(g):
        return
    v = quadprog.solve_qp((G @ G.T).numpy(), -(G @ g).numpy(), np.eye(len(G)), np.full(len(G), margin))[0]
    expected = g.numpy() + G.numpy().T @ v
    np.testing.assert_allclose(gem_projection(g, G, margin).numpy(), expected, rtol=1e-6, atol=1e-7)


def test_memories_that_say_the_same_are_no_trouble():
    g, G = drawn(3, 2, 5)
    g = g - G[0] * 2
    twice = torch.cat([G, G, 0 * G[:1]])
    torch.testing.assert_close(gem_projection(g, twice), gem_projection(g, G), rtol=1e-7, atol=1e-9)


def test_single_precision_stays_single_precision_and_is_projected_as_well():
    g, G = (t.float() for t in drawn(1, 3, 5000))
    g = g - G.sum(0)
    projected = gem_projection(g, G)
    assert projected.dtype == torch.float32
    assert float((G @ projected).min()) > -1e-2  # of products of about 5000
    assert float((G @ g).max()) < -1000


def test_gradients_are_written_back_where_they_were_read():
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    network[0].bias.requires_grad_(False)
    network[1].bias.grad = torch.tensor([5.0, 6.0])
    network[1].weight.grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    flat = flat_gradients(network.parameters())
    assert flat.tolist() == [0.0] * 6 + [1, 2, 3, 4, 5, 6]
    set_flat_gradients(network.parameters(), flat * 2)
    assert network[1].weight.grad.tolist() == [[2, 4], [6, 8]]
    assert network[0].bias.grad is None
