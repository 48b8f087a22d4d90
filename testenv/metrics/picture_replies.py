"""Scores of replies to questions about images, as in CoIN (Chen et al. 2024, arXiv 2403.08350).

The kind of a question is derived from its right reply: a letter, a box, yes or no, a number, a word, or a text. A
missing reply is wrong.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.metrics.text import Array, by_pair, count_of, in_parts, in_rows, turns_of

COIN = "Chen et al. 2024 (CoIN, arXiv 2403.08350)"
HUMANS = 10  # people who answered each question of VQAv2, TextVQA and VizWiz
RIGHT_IOU = 0.5

_NUMBER = r"[-+]?\d*\.?\d+"
_BOX = re.compile(rf"\[\s*{_NUMBER}(?:\s*,\s*{_NUMBER}){{3}}\s*\]")
_FORMS = (
    ("letter", re.compile(r"[A-Z]")),
    ("box", _BOX),
    ("yes or no", re.compile(r"yes|no", re.IGNORECASE)),
    ("number", re.compile(_NUMBER)),
    ("word", re.compile(r"[^\W\d_][\w'’-]*")),
)


def form_of(reply: str) -> str:
    """Return "letter", "box", "yes or no", "number", "word", or "text" for anything else, including longer replies."""
    return next((name for name, form in _FORMS if form.fullmatch(reply.strip())), "text")


def box_iou(first: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection over union of two boxes [x0, y0, x1, y1]; 0 if one has no area."""
    sides = [max(0.0, min(first[i + 2], other[i + 2]) - max(first[i], other[i])) for i in (0, 1)]
    both = sides[0] * sides[1]
    areas = [max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]) for box in (first, other)]
    union = sum(areas) - both
    return both / union if union > 0 and min(areas) > 0 else 0.0


def boxes_agree(reply: str, reference: str) -> bool:
    """Return whether the first box in a reply has an IoU of at least .5 with the right one."""
    answered, right = _BOX.search(reply), _BOX.search(reference)
    if answered is None or right is None:
        return False
    return box_iou(json.loads(_plain(answered[0])), json.loads(_plain(right[0]))) >= RIGHT_IOU


def vqa_accuracy_of(reply: str, humans: Sequence[str]) -> float:
    """Return the mean over all sets of humans but one of min(1, number of them with this reply / 3) (Antol et al.
    2015).
    """
    answer, counts = _same(reply), Counter(map(_same, humans))
    shares = [min(1.0, (counts[answer] - (_same(left_out) == answer)) / 3) for left_out in humans]
    return sum(shares) / len(shares) if shares else 0.0


def humans_in(reference: str) -> list[str] | None:
    """Return the replies of several humans that a reference lists as json; None if it is a single reply."""
    if not reference.startswith("["):
        return None
    try:
        replies = json.loads(reference)
    except ValueError:
        return None
    return (
        replies if isinstance(replies, list) and replies and all(isinstance(reply, str) for reply in replies) else None
    )


def right_share(reply: str, reference: str) -> float:
    """Return how right a reply is, 0 to 1: IoU for boxes, as in VQA for several humans' replies, else case-blind
    equality.
    """
    humans = humans_in(reference)
    if humans is not None:
        return vqa_accuracy_of(reply, humans)
    if form_of(reference) == "box":
        return float(boxes_agree(reply, reference))
    return float(_same(reply) == _same(reference))


@score_metric(
    "CoIN_ACC",
    formula="mean over replies: of boxes [IoU >= .5]; of m humans' replies mean_i min(1, |{j != i: said}| / 3); else "
    "[upper(reply) = upper(reference)]",
    source=f"{COIN}, section 3.3 and its evaluation code; VQA: Antol et al. 2015, leave one out",
)
def coin_accuracy(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of right replies to questions about images, each judged as its kind of question is in CoIN."""
    return by_pair("CoIN_ACC", record, right_share)


@score_metric(
    "vqa_accuracy",
    formula="mean over replies of mean_i min(1, |{j != i: human j said it}| / 3), over the m humans of a reference",
    source="Antol et al. 2015 (VQA, arXiv 1505.00468), leave one out as in the official evaluation",
)
def vqa_accuracy(record: EvaluationRecord) -> Mapping[str, float]:
    """Accuracy of VQAv2, TextVQA and VizWiz: a reply is right if three of the other humans said it.

    A reference is a json list of the humans' replies; one that is a single reply stands for ten equal ones.
    """
    return by_pair(
        "vqa_accuracy",
        record,
        lambda reply, reference: vqa_accuracy_of(reply, humans_in(reference) or [reference] * HUMANS),
    )


@score_metric(
    "grounding_accuracy",
    formula="share of replies whose first box [x0, y0, x1, y1] has IoU >= .5 with the reference's",
    source=f"Kazemzadeh et al. 2014 (RefCOCO); {COIN}, grounding",
)
def grounding_accuracy(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of boxes that are near enough to the right one; a reply without a box is wrong."""
    return by_pair("grounding_accuracy", record, boxes_agree)


@score_metric(
    "format_follow",
    formula="share of replies of the form of their reference: letter, box, yes or no, number, word; else a text",
    source=f"{COIN}, section 4: intention alignment, as a share of well-formed replies",
)
def format_follow(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies of the form that was asked for, right or wrong: what of forgetting is only the form."""
    return by_pair("format_follow", record, follows)


@score_metric(
    "perception",
    formula="mean of what CoIN_ACC takes the mean of, over the replies that count in format_follow",
    source=f"{COIN}, section 4: what is right once the form is",
)
def perception(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of right replies among those of the form that was asked for; undefined where there is none."""
    return in_parts("perception", record.by_sample("perception", _perceived), record.columns.get("topics"))


def _perceived(record: EvaluationRecord) -> Array:
    """Return scores (N, turns), nan where a reply does not have the required form."""
    places, values = list[tuple[int, int]](), list[float]()
    for conversation, turn, references, reply in turns_of(record):
        shares = [right_share(reply or "", right) for right in references if follows(reply or "", right)]
        places.append((conversation, turn))
        values.append(max(shares, default=np.nan))
    return in_rows(places, values, count_of(record))


def follows(reply: str, reference: str) -> bool:
    """Return whether a reply has the form of the right one, or of any of several humans' replies."""
    wanted = {form_of(human) for human in humans_in(reference) or [reference]}
    form = form_of(reply)
    return bool(reply.strip()) and (form in wanted or ("text" in wanted and form == "word"))


def _same(text: str) -> str:
    return " ".join(text.upper().split())


def _plain(box: str) -> str:
    """Return the box with a digit before each point, as json requires, and without plus signs."""
    return re.sub(r"(?<!\d)\.", "0.", box.replace("+", ""))
