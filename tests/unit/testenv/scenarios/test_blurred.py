"""Blurred boundaries: every sample once, the shares that the recipe promises, and its limits in other scenarios."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.errors import ConfigError
from ianvs.base.seeding import generator
from ianvs.exam.scenarios import Rules, Stream
from ianvs.testenv.scenarios.blurring import exchange
from tests.errors import errors_of
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of

SIX = dataset_of([*range(6)] * 20, range(6))  # 20 samples of each of 6 classes
KINDS = [
    {"kind": "blurry", "M": 20},
    {"kind": "i-blurry", "N": 50, "M": 20},
    {"kind": "dirichlet", "alpha": 0.5},
    {"kind": "gaussian", "sigma": 0.1},
]


def blurred(dataset=SIX, rounds=3, **options):
    return exam_of(dataset, "blurred-boundary", {"rounds": rounds, **options})


def counts(exam):
    """[k, c] samples of class c in round k."""
    labels = exam.dataset.train.y
    return np.array([np.bincount(labels[r.train], minlength=len(exam.dataset.classes)) for r in exam.rounds])


def assert_every_sample_once(exam):
    assert sorted(np.concatenate([r.train for r in exam.rounds]).tolist()) == [*range(len(exam.dataset.train))]


@st.composite
def unequal(draw):
    """A dataset of six classes of different sizes, in no order."""
    sizes = draw(st.lists(st.integers(1, 40), min_size=6, max_size=6))
    labels = np.repeat(np.arange(6), sizes)
    return dataset_of(np.random.default_rng(draw(st.integers(0, 9))).permutation(labels), range(6))


@given(dataset=unequal(), options=st.sampled_from(KINDS), rounds=st.sampled_from([2, 3, 6]), seed=st.integers(0, 9))
def test_every_sample_is_used_once_and_classes_are_those_that_occur(dataset, options, rounds, seed):
    try:
        exam = blurred(dataset, rounds, seed=seed, **options)
    except ConfigError as error:  # a round of very small classes can be left empty, which is said
        assert "without samples" in str(error) or "always empty" in str(error)
        return
    assert_every_sample_once(exam)
    for round_ in exam.rounds:
        assert len(set(round_.classes)) == len(round_.classes)
        assert set(round_.classes) == set(dataset.train.y[round_.train].tolist())
    assert sorted(np.concatenate([t.test for t in exam.tests]).tolist()) == [*range(6)]


@given(dataset=unequal(), rounds=st.sampled_from([2, 3, 6]), M=st.integers(0, 100))
def test_blurry_rounds_keep_their_sizes_and_give_the_share_that_is_asked_for(dataset, rounds, M):
    plain = exam_of(dataset, "CIL", {"rounds": rounds})
    sizes = [len(r.train) for r in plain.rounds]
    leaving = [int(size * M / 100 + 0.5) for size in sizes]
    exam = blurred(dataset, rounds, kind="blurry", M=M)
    assert [len(r.train) for r in exam.rounds] == sizes
    for k, home in enumerate(plain.rounds):
        foreign = ~np.isin(exam.rounds[k].train, home.train)
        assert foreign.sum() == min(leaving[k], sum(leaving) - leaving[k])


@pytest.mark.parametrize(("rounds", "M"), [(2, 10), (3, 20), (6, 50), (3, 30), (6, 35)])
def test_rounds_of_equal_size_get_equal_shares_from_each_other(rounds, M):
    n, labels = 120 // rounds, SIX.train.y
    exam = blurred(rounds=rounds, kind="blurry", M=M)
    exact = n * M / 100 / (rounds - 1)
    for k, round_ in enumerate(exam.rounds):
        homes = np.bincount(labels[round_.train] // (6 // rounds), minlength=rounds)
        assert homes[k] == n - int(n * M / 100 + 0.5)
        others = np.delete(homes, k)
        assert others.min() >= np.floor(exact)
        assert others.max() <= np.ceil(exact)


def test_what_leaves_a_round_has_its_mix_of_classes():
    dataset = dataset_of(np.repeat(np.arange(6), [90, 30, 60, 60, 80, 40]), range(6))
    found = counts(blurred(dataset, 3, kind="blurry", M=20))
    assert found.sum(axis=1).tolist() == [120, 120, 120]
    foreign = found[1, :2]  # 12 of home 0, of which classes 0 and 1 are three to one
    np.testing.assert_allclose(foreign, [9, 3], atol=1)


@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=8), share=st.floats(0, 1))
def test_an_exchange_keeps_the_sum_of_every_home_and_every_round(sizes, share):
    traded = exchange(sizes, share)
    assert traded.min() >= 0
    assert traded.sum(axis=0).tolist() == traded.sum(axis=1).tolist() == sizes


def test_an_exchange_of_unequal_sizes_is_as_even_as_it_can_be():
    # 10, 10 and 20 leave: the third can give as much as the first two take together, so these trade with it alone.
    assert exchange([100, 100, 200], 0.1).tolist() == [[90, 0, 10], [0, 90, 10], [10, 10, 180]]
    # 12, 12, 12 and 18 leave: cells a_k + a_j with rows of these sums have a = 1.5, 1.5, 1.5, 4.5.
    assert exchange([120, 120, 120, 180], 0.1).tolist() == [
        [108, 3, 3, 6],
        [3, 108, 3, 6],
        [3, 3, 108, 6],
        [6, 6, 6, 162],
    ]


@pytest.mark.parametrize(
    "options", [{"kind": "blurry", "M": 0}, {"kind": "i-blurry", "N": 100}, {"kind": "i-blurry", "M": 0}]
)
@pytest.mark.parametrize("order", [{}, {"order_seed": 4}, {"first": 2}])
def test_without_blur_it_is_class_incremental(options, order):
    rounds = 3
    exam, plain = blurred(rounds=rounds, **options, **order), exam_of(SIX, "CIL", {"rounds": rounds, **order})
    for part, same in zip(exam.rounds, plain.rounds, strict=True):
        assert (part.name, part.classes) == (same.name, same.classes)
        np.testing.assert_array_equal(part.train, same.train)
    for part, same in zip(exam.tests, plain.tests, strict=True):
        assert part.classes == same.classes
        np.testing.assert_array_equal(part.test, same.test)


@given(N=st.integers(0, 100), M=st.integers(0, 100), seed=st.integers(0, 5), rounds=st.sampled_from([2, 3]))
def test_i_blurry_leaves_disjoint_classes_alone_and_spreads_the_others(N, M, seed, rounds):
    exam = blurred(rounds=rounds, kind="i-blurry", N=N, M=M, seed=seed)
    found = counts(exam)
    homes = np.arange(6) // (6 // rounds)
    whole = int(6 * N / 100 + 0.5)
    moved = int(20 * M / 100 + 0.5)
    stayed = found[homes, np.arange(6)]
    blurry = 0 if moved == 0 else 6 - whole
    assert sorted(stayed.tolist()) == sorted([20] * (6 - blurry) + [20 - moved] * blurry)
    for c in range(6):
        others = np.delete(found[:, c], homes[c])
        assert others.max() - others.min() <= 1
        assert others.sum() == 20 - stayed[c]


def test_disjoint_classes_are_shared_out_to_all_rounds():
    found = counts(blurred(kind="i-blurry", N=50, M=50))
    in_one_round = (found > 0).sum(axis=0) == 1
    assert in_one_round.reshape(3, 2).sum(axis=1).tolist() == [1, 1, 1]


def test_a_small_alpha_gives_a_class_to_one_round_and_a_large_one_to_all():
    dataset = dataset_of([*range(6)] * 200, range(6))
    small, large = (counts(blurred(dataset, kind="dirichlet", alpha=alpha)) for alpha in (1e-5, 10_000))
    assert (small.max(axis=0) > 190).all()
    np.testing.assert_allclose(large, 200 / 3, atol=10)


def test_dirichlet_shares_have_the_moments_of_the_distribution():
    alpha, rounds = 2.0, 4
    dataset = dataset_of(np.repeat(np.arange(300), 100), range(300))
    shares = counts(blurred(dataset, rounds, kind="dirichlet", alpha=alpha)).ravel() / 100
    assert shares.mean() == pytest.approx(1 / rounds)
    # A component's variance is m (1 - m) / (K alpha + 1); 1 200 shares estimate it to within a few percent.
    assert shares.var() == pytest.approx(0.25 * 0.75 / (rounds * alpha + 1), rel=0.15)


def test_a_gaussian_schedule_lets_classes_come_around_their_centres():
    dataset = dataset_of(generator(0, 0, "labels").permutation(np.repeat(np.arange(5), 400)), range(5))
    exam = blurred(dataset, 4, kind="gaussian", sigma=0.08, class_order=[4, 3, 2, 1, 0], batch=10)
    flow = np.concatenate([r.train for r in exam.rounds])
    assert [len(r.train) for r in exam.rounds] == [500] * 4
    when = np.arange(2000) / 2000
    for c in range(1, 4):  # those at the ends lean on the border
        times = when[dataset.train.y[flow] == c]
        assert times.mean() == pytest.approx((4 - c + 0.5) / 5, abs=0.02)
        assert times.std() == pytest.approx(0.08, abs=0.02)
    assert exam.stream == Stream(10, None, shuffled=False)


def test_a_narrow_gaussian_schedule_is_class_incremental():
    exam, plain = blurred(kind="gaussian", sigma=1e-6), exam_of(SIX, "CIL", {"rounds": 3})
    assert [sorted(r.train.tolist()) for r in exam.rounds] == [r.train.tolist() for r in plain.rounds]


@pytest.mark.parametrize("options", KINDS, ids=[kind["kind"] for kind in KINDS])
def test_rules_as_rounds_and_as_a_stream(options):
    exam = blurred(**options)
    assert exam.rules == Rules("blurred-boundary", True, False, "seen")
    assert exam.stream is None
    flow = blurred(**options, batch=5, eval_every=50)
    assert flow.rules == Rules("blurred-boundary", False, False, "seen", passes=1, boundaries=False)
    assert (flow.stream.batch, flow.stream.eval_every) == (5, 50)
    assert [r.train.tolist() for r in flow.rounds] == [r.train.tolist() for r in exam.rounds]


@pytest.mark.parametrize("options", KINDS, ids=[kind["kind"] for kind in KINDS])
def test_a_seed_fixes_the_exam_and_another_one_changes_it(options):
    assert same_exam(blurred(**options, seed=3), blurred(**options, seed=3))
    assert not same_exam(blurred(**options, seed=3), blurred(**options, seed=4))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"kind": "dirichlet"}, "invalid-scenario"),
        ({"kind": "gaussian"}, "invalid-scenario"),
        ({"kind": "blurry", "alpha": 1}, "invalid-scenario"),
        ({"kind": "blurry", "N": 50}, "invalid-scenario"),
        ({"kind": "dirichlet", "alpha": 1, "order_seed": 1}, "invalid-scenario"),
        ({"M": 110}, "invalid-option"),
        ({"kind": "fuzzy"}, "invalid-option"),
        ({"eval_every": 10}, "invalid-scenario"),
        ({"rounds": 1}, "invalid-scenario"),
        ({"rounds": None}, "invalid-scenario"),
        ({"kind": "dirichlet", "alpha": 1e-6, "rounds": 12}, "invalid-scenario"),
        ({"kind": "gaussian", "sigma": 1, "rounds": 121}, "invalid-scenario"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(options, code):
    assert errors_of(blurred, **options) == [(code, "")]
