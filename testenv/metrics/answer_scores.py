"""Scores of replies by task: the choice of a letter, a number, a line of code, a simplified text, or one score per
task.

As in `ianvs.testenv.metrics.text`, missing replies score 0, and of several right replies the best match counts.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import fmean

from pydantic import Field

from ianvs.base.errors import ConfigError, InvalidValue, ValidationError, closest, one_line
from ianvs.config.spec import MetricSpec
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.exam.metrics.registry import resolve
from ianvs.testenv.data_types.dialogues import normalised
from ianvs.testenv.metrics.text import by_pair, in_parts, in_rows, is_answer, lcs_length, turns_of

TASK_SCORE = "task_score"
_TRACE = "Wang et al. 2023 (TRACE, arXiv 2310.06762), section 3"
_TOLD_LETTER = re.compile(r"(?i:answer(?:\s+is)?)\s*:?\s*\(?([A-Z]\b|[a-z](?=\)?\.?\s*$))")
_LETTER = re.compile(r"(?<![\w'])([A-Z])(?![\w'])")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LONGEST = 4  # words of a run
Runs = Counter[tuple[str, ...]]


def letter_in(text: str) -> str | None:
    """Return the letter that a reply chooses: that of "answer: B" or "the answer is B", else the first single
    capital.
    """
    if re.fullmatch(r"\s*\(?[a-z]\)?\s*\.?\s*", text):
        return text.strip(" ().\n\t").upper()
    match = _TOLD_LETTER.search(text) or _LETTER.search(text)
    return match[1].upper() if match else None


def number_in(text: str) -> Decimal | None:
    """Return the number after the last ####, else the last number; commas separate thousands."""
    numbers = _NUMBER.findall(text.rpartition("####")[2]) or _NUMBER.findall(text)
    return Decimal(numbers[-1].replace(",", "")) if numbers else None


