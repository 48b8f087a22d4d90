"""The learner's side of a prequential exam: each chunk is predicted before labels are revealed."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ianvs.base.errors import PluginError
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms.paradigm import Module, Paradigm
from ianvs.exam.scenarios.exam import Rules
from ianvs.running.session.generators import start_generators
from ianvs.running.session.modules import AuthorsModule, Modules
from ianvs.running.session.prequential_server import PrequentialServer, RevealedChunk, UnlabelledChunk
from ianvs.running.session.validate_predictions import is_equal, validated_predictions


class PrequentialSession(Protocol):
    """The required part of ianvs.running.session.session.CaseSession."""

    seed: int
    kind: DataType
    caller: str
    paradigm: Paradigm
    modules: Modules

    @property
    def classes(self) -> int: ...

    @property
    def rules(self) -> Rules: ...

    def set_last_chunk(self, number: int) -> None: ...

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> AuthorsModule: ...

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any: ...


NO_RESET = "it has no reset(): the reference that remembers nothing was built anew before each question"


def revealed_chunks(session: PrequentialSession, stream: PrequentialServer) -> Iterator[RevealedChunk]:
    """Yield the revealed chunks one after the other; the session predicts between them."""
    paradigm, first = session.paradigm, True
    while (chunk := stream.next_chunk()) is not None:
        session.set_last_chunk(chunk.number)

        def answered(question: UnlabelledChunk = chunk) -> Any:
            start_generators(session.seed, "answer", question.number)
            return validated_predictions(
                session.kind,
                session.classes,
                question.x,
                question.name,
                question.label_shape,
                lambda data: prediction_method(session)(data, {}, session),
                lambda: session.caller,
                f"{paradigm.name}.answer()",
                unseen=session.rules.unseen != "none",
            ).labels

        labels = _stateless_predictions(session, answered, chunk.number, first) if paradigm.stateless else answered()
        first = False
        if (reply := stream.store_predictions(chunk.number, labels, session.caller)) is not None:
            yield reply


def prediction_method(session: PrequentialSession) -> Callable[..., object]:
    """Return the paradigm's method for predicting a chunk, else its method for exams."""
    return getattr(session.paradigm, "answer", None) or session.paradigm.predict


def _stateless_predictions(session: PrequentialSession, answered: Callable[[], Any], chunk: int, compare: bool) -> Any:
    """Predict with the modules in their initial state. compare: also with new modules, which replace them."""
    resets, learns = [], False
    for module in session.modules:
        reset = getattr(module.plugin, "reset", None)
        if callable(reset):
            resets.append(module)
        # By contract predict() keeps no state; answer() may.
        learns |= not callable(reset) and callable(getattr(module.plugin, "answer", None))
    if learns:
        session.modules.remarks.add(NO_RESET)
        return _with_new_modules(session, answered)
    for module in resets:
        session.call(module, "reset")
    labels = answered()
    if resets and compare:
        fresh = _with_new_modules(session, answered)
        if not is_equal(labels, fresh):
            name = type(session.module("basemodel").plugin).__name__
            odd = next(i for i, pair in enumerate(zip(labels, fresh, strict=True)) if not is_equal(*pair))
            raise PluginError(
                f"{name}.reset() does not bring back the beginning: {labels[odd]!r} instead of {fresh[odd]!r} to "
                f"question {odd + 1} of chunk {chunk}.",
                code="broken-contract",
            )
    return labels


def _with_new_modules(session: PrequentialSession, answered: Callable[[], Any]) -> Any:
    for module in list(session.modules):
        session.module(module.kind, module.instance, fresh=True)
    return answered()
