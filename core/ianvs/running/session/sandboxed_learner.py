"""A learner whose code runs in sandboxes: a new one for each round, and for each evaluation.

The process of the case has no plugin code. Only the saved model and the learner's folder persist between rounds, and a
sandbox sees only data that it is served: the training samples of its round, or the samples to predict.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.base.types import Predictions
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.parts import Column
from ianvs.exam.data_types import data_type
from ianvs.exam.paradigms import find_paradigm
from ianvs.processes.interpreters.wire import Message
from ianvs.processes.sandbox import Sandbox
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.source_snapshot import snapshot_contents
from ianvs.running.session.case_learner import NO_STATE, LearnerFacts, Query
from ianvs.running.session.feed import ServedSamples
from ianvs.running.session.measure import NOTHING_SPENT
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.sandbox_client import SandboxClient
from ianvs.running.session.sandbox_worker import WorkerInput
from ianvs.running.session.session import ExamInfo, FeedCall, ServedRounds, Source
from ianvs.running.session.validate_predictions import validated_predictions
from ianvs.store import StoredModule

_NOWHERE = Path("/nonexistent")
"""In place of the workspace: nothing of it exists in a sandbox."""


class SandboxedLearner:
    """Implements `CaseLearner`.

    Args:
        memory: Measures the process of the case and, below it, the sandboxes.
        stored_model: Returns the stored model of a round, which the next round loads.
        scratch: An existing folder for data that are served to sandboxes.

    Attributes:
        facts: Facts from the plan; measures and the device as reported by the last sandbox.
        built: Always zero: objects are created in each sandbox, whose start counts as cost of the exam.
        spent: Cost of the last `train`.
        saved: Cost of all calls of `save` so far.
        changed: Always "": each evaluation has an object of its own.
        adapts: Always False, for the same reason.
        uses_copies: Always True, for the same reason.
    """

    changed, adapts, uses_copies = "", False, True

    def __init__(
        self,
        request: CaseRequest,
        brief: ExamInfo,
        memory: MemoryMeter,
        stored_model: Callable[[int], Model],
        scratch: Path,
    ) -> None:
        self._type = data_type(brief.kind, request.testenv.dataset.data_type)
        files = snapshot_contents(request.workspace, request.own_code)
        self._start = WorkerInput(_without_exam(request), brief, files, _NOWHERE)
        self._sandbox = Sandbox(request.readable, masked=request.hidden, gpu=request.device != "cpu")
        self._brief, self._stored_model, self._scratch, self.memory = brief, stored_model, scratch, memory
        self._trainer: SandboxClient | None = None
        self._examiner: SandboxClient | None = None
        self._trained = False
        self._rejected: Model | None = None  # the model that replaces a round rejected by the gate
        self._saved_last: Sequence[StoredModule] = ()
        self._source: Source
        self.built = self.spent = self.saved = NOTHING_SPENT
        self.state = NO_STATE
        paradigm = find_paradigm(request.algorithm.paradigm)
        self._measures = paradigm.measures
        self.facts = LearnerFacts(
            steps=brief.rounds,
            reference=paradigm.reference,
            measures=paradigm.measures,
            measured=False,
            receives_feedback=paradigm.hears_feedback,
            stateless=paradigm.stateless,
            device="cpu",
            device_name="cpu",
        )

    def prepare(self, folder: Path) -> LearnerFacts:
        """Start the first sandbox. folder: for files of the learner."""
        self._start = replace(self._start, folder=folder)
        return self.facts

    def learn_from(self, source: Source) -> None:
        """Set the source of training data."""
        self._source = source

    # --- called by the loop -------------------------------------------------------------------------------------

    def train(self, step: int, valid: ServedSamples | None) -> None:
        self._trained = True
        trainer = self._trainer = self._open(self._stored_model(step - 1), trains=True)
        with trainer.spending() as spent:
            trainer.call("train", step=step, valid=None if valid is None else trainer.serve_samples(valid))
        self.spent, self.state = spent[0], trainer.state

    def save(self, folder: Path, *, of_round: bool = True) -> Model:
        """Save the learner and end the sandbox of its round. After `restore`, the restored model is saved."""
        if (rejected := self._rejected) is not None and rejected.folder is not None:
            self._rejected = None
            shutil.copytree(rejected.folder, folder, dirs_exist_ok=True, symlinks=True)
            return Model([_moved(module, rejected.folder, folder) for module in rejected.modules], folder)
        trainer = self._trainer or self._open(Model(), trains=True)
        self._trainer = None
        try:
            with trainer.spending() as spent:
                described = trainer.call("save", folder=trainer.model_folder).body.get("modules")
            self.saved += spent[0]
            trainer.call("measure")
            self.state = trainer.state
            trainer.end()  # so that it can't change its files while they are read
            self._saved_last = trainer.move_model(described, folder)
        finally:
            trainer.close()
        return Model(self._saved_last, folder)

    def restore(self, model: Model, *, taught: bool = True, fresh: bool = False) -> None:
        """Remember a model that replaces a rejected one. Otherwise each sandbox loads the stored model anyway."""
        if not taught:  # its files, with the training counts of the last save
            counts = {(module.kind, module.instance): module for module in self._saved_last}
            modules = [
                replace(counts.get((module.kind, module.instance), module), path=module.path)
                for module in model.modules
            ]
            self._rejected = Model(modules, model.folder)

    def untimed(self) -> AbstractContextManager[None]:
        """Do nothing: evaluations run in other sandboxes."""
        return nullcontext()

    def measure(self) -> None:
        """Do nothing: `measured` is called when the modules are saved."""

    def reset(self) -> None:
        """Do nothing: each sandbox loads a stored model."""

    def instantiate(self, modules: Sequence[StoredModule]) -> int:
        client = self._open(Model(), trains=False)
        try:
            count = client.call("instantiate", modules=list(modules)).body.get("count")
        finally:
            client.close()
        return count if isinstance(count, int) else 0

    def close(self) -> None:
        """End all sandboxes."""
        for client in filter(None, (self._trainer, self._examiner)):
            client.close()
        self._trainer = self._examiner = None

    # --- called by the examination ------------------------------------------------------------------------------

    @contextmanager
    def evaluating(self, model: Model, *, apart: bool = False) -> Iterator[None]:
        """Context manager: inside, `answers` come from a sandbox that holds `model` and can write nothing."""
        self._examiner = self._open(model, trains=False)
        try:
            yield
        finally:
            self._examiner.close()
            self._examiner = None

    def answers(self, query: Query, model: Model) -> Iterator[Predictions]:
        """Yield validated predictions, as many at a time as the data type allows.

        An evaluation task that shows labels, or fits a probe, has a sandbox of its own.
        """
        if query.evaluation_task is None:
            assert self._examiner is not None, "within `evaluating`"
            yield from self._checked(query, self._answers_of(self._examiner, query))
            return
        other = self._open(model, trains=False)
        try:
            yield from self._answers_of(other, query)
        finally:
            other.close()

    def _answers_of(self, client: SandboxClient, query: Query) -> list[Predictions]:
        sent = replace(
            query,
            x=client.serve_column(query.x),
            replies=None if query.replies is None else client.serve_column(query.replies),
            replies_by=None,
        )
        if query.adaptation is not None:
            sent = replace(sent, adaptation=(client.serve_samples(query.adaptation[0]), *query.adaptation[1:]))  # type: ignore[arg-type]
        client.call("answers", query=sent)
        self.state = client.state
        return client.pieces

    def _checked(self, query: Query, pieces: Sequence[Predictions]) -> Iterator[Predictions]:
        """Validate predictions again, since a sandbox may return anything."""
        end = 0
        for piece in pieces:
            begin, end = end, end + len(piece.labels)
            if end > len(query.x):
                break
            rows = np.arange(begin, end)
            yield validated_predictions(
                self._type,
                len(self._brief.classes),
                Column(query.x.gather(rows)),
                query.name,
                query.label_shape,
                partial(_as_predictions, piece),
                lambda: self.state.caller,
                "predict()",
                unseen=self._brief.rules.unseen != "none",
            )
        if end != len(query.x):
            raise PluginError(f"the sandbox returned {end} answers to {len(query.x)} samples.", code="invalid-result")

    # --- private ------------------------------------------------------------------------------------------------

    def _open(self, model: Model, *, trains: bool) -> SandboxClient:
        folder = Path(tempfile.mkdtemp(prefix="sandbox-", dir=self._scratch))
        client = SandboxClient(self._sandbox, self._start, model, folder, self._serve, trains=trains)
        self.state = client.state
        # Files of the plan have priority.
        measures = {**self._measures, **client.facts.measures, **self._measures}
        self.facts = replace(
            self.facts, measures=measures, device=client.facts.device, device_name=client.facts.device_name
        )
        return client

    def _serve(self, client: SandboxClient, name: str, body: Mapping[str, Any]) -> Message:
        """Serve a call of a sandbox. Only the sandbox of the round gets training data."""
        if name == "memory_begins":
            # Once, and in the phase "train" only for the training sandbox: the gate's evaluations do not count.
            if not client.memory_began and (client.trains or not self._trained):
                self.memory.begin()
            client.memory_began = True
            return Message({})
        if client is not self._trainer:
            raise PluginError(f"unknown request '{name}' of a sandbox", code="invalid-request")
        if name == "progress":
            numbers = {str(key): float(value) for key, value in dict(body["numbers"]).items()}
            rounds = None if body["rounds"] is None else int(body["rounds"])
            self._source.progress(int(body["round"]), float(body["fraction"]), rounds, numbers)
            return Message({})
        k, n = map(int, body["share"])
        skew = None if body["skew"] is None else float(body["skew"])
        request = FeedCall(int(body["first"]), int(body["last"]), (k, n), skew, bool(body["past"]))
        served = self._source.serve(request)
        if not isinstance(served, ServedRounds):
            raise ExamRuleError("A sandbox has whole rounds, and this exam is a stream.", code="broken-rule")
        views = tuple(client.serve_samples(view) for view in served.views)
        return Message({}, pickle.dumps(replace(served, views=views)))  # type: ignore[arg-type]


def _as_predictions(predictions: Predictions, data: object) -> Predictions:
    """Convert the result of a sandbox for `data`."""
    return predictions


def _without_exam(request: CaseRequest) -> CaseRequest:
    """Return a request for a worker, without the paths of the exam and the results."""
    dataset = DatasetSpec(data_type=request.testenv.dataset.data_type)
    testenv = replace(request.testenv, dataset=dataset, scenario=None, metrics=(), gate=None)
    request = replace(request, identity={}, provenance={}, scores=(), code=(), own_code=(), hidden=())
    return replace(request, workspace=_NOWHERE, testenv=testenv, secrets=frozenset())


def _moved(module: StoredModule, before: Path, folder: Path) -> StoredModule:
    return replace(module, path=None if module.path is None else folder / module.path.relative_to(before))
