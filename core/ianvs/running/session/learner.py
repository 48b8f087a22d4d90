"""The learner's side of a case: does what the keeper orders, with the author's code.

It runs in a process of its own, which holds nothing of the exam, or, with `engine: inline`, in that of the keeper.
Copies of that process give the answers (ianvs.running.session.processes).
"""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError, PluginError, ReplyServerError, author_place
from ianvs.base.secrets import hide_secrets
from ianvs.exam.data.parts import ColumnData, Picked
from ianvs.exam.data_types import data_type
from ianvs.exam.paradigms import Paradigm, Predictions, find_paradigm
from ianvs.exam.questions import questions_of
from ianvs.exam.scenarios.views import TestView, TrainView
from ianvs.processes.sealing.peer import Caller, Gone, Message, RemoteError
from ianvs.processes.sealing.shared_arrays import ArrayWriter
from ianvs.running.inspector.plugin_check import NO_CUDA
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.asked_replies import AskedReplies
from ianvs.running.session.checked_answers import checked_answers
from ianvs.running.session.learner_messages import Answer, Ready, State
from ianvs.running.session.modules import Modules, checked_measures, declared_measures, start_generators
from ianvs.running.session.session import Brief, CaseSession
from ianvs.store import StoredModule

_CLOSED = (
    "A learner can't open the workspace and the exam's data. While it predicts it writes nothing, starts no processes "
    "and opens no connections. It may write only below the `folder` of its context, and temporary files; "
    "`sealing: open` in the job lifts that (docs/trust.md)."
)

_Order = Callable[[Mapping[str, Any], tuple[int, ...]], Message | None]


