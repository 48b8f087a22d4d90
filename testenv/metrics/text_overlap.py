"""Scores of texts known from other tools, with equal values: ROUGE, BLEU, chrF, F1 and exact match of SQuAD.

As in `ianvs.testenv.metrics.text`, missing replies score 0, and of several right replies the best match counts. BLEU
and chrF are computed over all replies together, with all right replies as references.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from ianvs.base.errors import IanvsError
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.metrics.text import by_pair, lcs_length, turns_of, words

_LATIN = re.compile(r"[a-z0-9]+")
_LIN = "Lin 2004, as computed by rouge_score"
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_RAJPURKAR = "Rajpurkar et al. 2016, evaluate-v1.1.py"


class RougeOptions(Options):
    """words: "latin": runs of a to z and digits as in rouge_score, which leaves out other letters.

    Or "unicode": runs of letters and digits of any script; in scripts without blanks, each sign is a word.
    """

    words: Literal["latin", "unicode"] = "latin"


def latin_words(text: str) -> list[str]:
    """Return the words of a text as in rouge_score: `foo_bar` is two words, and a letter with an accent ends a word."""
    return _LATIN.findall(text.lower())


def _f1(common: int, answered: int, wanted: int) -> float:
    return 2 * common / (answered + wanted) if common else 0.0


def _common_runs(reply: Sequence[str], wanted: Sequence[str], n: int) -> float:
    runs, other = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (reply, wanted))
    return _f1((runs & other).total(), runs.total(), other.total())


def _common_subsequence(reply: Sequence[str], wanted: Sequence[str]) -> float:
    return _f1(lcs_length(reply, wanted), len(reply), len(wanted))


def _rouge(
    name: str, aliases: tuple[str, ...], formula: str, summary: str, f1: Callable[[list[str], list[str]], float]
) -> Metric:
    def configured(options: RougeOptions) -> Metric:
        split = latin_words if options.words == "latin" else words

        def score(record: EvaluationRecord) -> Mapping[str, float]:
            return by_pair(name, record, lambda reply, right: f1(split(reply), split(right)))

        score.__doc__ = summary
        more = "" if options.words == "latin" else "; words are runs of letters of any script"
        return Metric(
            name, "score", summary, source=_LIN, formula=formula + more, aliases=aliases, function=score,
            configure=lambda spec: configured(metric_options(RougeOptions, name, spec)),
        )  # fmt: skip

    return configured(RougeOptions())


ROUGE_1 = _rouge(
    "ROUGE_1",
    ("rouge1", "ROUGE-1"),
    "mean over replies of F1 of the words that reply and reference share, each as often as both have it",
    "F1 of the words of reply and reference, 0 to 1; mean over replies.",
    lambda given, wanted: _common_runs(given, wanted, 1),
)
ROUGE_2 = _rouge(
    "ROUGE_2",
    ("rouge2", "ROUGE-2"),
    "the same of pairs of words that follow each other",
    "F1 of the pairs of neighbouring words of reply and reference, 0 to 1; mean over replies.",
    lambda given, wanted: _common_runs(given, wanted, 2),
)
ROUGE_L = _rouge(
    "ROUGE_L",
    ("rougeL", "ROUGE-L"),
    "mean over replies of 2 P R / (P + R), P = L / |reply|, R = L / |reference|, L = |LCS| in words",
    "F1 of the longest common subsequence of words of reply and reference, 0 to 1; mean over replies.",
    _common_subsequence,
)


# Over all replies together.


def _sacrebleu(name: str) -> str | None:
    if find_spec("sacrebleu") is not None:
        return None
    return f"{name} needs sacrebleu, which is not installed. Get it by: pip install 'ianvs-bench[language]'"


def _of_corpus(name: str, formula: str, summary: str, source: str, score: Callable[..., Any]) -> Metric:
    """Return a score of sacrebleu over all replies, by turn and by topic, divided by 100."""

    def score_of(replies: Sequence[tuple[Sequence[str], str]]) -> float:
        if not replies:
            return float("nan")
        most = max(len(references) for references, _ in replies)
        streams = [[(*right, *[None] * most)[i] for right, _ in replies] for i in range(most)]
        return float(score([reply for _, reply in replies], streams).score) / 100

    def parts(record: EvaluationRecord) -> Mapping[str, float]:
        if (why := _sacrebleu(name)) is not None:
            raise IanvsError(why, code="missing-package")
        topics = record.columns["topics"].tolist() if "topics" in record.columns else []
        turns = [
            (turn, topics[index] if topics else "", (references, reply or ""))
            for index, turn, references, reply in turns_of(record)
        ]
        scores = {name: score_of([pair for *_, pair in turns])}
        numbers = sorted({turn for turn, *_ in turns})
        if len(numbers) > 1:
            scores |= {f"turn_{n + 1}": score_of([pair for turn, _, pair in turns if turn == n]) for n in numbers}
        named = dict.fromkeys(topic for _, topic, _ in turns if topic)
        return scores | {
            f"topic {group}": score_of([pair for _, topic, pair in turns if topic == group]) for group in named
        }

    parts.__doc__ = summary
    return Metric(
        name, "score", summary, source=source, formula=formula, function=parts, missing=lambda: _sacrebleu(name)
    )


def _bleu(replies: list[str], references: Any) -> Any:
    from sacrebleu import corpus_bleu

    return corpus_bleu(replies, references)


def _chrf(replies: list[str], references: Any) -> Any:
    from sacrebleu import corpus_chrf

    return corpus_chrf(replies, references)


BLEU = _of_corpus(
    "BLEU",
    "exp(min(0, 1 - r / c)) exp(mean_n ln p_n), n = 1..4: p_n of runs of n tokens over all replies, lengths c, r",
    "Precision of runs of words over all replies together, with a penalty for short ones, 0 to 1.",
    "Papineni et al. 2002; Post 2018, sacrebleu with its defaults, divided by 100",
    _bleu,
)
CHRF = _of_corpus(
    "chrF",
    "5 P R / (4 P + R), P and R: means over n = 1..6 of precision and recall of runs of n letters over all replies",
    "F-score of runs of letters over all replies together, 0 to 1.",
    "Popović 2015; Post 2018, sacrebleu's chrF2, divided by 100",
    _chrf,
)


# Answers to questions.


def squad_text(text: str) -> str:
    """Return a text in lower case, without (ASCII) punctuation, articles and superfluous blanks."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def squad_f1(reply: str, reference: str) -> float:
    """Return F1 of the words of a reply and a reference."""
    answer, wanted = (squad_text(text).split() for text in (reply, reference))
    return _f1((Counter(answer) & Counter(wanted)).total(), len(answer), len(wanted))


@score_metric(
    "SQuAD_F1",
    aliases=("squad_f1",),
    formula="mean over replies of F1 of the words shared with the reference, without articles and punctuation",
    source=_RAJPURKAR,
)
def squad_f1_score(record: EvaluationRecord) -> Mapping[str, float]:
    """F1 of the words of reply and reference, without articles and punctuation, 0 to 1; mean over replies."""
    return by_pair("SQuAD_F1", record, squad_f1)


@score_metric(
    "SQuAD_EM",
    aliases=("squad_em",),
    formula="share of replies that equal a reference in small letters, without articles and punctuation",
    source=_RAJPURKAR,
)
def squad_em_score(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies that equal a reference but for case, articles, punctuation and blanks."""
    return by_pair("SQuAD_EM", record, lambda reply, right: float(squad_text(reply) == squad_text(right)))
