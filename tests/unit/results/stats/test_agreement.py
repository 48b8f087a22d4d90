"""Whether our mean is a published one: equal, differs, can't tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_ind_from_stats

from ianvs.results.stats import Summary, compare
from tests.errors import printed

SUMMARIES = st.builds(
    Summary,
    st.floats(-20, 20).map(lambda mean: round(mean, 3)),
    st.floats(0.01, 8).map(lambda std: round(std, 3)),
    st.integers(2, 40),
)
MARGINS = st.floats(0.1, 5).map(lambda margin: round(margin, 2))


def test_an_interval_worked_by_hand() -> None:
    """s^2 / n is .018 and .032, their sum .05; freedom .05^2 / (.018^2 / 4 + .032^2 / 4) = 7.42; t 2.337."""
    found = compare(Summary(91.3, 0.3, 5), Summary(90.2, 0.4, 5), margin=1.0)
    assert found.difference == pytest.approx(1.1)
    assert found.high == pytest.approx(1.1 + 2.337 * np.sqrt(0.05), abs=0.001)
    assert found.low == pytest.approx(1.1 - 2.337 * np.sqrt(0.05), abs=0.001)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Summary(91.3, 0.3, 5), Summary(90.2, 0.4, 5), "differs"),  # GDumb 500: t is 4.9
        (Summary(91.3, 0.3, 5), Summary(90.2, 0.4, 3), "differs"),
        (Summary(49.5, 4.4, 5), Summary(45.7, 5.56, 5), "can't tell"),  # A-GEM 200
        (Summary(90.3, 0.3, 5), Summary(90.2, 0.4, 5), "equal"),
        (Summary(90.5, 0.1, 5), Summary(90.2, 0.1, 5), "equal"),  # surely a difference, but one that doesn't count
        (Summary(90.2, 0.0, 5), Summary(90.1, 0.4, 5), "equal"),  # seeds that change nothing
    ],
)
def test_verdicts_of_known_rows(ours: Summary, theirs: Summary, verdict: str) -> None:
    assert compare(ours, theirs, margin=1.0).verdict == verdict


@given(SUMMARIES, SUMMARIES, MARGINS)
def test_the_interval_is_scipys_and_decides_the_verdict(ours: Summary, theirs: Summary, margin: float) -> None:
    found = compare(ours, theirs, margin)
    assert found.low is not None
    assert found.high is not None

    def p(shift: float, alternative: str = "two-sided") -> float:
        sides = (ours.mean - shift, ours.std, ours.n, theirs.mean, theirs.std, theirs.n)
        return float(ttest_ind_from_stats(*sides, equal_var=False, alternative=alternative).pvalue)

    assert p(found.low) == pytest.approx(0.05, abs=1e-6)
    assert p(found.high) == pytest.approx(0.05, abs=1e-6)
    assume(min(abs(abs(end) - border) for end in (found.low, found.high) for border in (0, margin)) > 1e-9)
    one_sided = p(-margin, "greater") < 0.025 and p(margin, "less") < 0.025
    assert found.verdict == ("equal" if one_sided else "differs" if p(0) < 0.05 else "can't tell")


@given(SUMMARIES, SUMMARIES, MARGINS)
def test_which_side_is_ours_does_not_matter(ours: Summary, theirs: Summary, margin: float) -> None:
    found, turned = compare(ours, theirs, margin), compare(theirs, ours, margin)
    assert (found.verdict, found.difference) == (turned.verdict, -turned.difference)


@given(SUMMARIES, SUMMARIES, MARGINS, MARGINS)
def test_what_is_equal_stays_so_with_a_wider_margin(ours: Summary, theirs: Summary, one: float, two: float) -> None:
    narrow, wide = (compare(ours, theirs, margin).verdict for margin in sorted((one, two)))
    assert narrow != "equal" or wide == "equal"
    assert wide != "differs" or narrow == "differs"


@given(SUMMARIES, st.floats(-5, 5).map(lambda shift: round(shift, 3)), st.integers(2, 40), MARGINS)
def test_the_seeds_that_could_tell_are_the_fewest(theirs: Summary, shift: float, n: int, margin: float) -> None:
    assert theirs.mean is not None

    def verdict(seeds: int) -> str | None:
        return compare(Summary(theirs.mean + shift, 2.0, seeds), theirs, margin).verdict

    found = compare(Summary(theirs.mean + shift, 2.0, n), theirs, margin)
    if found.verdict != "can't tell":
        assert found.seeds is None
    elif found.seeds is None:
        assert {verdict(n * more) for more in (2, 3, 5, 10, 30, 1000, 10**7)} == {"can't tell"}
    else:
        assert verdict(found.seeds) != "can't tell"
        one_less = found.seeds - 1 if found.seeds <= 150 else int(found.seeds * 0.985)  # from there in steps
        assert verdict(one_less) == "can't tell"


def test_their_few_runs_can_leave_it_open_for_ever() -> None:
    assert compare(Summary(49.5, 4.4, 5), Summary(51.3, 5.56, 5), margin=1.0).seeds is None
    # t sqrt(4.4^2 / m + .5^2 / 50) is .995 for m = 79 and 1.001 for m = 78.
    assert compare(Summary(49.5, 4.4, 5), Summary(49.5, 0.5, 50), margin=1.0).seeds == 79


def test_the_verdicts_are_as_often_wrong_as_they_may_be() -> None:
    """Of 4000 pairs of ten and five runs with spread .3: apart by nothing, and by just the margin of 1."""
    draw = np.random.default_rng(0)

    def told(apart: float) -> list[str | None]:
        ours, theirs = draw.normal(apart, 0.3, (4000, 5)), draw.normal(0, 0.3, (4000, 10))
        pairs = zip(ours, theirs, strict=True)
        return [
            compare(*(Summary(x.mean(), x.std(ddof=1), len(x)) for x in pair), margin=1.0).verdict for pair in pairs
        ]

    none, margin = told(0.0), told(1.0)
    assert none.count("equal") > 0.97 * 4000
    assert none.count("differs") < 0.05 * 4000
    assert margin.count("equal") == pytest.approx(0.025 * 4000, rel=0.3)


@pytest.mark.slow
def test_a_true_difference_of_nothing_is_said_to_differ_one_time_in_twenty_at_most() -> None:
    draw = np.random.default_rng(1)
    samples = draw.normal(0, 2.0, (1500, 2, 5))  # too wide for "equal"
    verdicts = [compare(*(Summary(x.mean(), x.std(ddof=1), 5) for x in pair), margin=1.0).verdict for pair in samples]
    assert verdicts.count("differs") <= 0.055 * 1500
    assert verdicts.count("can't tell") > 0.9 * 1500


@pytest.mark.parametrize(
    "theirs", [Summary(0.8, None, 10), Summary(0.8, None, 0), Summary(0.8, 0.01, 0)], ids=["spread", "both", "runs"]
)
def test_without_spread_or_number_of_runs_there_is_no_verdict_and_our_own_interval(
    theirs: Summary,
) -> None:
    found = compare(Summary(0.9, 0.01, 5), theirs, margin=0.01)
    assert (found.verdict, found.seeds) == (None, None)
    printed(str(found.missing))
    assert found.difference == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1 + 2.776 * 0.01 / np.sqrt(5), abs=1e-5)  # t of 4 degrees of freedom
    assert found.low == pytest.approx(0.1 - 2.776 * 0.01 / np.sqrt(5), abs=1e-5)


def test_one_seed_of_ours_has_no_interval() -> None:
    found = compare(Summary(0.9, None, 1), Summary(0.8, 0.01, 5), margin=0.01)
    assert (found.verdict, found.low, found.high) == (None, None, None)
    printed(str(found.missing))


def test_a_mean_that_is_missing_is_no_difference() -> None:
    with pytest.raises(ValueError, match="need a mean"):
        compare(Summary(None, None, 0), Summary(0.8, 0.01, 5), margin=0.01)
