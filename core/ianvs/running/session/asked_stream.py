"""The learner's side of an exam that asks before it tells: a chunk is answered, then comes what is told by then."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from ianvs.base.errors import PluginError
from ianvs.exam.data.parts import ColumnData, Held
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms.paradigm import Module, Paradigm
from ianvs.exam.scenarios.exam import Rules
from ianvs.exam.scenarios.views import Told, TrainView
from ianvs.processes.sealing.peer import Caller
from ianvs.processes.sealing.shared_arrays import ArrayWriter, brought, unpacked
from ianvs.running.session.checked_answers import alike, checked_answers
from ianvs.running.session.modules import AuthorsModule, Modules, start_generators

View = TrainView | Told


class AskedSession(Protocol):
    """What is needed of ianvs.running.session.session.CaseSession."""

    seed: int
    kind: DataType
    who: str
    keeper: Caller
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


def asked_chunks(session: AskedSession) -> Iterator[tuple[View, Mapping[str, Any]]]:
    """(what is told, what the keeper says of it), one after the other; between them the session answers."""
    paradigm, first = session.paradigm, True
    while (question := session.keeper.call("question")).body["more"]:
        body = question.body
        session.tell_chunk(body["chunk"])
        x = Held(unpacked(brought(question), body["x"]))

        def answered(x: ColumnData = x, body: Mapping[str, Any] = body) -> Any:
            start_generators(session.seed, "answer", body["chunk"])
            return checked_answers(
                session.kind,
                session.classes,
                x,
                body["name"],
                tuple(body["label_shape"]),
                lambda data: answer_of(session)(data, {"generation": None}, session),
                lambda: session.who,
                f"{paradigm.name}.answer()",
                unseen=session.rules.unseen != "none",
            ).labels

        labels = _remembering_nothing(session, answered, body["chunk"], first) if paradigm.stateless else answered()
        first = False
        writer = ArrayWriter()
        said = writer.told({"chunk": body["chunk"], "labels": writer.values(labels), "who": session.who})
        reply = session.keeper.ask("answered", said)
        for file in said.files:
            os.close(file)
        if (told := reply.body["told"]) is not None:
            memory = brought(reply)
            columns = {name: Held(unpacked(memory, where)) for name, where in told["columns"].items()}
            yield _view(told, columns), told


def answer_of(session: AskedSession) -> Callable[..., object]:
    """The paradigm's own method for a question of the stream, else the one for exams."""
    return getattr(session.paradigm, "answer", None) or session.paradigm.predict


def _view(told: Mapping[str, Any], columns: Mapping[str, ColumnData]) -> View:
    if told["kind"] is None:
        return TrainView(columns, name=told["name"], passes=told["passes"], labelled=True)
    episodes = np.asarray(told["episodes"], dtype=np.int64)
    return Told(columns, kind=told["kind"], name=told["name"], episodes=episodes, delay=told["delay"])


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
        return _anew(session, answered)
    for module in resets:
        session.call(module, "reset")
    labels = answered()
    if resets and compare:
        fresh = _anew(session, answered)
        if not alike(labels, fresh):
            who = type(session.module("basemodel").plugin).__name__
            odd = next(i for i, pair in enumerate(zip(labels, fresh, strict=True)) if not alike(*pair))
            raise PluginError(
                f"{who}.reset() does not bring back the beginning: {labels[odd]!r} instead of {fresh[odd]!r} to "
                f"question {odd + 1} of chunk {chunk}.",
                code="broken-contract",
            )
    return labels


def _anew(session: AskedSession, answered: Callable[[], Any]) -> Any:
    for module in list(session.modules):
        session.module(module.kind, module.instance, fresh=True)
    return answered()
