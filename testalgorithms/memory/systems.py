"""Systems that repeat answers from feedback, each with its own memory; and an agent that needs a memory module."""

import json
from pathlib import Path
from zlib import crc32

from ianvs.testalgorithms.memory.memories import (
    History,
    KeyedNotes,
    MostFrequent,
    NearestByWords,
    Pair,
    SameWording,
    in_pairs,
    parted,
)


class AsNoted:
    """Answers what the first of its notes says, of those that a question offers to choose from.

    Without a note it chooses one of the answers that are offered, by the question's text; else it says nothing, "".
    """

    def answer(self, data, *, notes: list[list[Pair]]) -> list[str]:
        return [answer_with(str(question), noted) for question, noted in zip(data.x, notes, strict=True)]


def answer_with(question: str, notes: list[Pair], wrong=()) -> str:
    """Return the answer to a question from notes. wrong: answers known to be wrong."""
    choices = parted(question)[1]
    noted = next((answer for _, answer in notes if not choices or answer in choices), None)
    if noted is not None or not choices:
        return noted or ""
    left = [choice for choice in choices if choice not in wrong] or choices
    return left[crc32(question.encode()) % len(left)]


class Remembering:
    """A system that answers from its memory. Subclasses create the memory.

    eliminate: with feedback on correctness and multiple-choice questions, do not choose a wrong answer again until the
        same question was answered correctly.
    """

    memory: History

    def __init__(self, memory: History, eliminate: bool):
        self.memory, self.eliminate, self.wrong = memory, eliminate, {}

    def check_exam(self, *, kind, feedback):
        self.memory.check_exam(kind=kind, feedback=feedback)

    def answer(self, data) -> list[str]:
        notes = self.memory.read(data)
        return [
            answer_with(str(question), noted, self.wrong.get(self.memory.key(parted(str(question))[0]), ()))
            for question, noted in zip(data.x, notes, strict=True)
        ]

    def feedback(self, feedback):
        self.memory.write(feedback)
        for question, answer, right in in_pairs(feedback) if self.eliminate else ():
            key = self.memory.key(question)
            if right:
                self.wrong.pop(key, None)
            elif answer not in self.wrong.setdefault(key, []):
                self.wrong[key].append(answer)

    def reset(self):
        self.memory.reset()
        self.wrong = {}

    def save(self, path):
        Path(path).write_text(json.dumps({"kept": self.memory.notes, "wrong": self.wrong}), encoding="utf-8")

    def load(self, path):
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        self.memory.notes, self.wrong = stored["kept"], stored["wrong"]


class Majority(Remembering):
    """The answer that was right most often under the heading: what is reached without looking at the question."""

    def __init__(self, *, eliminate: bool = False):
        super().__init__(MostFrequent(), eliminate)


class ExactWording(Remembering):
    """Repeats the latest answer to a question with the same wording."""

    def __init__(self, *, eliminate: bool = False):
        super().__init__(SameWording(), eliminate)


class Retrieval(Remembering):
    """The answer to the question that is nearest by TF-IDF. of_equals: the "newest" or the "oldest" of them counts."""

    def __init__(self, *, of_equals: str = "newest", eliminate: bool = False):
        super().__init__(NearestByWords(of_equals=of_equals), eliminate)


class Notes(Remembering):
    """A note for each thing that is asked about, overwritten when it changes; made-up operations are found out."""

    def __init__(self, *, eliminate: bool = False):
        super().__init__(KeyedNotes(), eliminate)
