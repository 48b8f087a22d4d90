"""Token-level scores of language models on the true replies (`teacher_forced: true`).

Every learned token counts once: all tokens of the assistant, with its end token, each predicted from the true tokens
before it. Unlike scores of generated text, they do not depend on one wrong token early in a reply. Tokens are those of
a model's own tokenizer, so models with different tokenizers can't be compared. Each score comes with parts by topic.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord

NAN = float("nan")


@score_metric(
    "reply_token_accuracy",
    asks=("teacher_forced",),
    formula="sum_n |{t: argmax_v p(v | tokens before t) = t}| / sum_n |learnt tokens of n|, over conversations n",
    source="token accuracy under teacher forcing (Williams & Zipser 1989, doi:10.1162/neco.1989.1.2.270)",
)
def reply_token_accuracy(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of the tokens of the true replies that the model finds likeliest, given the true ones before each."""
    return _in_parts("reply_token_accuracy", record, "right_tokens", lambda right, tokens: right / tokens)


@score_metric(
    "perplexity",
    asks=("teacher_forced",),
    formula="exp(- sum_n log p(reply tokens of n | the rest of n) / sum_n |learnt tokens of n|)",
    source="Jelinek et al. 1977 (doi:10.1121/1.2016299), natural logarithm",
    higher_is_better=False,
)
def perplexity(record: EvaluationRecord) -> Mapping[str, float]:
    """Exp of the mean negative log-likelihood of a token of the true replies, given the true ones before it."""
    return _in_parts(
        "perplexity", record, "log_likelihood", lambda log_likelihood, tokens: float(np.exp(-log_likelihood / tokens))
    )


def _in_parts(
    name: str, record: EvaluationRecord, column: str, score: Callable[[float, float], float]
) -> Mapping[str, float]:
    """Return score(sum of a column, sum of tokens) over all conversations, and over those of each topic.

    Nan without tokens.
    """
    sums, tokens = record.extras.get(column), record.extras.get("tokens")
    if sums is None or tokens is None:
        return {name: NAN}

    def score_of(rows: NDArray[np.bool_]) -> float:
        count = float(tokens[rows].sum())
        with np.errstate(over="ignore"):  # the perplexity exceeds the largest float: not finite, so there is no score
            return score(float(sums[rows].sum()), count) if count else NAN

    topics = record.columns.get("topics", np.full(len(tokens), ""))
    parts = {name: score_of(np.ones(len(tokens), dtype=bool))}
    return parts | {f"topic {topic}": score_of(topics == topic) for topic in dict.fromkeys(topics.tolist()) if topic}
