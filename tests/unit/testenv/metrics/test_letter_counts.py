"""Counts of runs of letters, against scikit-learn's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ianvs.testenv.metrics.letter_counts import LetterCounter, cosine

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=7)
TEXTS = st.lists(WORDS | st.sampled_from(["the", "mayor", "of", "Ålborg", "市長", "𝔘𝔫𝔦"]), max_size=30).map(" ".join)


@given(TEXTS, TEXTS)
def test_counts_and_cosines_are_those_of_scikit_learn_bit_for_bit(first: str, second: str) -> None:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), lowercase=False, alternate_sign=False)
    counter = LetterCounter()
    rows = vectorizer.transform([first, second])
    for text, row in zip((first, second), rows, strict=True):
        columns, values = counter.counts(text)
        row.sort_indices()
        assert np.array_equal(columns, row.indices) and np.array_equal(values, row.data)
    assert cosine(counter.counts(first), counter.counts(second)) == rows[[0]].multiply(rows[[1]]).sum(axis=1).item()
