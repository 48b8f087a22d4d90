"""Two means of draws that don't belong together, against SciPy."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from ianvs.results.stats import Summary, summarise, unpaired_difference


@pytest.mark.parametrize("seed", range(10))
def test_it_is_welchs_t(seed):
    draw = np.random.default_rng(seed)
    one, other = draw.normal(0.5, 0.1, draw.integers(2, 9)), draw.normal(0.4, 0.3, draw.integers(2, 9))
    ours = unpaired_difference(summarise(one.tolist()), summarise(other.tolist()))
    theirs = ttest_ind(one, other, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    assert ours.mean == pytest.approx(one.mean() - other.mean())
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.separated == (theirs.pvalue <= 0.05)


def test_without_spread_there_is_no_interval():
    for one, other in (([0.5], [0.4, 0.3]), ([0.5, 0.5], [0.4, 0.4])):
        found = unpaired_difference(summarise(one), summarise(other))
        assert (found.low, found.high, found.p, found.separated) == (None, None, 1.0, False)
    assert unpaired_difference(Summary(None, None, 0), summarise([0.4, 0.3])) is None
