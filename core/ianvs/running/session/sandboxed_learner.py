"""A learner whose author's code runs in sandboxes: a new one for each round, and for each examination.

The case holds no author's code. What is kept from round to round is what `save` wrote and the learner's own folder;
what a sandbox sees of the data is what it is served: its round's training samples, or the samples that are asked.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.parts import Column
from ianvs.exam.data_types import data_type
from ianvs.processes.interpreters.wire import Message
from ianvs.processes.sandbox import Sandbox
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.checked_answers import checked_answers
from ianvs.running.session.feed import Handout
from ianvs.running.session.learner import Asking, Ready, State
from ianvs.running.session.measure import NOTHING_SPENT
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.sandbox_client import SandboxClient, copied_modules
from ianvs.running.session.sandbox_worker import WorkerInput
from ianvs.running.session.session import Brief, FeedCall, Source, Whole
from ianvs.store import StoredModule

_NOWHERE = Path("/nonexistent")
"""In place of the workspace: nothing of it exists in a sandbox."""


class SandboxedLearner:
    """Implements `ianvs.running.loop.Learner`, and what an examination asks of `LocalLearner`.

    Args:
        memory: Measures the process of the case and, below it, the sandboxes.
        files: The author's source files as they were planned, by path.
        readable: Files and folders that the algorithm's hyperparameters name, such as weights.
        hidden: Files and folders that the exam consists of.
        scratch: An existing folder for what is served to the sandboxes.

    Attributes:
        built: Cost of creating the author's objects.
        spent: Cost of the last `train`.
        saved: Cost of all calls of `save` so far.
        changed: Always "": each examination has an object of its own.
        adapts: Always False, for the same reason.
        is_apart: Always True, for the same reason.
    """

    changed, adapts, is_apart = "", False, True

    def __init__(
        self,
        request: CaseRequest,
        brief: Brief,
        memory: MemoryMeter,
        files: Mapping[Path, bytes],
        readable: Sequence[Path],
        hidden: Sequence[Path],
        scratch: Path,
    ) -> None:
        self._type = data_type(brief.kind, request.testenv.dataset.data_type)
        pruned = replace(request, workspace=_NOWHERE, identity={}, provenance={}, secrets=frozenset(), code=())
        self._start = WorkerInput(pruned, brief, files, _NOWHERE)
        self._sandbox = Sandbox(tuple(readable), masked=tuple(hidden), gpu=request.device != "cpu")
        self._brief, self._scratch, self.memory = brief, scratch, memory
        self._model = Model()  # with which the next sandbox begins
        self._saved_last: Sequence[StoredModule] = ()
        self._trainer: SandboxClient | None = None
        self._examiner: SandboxClient | None = None
        self._source: Source
        self.built = self.spent = self.saved = NOTHING_SPENT
        self.ready: Ready
        self.state: State

    def prepare(self, folder: Path) -> Ready:
        """Build the learner in the sandbox in which its first round is trained. folder: its own."""
        self._start = replace(self._start, folder=folder)
        self.memory.begin()
        trainer = self._open_trainer()
        self.ready, self.built = trainer.ready, trainer.built
        return self.ready

    def learn_from(self, source: Source) -> None:
        """Where its training data come from."""
        self._source = source

    # --- called by the loop -------------------------------------------------------------------------------------

    def train(self, step: int, valid: Handout | None) -> None:
        trainer = self._open_trainer()
        trainer.taught = True
        with trainer.spending() as spent:
            trainer.call("train", step=step, valid=None if valid is None else trainer.serve_samples(valid))
        self.spent, self.state = spent[0], trainer.state

    def save(self, folder: Path) -> Model:
        """Save the learner, which ends the sandbox of its round. After `restore`, save what was restored."""
        if (trainer := self._trainer) is None:
            return Model(copied_modules(self._model, folder), folder)
        with trainer.spending() as spent:
            described = trainer.call("save", folder=trainer.model_folder).body.get("modules")
        self.saved += spent[0]
        written = Model(trainer.stored_modules(described), trainer.model_folder)
        trainer.call("measure")
        self.state = trainer.state
        self._saved_last = copied_modules(written, folder)
        before = self._model.folder
        next_model = Path(tempfile.mkdtemp(prefix="model-", dir=self._scratch))  # `folder` is renamed with its round
        self._model = Model(copied_modules(Model(self._saved_last, folder), next_model, link=True), next_model)
        if before is not None and before.parent == self._scratch:
            shutil.rmtree(before, ignore_errors=True)
        if trainer.taught:
            self._close_trainer()
        else:
            trainer.clear_model_folder()
        return Model(self._saved_last, folder)

    def restore(self, model: Model, *, taught: bool = True) -> None:
        """Begin the next sandbox with `model`."""
        self._close_trainer()
        modules = model.modules
        if not taught:  # its files, with the counts of what was saved last
            counts = {(one.kind, one.instance): one for one in self._saved_last}
            modules = [replace(counts.get((one.kind, one.instance), one), path=one.path) for one in modules]
        self._model = Model(modules, model.folder)

    def measure(self) -> None:
        """Nothing to do: the modules measure themselves when they are saved."""

    def reset(self) -> None:
        self._close_trainer()
        self._model = Model()

    def instantiate(self, modules: Sequence[StoredModule]) -> int:
        trainer = self._open_trainer()
        count = trainer.call("instantiate", modules=list(modules)).body.get("count")
        self.state = trainer.state
        return count if isinstance(count, int) else 0

    def close(self) -> None:
        """End all sandboxes."""
        self._close_trainer()
        if self._examiner is not None:
            self._examiner.close()
            self._examiner = None

    # --- called by the examination ------------------------------------------------------------------------------

    @contextmanager
    def examined(self, model: Model, *, apart: bool = False) -> Iterator[None]:
        """Context manager: inside, `answers` come from a sandbox that holds `model` and can write nothing."""
        self._examiner = self._open(model, trains=False)
        try:
            yield
        finally:
            self._examiner.close()
            self._examiner = None

    def answers(self, asked: Asking, model: Model) -> Iterator[Predictions]:
        """Checked answers, as many at a time as the data type allows.

        A question that shows labels, or that fits something, is asked in a sandbox of its own.
        """
        if asked.question is None:
            assert self._examiner is not None, "within `examined`"
            yield from self._checked(asked, self._asked(self._examiner, asked))
            return
        other = self._open(model, trains=False)
        try:
            yield from self._asked(other, asked)
        finally:
            other.close()

    def _asked(self, client: SandboxClient, asked: Asking) -> list[Predictions]:
        sent = replace(
            asked,
            x=client.serve_column(asked.x),
            replies=None if asked.replies is None else client.serve_column(asked.replies),
            replies_by=None,
        )
        if asked.adapt is not None:
            sent = replace(sent, adapt=(client.serve_samples(asked.adapt[0]), *asked.adapt[1:]))  # type: ignore[arg-type]
        client.call("answers", asked=sent)
        self.state = client.state
        return client.pieces

    def _checked(self, asked: Asking, pieces: Sequence[Predictions]) -> Iterator[Predictions]:
        """The same checks as in a process of the case: a sandbox may return anything."""
        end = 0
        for piece in pieces:
            begin, end = end, end + len(piece.labels)
            if end > len(asked.x):
                break
            rows = np.arange(begin, end)
            yield checked_answers(
                self._type,
                len(self._brief.classes),
                Column(asked.x.gather(rows)),
                asked.name,
                asked.label_shape,
                partial(_returned, piece),
                lambda: self.state.who,
                "predict()",
                unseen=self._brief.rules.unseen != "none",
            )
        if end != len(asked.x):
            raise PluginError(f"the sandbox returned {end} answers to {len(asked.x)} samples.", code="invalid-result")

    # --- within -------------------------------------------------------------------------------------------------

    def _open(self, model: Model, *, trains: bool) -> SandboxClient:
        folder = Path(tempfile.mkdtemp(prefix="sandbox-", dir=self._scratch))
        client = SandboxClient(self._sandbox, self._start, model, folder, self._serve, trains=trains)
        self.state = client.state
        return client

    def _open_trainer(self) -> SandboxClient:
        if self._trainer is None:
            self._trainer = self._open(self._model, trains=True)
        return self._trainer

    def _close_trainer(self) -> None:
        if self._trainer is not None:
            self._trainer.close()
            self._trainer = None

    def _serve(self, client: SandboxClient, name: str, body: Mapping[str, Any]) -> Message:
        """Answer a call of the sandbox in which a round is trained."""
        if name == "progress":
            numbers = {str(key): float(value) for key, value in dict(body["numbers"]).items()}
            rounds = None if body["rounds"] is None else int(body["rounds"])
            self._source.progress(int(body["round"]), float(body["fraction"]), rounds, numbers)
            return Message({})
        if name != "serve" or client is not self._trainer:
            raise PluginError(f"unknown request '{name}' of a sandbox", code="invalid-request")
        k, n = map(int, body["share"])
        skew = None if body["skew"] is None else float(body["skew"])
        request = FeedCall(int(body["first"]), int(body["last"]), (k, n), skew, bool(body["past"]))
        served = self._source.serve(request)
        if not isinstance(served, Whole):
            raise ExamRuleError("a stream can't be served to a sandbox.", code="broken-rule")
        views = tuple(client.serve_samples(view) for view in served.views)
        return Message({}, pickle.dumps(replace(served, views=views)))  # type: ignore[arg-type]


def _returned(predictions: Predictions, data: object) -> Predictions:
    """What a sandbox has returned for `data`."""
    return predictions