@score_metric(
    "choice_letter",
    formula="share of replies whose letter is that of the reference: after `answer` or `answer is`, else the first "
    "capital by itself",
    source=f"accuracy of multiple choice; {_TRACE}",
)
def choice_letter(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies that choose the right letter; a reference without a letter has to be met as a whole."""
    return by_pair("choice_letter", record, lambda a, b: _same(letter_in(a), letter_in(b), a, b))


@score_metric(
    "number_match",
    formula="share of replies whose number (after ####, else the last one) equals the reference's",
    source="Cobbe et al. 2021 (GSM8K, arXiv 2110.14168), final answers",
)
def number_match(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies that come to the right number; a reference without one has to be met as a whole."""
    return by_pair("number_match", record, lambda a, b: _same(number_in(a), number_in(b), a, b))


def _same(answer: object, wanted: object, reply: str, reference: str) -> float:
    return float(normalised(reply) == normalised(reference) if wanted is None else answer == wanted)


@score_metric(
    "edit_similarity",
    formula="mean over replies of 2 L / (|reply| + |reference|), L = |LCS| in characters, blanks at the ends left out",
    source=f"Lu et al. 2021 (CodeXGLUE, arXiv 2102.04664), fuzz.ratio; {_TRACE}",
)
def edit_similarity(record: EvaluationRecord) -> Mapping[str, float]:
    """How few characters have to be deleted and inserted to make a reply its reference, 0 to 1; for code."""

    def ratio(text: str, other: str) -> float:
        return 2 * lcs_length(text, other) / (len(text) + len(other)) if text or other else 0.0

    return by_pair("edit_similarity", record, lambda a, b: ratio(a.strip(), b.strip()))


@score_metric(
    "SARI",
    aliases=("sari",),
    needs=("questions",),
    formula="mean over n = 1..4 of (F1_keep + P_delete + F1_add) / 3, of runs of n words and the last turn's question",
    source=f"Xu et al. 2016 (TACL 4:401), eq. 3 to 8; {_TRACE}",
)
def sari_score(record: EvaluationRecord) -> Mapping[str, float]:
    """How well a reply simplifies what the user said: what it keeps, deletes and adds as the references do, 0 to 1."""
    places, scores, questions = list[tuple[int, int]](), list[float](), list(record.column("questions"))
    for index, turn, references, reply in turns_of(record):
        places.append((index, turn))
        scores.append(sari(questions[index][turn] or "", reply, references) if is_answer(reply) else 0.0)
    return in_parts("SARI", in_rows(places, scores, len(questions)), record.columns.get("topics"))


def sari(source: str, reply: str, references: Sequence[str]) -> float:
    """Return SARI of one text, 0 to 1; an empty set counts as kept, deleted or added without error."""
    return fmean(_of_runs(*(_runs(text, n) for text in (source, reply, *references))) for n in range(1, _LONGEST + 1))


def _runs(text: str, n: int) -> Runs:
    tokens = _TOKEN.findall(normalised(text))
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _of_runs(source: Runs, reply: Runs, *right: Runs) -> float:
    """Return SARI from counts of n-grams; source and reply count once for each reference."""
    wanted: Runs = Counter()
    for counts in right:
        wanted.update(counts)
    have, answered = ({run: count * len(right) for run, count in counts.items()} for counts in (source, reply))
    old, new = Counter(have), Counter(answered)
    common, deleted = old & new, old - new
    keep, keepable = common & wanted, old & wanted
    precision = sum(keep[run] / common[run] for run in keep) / len(common) if common else 1.0
    recall = sum(keep.values()) / sum(keepable.values()) if keepable else 1.0
    good = deleted - wanted
    right_deleted = sum(good[run] / deleted[run] for run in good) / len(deleted) if deleted else 1.0
    added, addable = reply.keys() - source.keys(), wanted.keys() - source.keys()
    both = len(added & addable)
    add = _f1(both / len(added) if added else 1.0, both / len(addable) if addable else 1.0)
    return (_f1(precision, recall) + right_deleted + add) / 3


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


class _TaskOptions(Options):
    """by: the name of a score, by the name of a test set. otherwise: the score of all other test sets."""

    by: dict[str, str] = Field(min_length=1)
    otherwise: str | None = None


def _configured(spec: MetricSpec) -> Metric:
    """Return the metric with the options in a testenv. Raises ConfigError."""
    options = metric_options(_TaskOptions, TASK_SCORE, spec)
    scores: dict[str, Metric] = {}
    for name in dict.fromkeys([*options.by.values(), *([options.otherwise] if options.otherwise else [])]):
        scores[name] = metric = resolve(MetricSpec(name, place=spec.place))
        plain = metric.level == "score" and not (metric.asks or metric.mapping or metric.pooled or metric.accumulate)
        if not plain or metric.about is not None or not metric.higher_is_better:
            problem = f"metric '{TASK_SCORE}' takes scores of answers of which more is better, and '{name}' is none."
            raise ConfigError([ValidationError(problem, spec.place, code="unfit-metric")])

    def of_test(record: EvaluationRecord) -> Mapping[str, float]:
        for test in options.by:
            if test not in record.tests:
                problem = f"`by` names an unknown test set '{test}'.{closest(test, record.tests)}"
                raise InvalidValue(f"{problem} There are: {one_line(record.tests)}", "unfit-metric")
        name = options.by.get(record.test, options.otherwise)
        missing = [test for test in record.tests if test not in options.by]
        if name is None or (missing and options.otherwise is None):
            raise InvalidValue(
                f"`by` names no score for {one_line(missing)}; add it, or one for the rest as `otherwise`",
                "unfit-metric",
            )
        value = scores[name].function(record)  # type: ignore[misc]
        parts = {scores[name].name: value} if not isinstance(value, Mapping) else dict(value)
        return {TASK_SCORE: parts.pop(scores[name].name), **parts}

    formula = "; ".join(f"{score} on {', '.join(t for t in options.by if options.by[t] == score)}" for score in scores)
    return replace(task_score, function=of_test, formula=formula.removesuffix(" on "))


def _without_options(record: EvaluationRecord) -> float:
    """The score that the testenv names for the task of a test set, by its options `by` and `otherwise`."""
    raise InvalidValue(f"{TASK_SCORE} needs `by`, a score for each test set", "unfit-metric")


task_score = Metric(
    TASK_SCORE,
    level="score",
    summary=str(_without_options.__doc__),
    formula="of test set j the score s_j that `by` names for it",
    source=_TRACE,
    function=_without_options,
    configure=_configured,
)
