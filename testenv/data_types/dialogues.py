"""The data type of conversations. Replies are checked as returned by a plugin, and stored as bytes, not as objects."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import LONGEST_ANSWER, DataType
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.packed_replies import Replies, pack_replies


class Conversations(DataType):
    name: ClassVar[str] = "conversation"
    shows: ClassVar[str] = "replies"

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        turns = [len(conversation["user"]) for conversation in part.samples.x[part.positions]]
        return lambda answers, where: checked_replies(answers, turns, where)

    def shortened(self, answers: list[list[str | None]]) -> tuple[list[list[str | None]], int]:
        cut = sum(len(reply or "") > LONGEST_ANSWER for replies in answers for reply in replies)
        return [[reply and reply[:LONGEST_ANSWER] for reply in replies] for replies in answers] if cut else answers, cut

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        [(_, replies)] = answers
        return Predictions(pack_replies(replies))

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        topics = None if samples.topics is None else samples.topics[positions].tolist()
        further = () if samples.references is None else samples.references[positions].tolist()
        pairs = zip(samples.x[positions], samples.y[positions], strict=True)
        return pack_replies(
            (replies if conversation["user"] else [] for conversation, replies in pairs), topics, further
        )

    def shown(self, part: Part) -> NDArray[Any]:
        """Return the user's turns, for reports."""
        conversations = part.samples.x[part.positions]
        heard = conversations if part.transform is None else part.transform(conversations)
        return pack_replies([conversation["user"] for conversation in heard])

    def columns(self, shown: NDArray[Any] | None) -> Mapping[str, Any]:
        """Return the column questions: the user's turns."""
        return {} if shown is None else {"questions": Replies(shown)}

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        wanted = Replies(truth)
        topics = {} if wanted.topics is None else {"topics": wanted.topics}
        return replace(about, y_true=wanted, y_pred=Replies(predictions.labels), columns={**about.columns, **topics})

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """Return the share of each conversation's turns that are answered right, as in the metric reply_exact_match."""

        def score(wanted: Sequence[str], replies: Sequence[str | None]) -> float:
            both = [(right, other) for right, other in zip(wanted, replies, strict=False) if other is not None]
            return sum(normalised(right) == normalised(other) for right, other in both) / max(1, len(wanted))

        return np.array([score(*pair) for pair in zip(labels.tolist(), answers, strict=True)])

    def answer_names(self, answers: Any) -> list[Any] | None:
        return [tuple(normalised(reply or "") for reply in replies) for replies in answers]

    def in_words(self, label: Any, classes: tuple[str, ...]) -> str:
        return "\n".join(label)

    def misfit(self, metric: str, error: Exception) -> str:
        return (
            f"metric '{metric}' does not score replies to conversations. Those that do: semantic_similarity, "
            "lexical_similarity, reply_exact_match, ROUGE_L, BLEU, chrF, SQuAD_F1, reply_coverage, task_score, and "
            "those of tasks; or one of your own, in a file. "
            f"({error})"
        )


def normalised(text: str) -> str:
    """Return a text in Unicode form NFKC, case-folded, without outer blanks and with single blanks inside."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def checked_replies(answers: Any, turns: Sequence[int], where: str) -> list[list[str | None]]:
    """Return the replies to each conversation n, one for each of its `turns[n]` turns; None for a missing one.

    answers: the return value of predict(): for each conversation a list of replies, which may end early, or None for
    one that failed. where: the source of the answers, for errors. Raises PluginError for anything else.
    """
    wanted = f"return for each of the {len(turns)} conversations a list of replies, one for each turn of the user."
    if answers is None:
        raise PluginError(f"{where} returned nothing: {wanted}", code="invalid-result")
    if isinstance(answers, str | bytes | dict) or not hasattr(answers, "__len__"):
        raise PluginError(f"{where} returned {type(answers).__name__}: {wanted}", code="invalid-result")
    if len(answers) != len(turns):
        raise PluginError(f"{where} returned {len(answers)} answers: {wanted}", code="invalid-result")
    return [
        _replies(replies, count, f"{where}: conversation {n}", wanted)
        for n, (replies, count) in enumerate(zip(answers, turns, strict=True))
    ]


def _replies(answer: object, count: int, where: str, wanted: str) -> list[str | None]:
    if answer is None:
        return [None] * count
    if not isinstance(answer, list | tuple | np.ndarray):
        raise PluginError(f"{where} is answered by {type(answer).__name__}: {wanted}", code="invalid-result")
    if len(answer) > count:
        raise PluginError(f"{where} has {count} turns and got {len(answer)} replies: {wanted}", code="invalid-result")
    odd = next((reply for reply in answer if reply is not None and not isinstance(reply, str)), None)
    if odd is not None:
        raise PluginError(
            f"{where} holds {type(odd).__name__} as a reply; a reply is a text, or None if it failed.",
            code="invalid-result",
        )
    # Lone surrogates, to which a cut-off byte sequence may decode, are not valid text: "?" replaces them.
    replies = [None if reply is None else reply.encode("utf-8", "replace").decode() for reply in answer]
    return [*replies, *[None] * (count - len(answer))]