class LearnerHost:
    """Handles the keeper's orders (ianvs.processes.sealing.peer.Handler).

    fork: lets a copy of this process serve at a socket, with temporary files in a folder. closed: whether folders are
    closed to this process.
    """

    def __init__(
        self,
        request: CaseRequest,
        brief: Brief,
        fork: Callable[[int, str], int] | None = None,
        *,
        closed: bool = False,
    ) -> None:
        self._request, self._brief, self._fork, self._closed = request, brief, fork, closed
        self._kind = data_type(brief.kind, request.testenv.dataset.data_type)
        self._questions = {question.name: question for question in questions_of(request.testenv)}
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._opened: CaseSession | None = None
        self._keeper: Caller
        self._saved: list[StoredModule] | None = None
        self._answers: Iterator[tuple[Predictions, bool]]
        self._orders: Mapping[str, _Order] = {
            "ready": self._ready,
            "train": self._train,
            "measure": self._measure,
            "meet": self._meet,
            "save": self._save,
            "restore": self._restore,
            "answer": self._answer,
            "ask": self._ask,
            "more": self._more,
        }

    def connect(self, keeper: Caller) -> None:
        """keeper: whom the session asks for data."""
        self._keeper = keeper
        if self._opened is not None:
            self._opened.keeper = keeper

    def __call__(self, name: str, told: Message) -> Message | None:
        if name not in self._orders:
            raise PluginError(f"there is no order '{name}'", code="invalid-request")
        try:
            return self._orders[name](told.body, told.files)
        except (Gone, IanvsError, RemoteError):
            raise
        except SystemExit as error:  # Python's own report of it is lost where a fork ends
            said = f"sys.exit({'' if error.code is None else repr(error.code)}) ends the process"
            raise RemoteError("SystemExit", f"{author_place(error)}{said}") from error
        except Exception as error:
            refused = self._closed and _is_refused(error)
            if refused or not told.body.get("quiet"):
                sys.stderr.write(hide_secrets(traceback.format_exc(), known=self._request.secrets))
            if refused:
                raise PluginError(
                    f"{author_place(error)}{type(error).__name__}: {error}. {_CLOSED}", code="broken-rule"
                ) from error
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)  # told by how it begins
            if self._closed and not full and (place := author_place(error)):
                raise RemoteError(type(error).__name__, f"{place}{error}") from error
            raise

    @property
    def _session(self) -> CaseSession:
        if self._opened is None:
            raise PluginError("there is no session yet", code="invalid-request")
        return self._opened

    # --- orders -------------------------------------------------------------------------------------------------

    def _ready(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        request = self._request
        device = _prepare_process(request)
        paradigm = find_paradigm(request.algorithm.paradigm)
        options = paradigm.options.model_validate(dict(request.algorithm.paradigm.options))
        folder = Path(body["folder"])
        session = CaseSession(request, self._brief, self._kind, paradigm(), options, device, folder)
        self._opened = session
        session.keeper = self._keeper
        steps = tuple(session.paradigm.steps(session))
        hears, stateless = getattr(paradigm, "hears_feedback", False), getattr(paradigm, "stateless", False)
        if paradigm.predict is Paradigm.predict or hears or stateless:
            session.module("basemodel")  # here, since copies that answer would each make it anew
        if (hears or stateless) and session.has("memory"):
            session.module("memory")
        own = declared_measures(session.modules, paradigm.measures)
        ready = Ready(
            steps=steps,
            reference=paradigm.reference,
            measures={**paradigm.measures, **own},
            measured=bool(own),
            hears=hears,
            stateless=stateless,
            device="cuda" if device == "cuda" else "cpu",
            card=str(sys.modules["torch"].cuda.get_device_name()) if device == "cuda" else "cpu",
        )
        return Message(ready.model_dump())

    def _train(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        session = self._session
        session.begin(body["step"])
        session.valid = session.view(body["valid"], session.columns(files)) if body["valid"] else None
        session.paradigm.train(body["step"], session)
        measure.synchronise()
        return self._state()

    def _measure(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        """Let the modules measure themselves, as they are now."""
        session = self._session
        start_generators(session.seed, "measured")
        for module in session.modules:
            if isinstance(getattr(module.plugin, "measures", None), Mapping):
                said = session.call(module, "measured")
                session.step.measures |= checked_measures(module, said)
        measure.synchronise()
        return self._state()

    def _meet(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        """Make modules that the keeper knows of, so that they can be asked who they are."""
        for kind, instance in body["modules"]:
            self._session.module(kind, instance)
        return self._state()

    def _save(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        folder = Path(body["folder"])
        os.umask(self._umask)  # the author's code may have set another, and what it saves has to be read
        if self._session.valid is not None:
            self._session.valid.close()
            self._session.valid = None
        return Message({"modules": [one.told(folder) for one in self._session.modules.save(folder)]})

    def _restore(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        stored = tuple(StoredModule.of(one, Path(body["folder"])) for one in body["modules"])
        self._session.modules.restore(stored, taught=body["taught"], anew=body["anew"])
        return self._state()

    def _answer(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        """Let a copy of this process serve at the other end of a socket, with a folder for temporary files."""
        if self._fork is None or self._fork(files[0], body["folder"]) != 0:
            raise PluginError("this learner can't be copied", code="broken-contract")
        return Message({})

    def _ask(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        """A question of the keeper, and the first piece of the answers."""
        self._answers = self._answered(body, files)
        return self._more(body, ())

    def _more(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Message:
        """The next piece of the answers to what was asked last."""
        said, last = next(self._answers)
        if last:
            next(self._answers, None)  # an adapted copy is left
        measure.synchronise()
        writer, labels = ArrayWriter(), said.labels
        told = writer.values(labels)
        extras = {name: writer.array(values) for name, values in said.extras.items()}
        return Message(Answer(labels=told, extras=extras, who=self._session.who).model_dump(), (writer.file,))

    # --- answers ------------------------------------------------------------------------------------------------

    def _answered(self, body: Mapping[str, Any], files: tuple[int, ...]) -> Iterator[tuple[Predictions, bool]]:
        """(a piece of the answers, whether it is the last)"""
        came, context = self._session.columns(files), self._context(body)
        if body["question"] is None:
            asks = AskedReplies(self._keeper, self._request.generation.engine)
            context["generation"] = None if body["tried"] else asks  # then it replies by itself
        x = came.of(body["x"])
        if body["first"]:
            self._saved = None
        if body["tried"]:
            start_generators(self._session.seed, "tried")
        if body["question"] is not None:
            y = None if body["y"] is None else came.of(body["y"])
            yield Predictions(self._beside_labels(x, y, body, context)), True
        elif (adapt := body["adapt"]) is None:
            yield from self._pieces(body, x, context)
        else:
            view = self._session.view(adapt["view"], came)
            with self._session.as_copy(self._copied(adapt["task"], body["taught"])):
                for data in self._session.adaptation(view, context, tuple(adapt["classes"])):
                    self._session.paradigm.adapt(data, self._session)
                yield from self._pieces(body, x, context)

    def _pieces(
        self, body: Mapping[str, Any], x: ColumnData, context: Mapping[str, Any]
    ) -> Iterator[tuple[Predictions, bool]]:
        count = max(1, len(x))
        size = self._kind.batch_limit or count
        for start in range(0, count, size):
            piece = x if size >= count else Picked(x, np.arange(start, min(start + size, count)))
            yield self._piece(body, piece, context), start + size >= count

    def _piece(self, body: Mapping[str, Any], x: ColumnData, context: Mapping[str, Any]) -> Predictions:
        """Checked answers to samples that are asked at once."""
        session = self._session
        checked = checked_answers(
            self._kind,
            session.classes,
            x,
            body["name"],
            tuple(body["label_shape"]),
            lambda data: session.paradigm.predict(data, context, session),
            lambda: session.who,
            f"{session.paradigm.name}.predict()",
            unseen=self._brief.rules.unseen != "none",
        )
        writes = context["generation"]
        if writes is not None and writes.engine == "server" and not writes.asked:
            raise ReplyServerError(
                f"{session.who} does not have its replies written by `generation`. Take it out of the job.",
                code="unfit-module",
            )
        return checked

    def _beside_labels(
        self, x: ColumnData, y: ColumnData | None, body: Mapping[str, Any], context: Mapping[str, Any]
    ) -> NDArray[Any]:
        """Checked, what a method of the base model says of all samples; y: their replies, where it is shown them."""
        question, learner = self._questions[body["question"]], self._session.module("basemodel")
        if why := question.lacks(learner.plugin):
            raise PluginError(f"`{question.name}: true` asks for {question.wanted}, and {why}.", code="broken-contract")
        data: TestView | TrainView = TestView(x, name=body["name"])
        if y is not None:
            data = TrainView({"x": x, "y": y}, name=body["name"])
        try:
            found = self._session.call(learner, question.method, data, **context)
        finally:
            data.close()
        return question.checked(found, len(x), len(self._brief.classes), f"{learner.name}.{question.method}()")

    def _unscored(self) -> str:
        """What it is not asked, which a learner may lack, and why."""
        paradigm = type(self._session.paradigm)
        base = paradigm.predict is Paradigm.predict
        for question in self._questions.values():
            if question.may_lack:
                why = "" if base else f"{paradigm.name} does not answer by its base model alone, whose they would be"
                if why := why or question.lacks(self._session.module("basemodel").plugin):
                    return f"no {question.may_lack}: {why}"
        return ""

    def _context(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is told with a question: the task where the rules show it, the round of its held-out part."""
        told = dict(body["context"])
        if "task_classes" in told:
            told["task_classes"] = tuple(told["task_classes"])
        if (round_ := body["round"]) is None:
            return told
        return told | self._session.round_context(round_["number"], tuple(round_["seen"]), tuple(round_["new"]))

    def _copied(self, name: str, taught: bool) -> Modules:
        """Copies of the modules, for one test set to adapt; the modules themselves go on as they are."""
        session = self._session
        if self._saved is None and taught:
            self._saved = session.modules.save(Path(tempfile.mkdtemp()))
        start_generators(session.seed, f"adapt to {name}")
        return session.modules.copied(self._saved)

    def _state(self) -> Message:
        session = self._session
        plugins = [module.plugin for module in session.modules]
        samples, size = measure.memory_size(plugins)
        state = State(
            passes=session.step.passes,
            measures=session.step.measures,
            basemodel=session.modules.basemodel,
            remark=session.modules.remark,
            memory_samples=samples,
            memory_bytes=size,
            peak_gpu_bytes=measure.peak_gpu_bytes(),
            adapts=session.modules.adapt,
            past=session.modules.sees_past_rounds,
            modules=len(plugins),
            who=session.who,
            unscored=self._unscored(),
        )
        return Message(state.model_dump())


def _is_refused(error: BaseException | None) -> bool:
    """Whether it comes from a file that could not be opened, as far as libraries that wrap such errors tell."""
    while error is not None:
        if isinstance(error, PermissionError) or os.strerror(errno.EACCES) in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _prepare_process(request: CaseRequest) -> str:
    """Fix what changes the last bits of a result; the device that the case runs on."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    torch.set_num_threads(request.threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if request.device == "cpu":
        return "cpu"
    available = torch.cuda.is_available()
    if request.device == "cuda" and not available:
        raise IanvsError(
            NO_CUDA, code="missing-device"
        )  # the check before a run says the same; a node of a cluster may be unlike others
    if available:
        torch.cuda.init()  # so that its generators are there to be seeded
    return "cuda" if available else "cpu"
