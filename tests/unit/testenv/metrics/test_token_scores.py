"""Scores of true replies, token by token, from what a learner says of them."""

import math

import numpy as np
import pytest

from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.metrics.token_scores import perplexity, reply_token_accuracy


def judged(right, tokens, likelihood, topics=None):
    extras = {"right_tokens": np.array(right), "tokens": np.array(tokens), "log_likelihood": np.array(likelihood)}
    return EvaluationRecord((), extras=extras, columns={} if topics is None else {"topics": np.array(topics)})


THREE = judged([3, 0, 2], [4, 1, 5], [math.log(0.5) * 4, math.log(0.25), 0.0], ["city", "", "sums"])


def test_every_token_counts_once_however_long_its_conversation():
    assert reply_token_accuracy.function(THREE) == {
        "reply_token_accuracy": 0.5,
        "topic city": 0.75,
        "topic sums": pytest.approx(0.4),
    }


def test_perplexity_is_the_inverse_of_the_geometric_mean_of_the_probabilities():
    found = perplexity.function(THREE)
    probabilities = [0.5] * 4 + [0.25] + [1.0] * 5
    assert found["perplexity"] == pytest.approx(math.prod(probabilities) ** (-1 / 10))
    assert found["topic city"] == pytest.approx(2) and found["topic sums"] == 1
    assert not perplexity.higher_is_better and reply_token_accuracy.higher_is_better


def test_a_uniform_guess_has_the_size_of_the_vocabulary_as_its_perplexity():
    found = perplexity.function(judged([0], [7], [-7 * math.log(512)]))
    assert found == {"perplexity": pytest.approx(512)}


@pytest.mark.parametrize("metric", [reply_token_accuracy, perplexity])
@pytest.mark.parametrize("record", [EvaluationRecord(()), judged([0, 0], [0, 0], [0.0, 0.0])])
def test_without_tokens_there_is_no_score(metric, record):
    assert math.isnan(metric.function(record)[metric.name])


def test_what_no_number_can_hold_is_no_score():
    assert math.isinf(perplexity.function(judged([0], [1], [-1e6]))["perplexity"])
