"""The learner's side of an exam that asks before it tells: a chunk is answered, then comes what is told by then."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ianvs.base.errors import PluginError
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms.paradigm import Module, Paradigm
from ianvs.exam.scenarios.exam import Rules
from ianvs.running.session.checked_answers import alike, checked_answers
from ianvs.running.session.generators import start_generators
from ianvs.running.session.modules import AuthorsModule, Modules
from ianvs.running.session.stream_keeper import AskedChunk, StreamKeeper, ToldChunk


class AskedSession(Protocol):
    """What is needed of ianvs.running.session.session.CaseSession."""

    seed: int
    kind: DataType
    caller: str
    paradigm: Paradigm
    modules: Modules

    @property
    def classes(self) -> int: ...

    @property
    def rules(self) -> Rules: ...

    def tell_chunk(self, number: int) -> None: ...

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> AuthorsModule: ...

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any: ...


NO_RESET = "it has no reset(): the reference that remembers nothing was built anew before each question"


def asked_chunks(session: AskedSession, stream: StreamKeeper) -> Iterator[ToldChunk]:
    """What is told, one chunk after the other; between them the session answers."""
    paradigm, first = session.paradigm, True
    while (chunk := stream.question()) is not None:
        session.tell_chunk(chunk.number)

        def answered(question: AskedChunk = chunk) -> Any:
            start_generators(session.seed, "answer", question.number)
            return checked_answers(
                session.kind,
                session.classes,
                question.x,
                question.name,
                question.label_shape,
                lambda data: answer_of(session)(data, {}, session),
                lambda: session.caller,
                f"{paradigm.name}.answer()",
                unseen=session.rules.unseen != "none",
            ).labels

        labels = _remembering_nothing(session, answered, chunk.number, first) if paradigm.stateless else answered()
        first = False
        if (reply := stream.answered(chunk.number, labels, session.caller)) is not None:
            yield reply


def answer_of(session: AskedSession) -> Callable[..., object]:
    """The paradigm's own method for a question of the stream, else the one for exams."""
    return getattr(session.paradigm, "answer", None) or session.paradigm.predict


def _remembering_nothing(session: AskedSession, answered: Callable[[], Any], chunk: int, compare: bool) -> Any:
    """Answers of the modules as just built. compare: with those of new ones, which stay."""
    resets, learns = [], False
    for module in session.modules:
        reset = getattr(module.plugin, "reset", None)
        if callable(reset):
            resets.append(module)
        # A predict() keeps nothing by contract; an answer() may keep what it likes.
        learns |= not callable(reset) and callable(getattr(module.plugin, "answer", None))
    if learns:
        session.modules.remarks.add(NO_RESET)
        return _rebuilt(session, answered)
    for module in resets:
        session.call(module, "reset")
    labels = answered()
    if resets and compare:
        fresh = _rebuilt(session, answered)
        if not alike(labels, fresh):
            name = type(session.module("basemodel").plugin).__name__
            odd = next(i for i, pair in enumerate(zip(labels, fresh, strict=True)) if not alike(*pair))
            raise PluginError(
                f"{name}.reset() does not bring back the beginning: {labels[odd]!r} instead of {fresh[odd]!r} to "
                f"question {odd + 1} of chunk {chunk}.",
                code="broken-contract",
            )
    return labels


def _rebuilt(session: AskedSession, answered: Callable[[], Any]) -> Any:
    for module in list(session.modules):
        session.module(module.kind, module.instance, fresh=True)
    return answered()
