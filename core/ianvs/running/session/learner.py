"""A learner in the process of the case: the plugin's objects, their training and their evaluation.

Evaluations that must not affect the learner use a second object, loaded from what `save` wrote.
"""

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError, PluginError, ReplyServerError
from ianvs.exam.data.parts import Column, as_served
from ianvs.exam.data_types import data_type
from ianvs.exam.paradigms import Paradigm, Predictions, find_paradigm
from ianvs.exam.questions import evaluation_tasks_of
from ianvs.exam.scenarios.views import TestView, TrainView
from ianvs.processes.engines.forked import keep_freed_memory
from ianvs.running.inspector.plugin_check import NO_CUDA
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.case_learner import LearnerFacts, LearnerState, Query
from ianvs.running.session.feed import ServedSamples
from ianvs.running.session.generators import generator_states, restore_generators, start_generators
from ianvs.running.session.measure import NOTHING_SPENT, spending
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.modules import Modules, checked_measures, declared_measures
from ianvs.running.session.network_size import NetworkSize, network_size
from ianvs.running.session.session import CaseSession, ExamInfo, Source
from ianvs.running.session.state_digest import changed_between, digest_budget, state_digest
from ianvs.running.session.validate_predictions import validated_predictions
from ianvs.store import StoredModule


class LocalLearner:
    """The plugin's objects, in this process.

    spent: cost of training since the last `train` call. changed: an attribute that an evaluation has changed since this
    was last cleared, "" for none. built, saved: cost of creating the objects, and of all `save` calls. memory: its
    measurement begins after importing the classes and before creating objects.
    """

    def __init__(self, request: CaseRequest, brief: ExamInfo, memory: MemoryMeter) -> None:
        self._request, self._brief, self.memory = request, brief, memory
        self._kind = data_type(brief.kind, request.testenv.dataset.data_type)
        self._evaluation_tasks = {task.name: task for task in evaluation_tasks_of(request.testenv)}
        self.spent = self.built = self.saved = self._untimed = NOTHING_SPENT
        self.changed = ""
        self._size = NetworkSize()
        self._last: Query | None = None  # last query, whose first sample may be predicted again
        self.session: CaseSession
        self.state: LearnerState

    def prepare(self, folder: Path) -> LearnerFacts:
        """Create the objects. folder: for files of the learner."""
        request = self._request
        device = _prepare_process(request)
        paradigm = find_paradigm(request.algorithm.paradigm)
        options = paradigm.options.model_validate(dict(request.algorithm.paradigm.options))
        session = CaseSession(request, self._brief, self._kind, paradigm(), options, device, folder)
        self.session = session
        steps = tuple(session.paradigm.steps(session))
        receives_feedback, stateless = getattr(paradigm, "hears_feedback", False), getattr(paradigm, "stateless", False)
        with spending() as spent:
            for module in request.algorithm.modules:
                session.modules.import_class(module.type)
            self.memory.begin()
            if paradigm.predict is Paradigm.predict or receives_feedback or stateless:
                session.module("basemodel")
            if (receives_feedback or stateless) and session.has("memory"):
                session.module("memory")
        self.built = spent[0]
        declared = declared_measures(session.modules, paradigm.measures)
        self.facts = LearnerFacts(
            steps=steps,
            reference=paradigm.reference,
            measures={**paradigm.measures, **declared},
            measured=bool(declared),
            receives_feedback=receives_feedback,
            stateless=stateless,
            device="cuda" if device == "cuda" else "cpu",
            device_name=str(sys.modules["torch"].cuda.get_device_name()) if device == "cuda" else "cpu",
        )
        self._look()
        return self.facts

    def learn_from(self, source: Source) -> None:
        """Set the source of training data."""
        self.session.source = source

    def train(self, step: int, valid: ServedSamples | None) -> None:
        """Train round `step`. valid: the held-out part of the round."""
        session = self.session
        session.begin(step)
        self._untimed = NOTHING_SPENT
        with spending() as spent:
            session.valid = None if valid is None else session.view(valid)
            session.paradigm.train(step, session)
            self._look()
        self.spent = spent[0] - self._untimed

    def measure(self) -> None:
        """Call `measured` of the modules; the results are in `state`."""
        session = self.session
        if session.step.index == len(self.facts.steps):
            self._size = self._network_size()
            session.modules.remarks |= {self._size.note} - {""}
        if self.facts.measured:
            start_generators(session.seed, "measured")
            for module in session.modules:
                if isinstance(getattr(module.plugin, "measures", None), Mapping):
                    values = session.call(module, "measured")
                    session.step.measures |= checked_measures(module, values)
        self._look()

    def _network_size(self) -> NetworkSize:
        step, last, plugins = self.session.step, self._last, [module.plugin for module in self.session.modules]
        if last is None or self._kind.shows == "replies" or self.uses_copies:  # slow, or it would learn from the sample
            return network_size(plugins, None)
        before = generator_states(), dict(step.measures), step.passes
        single = replace(last, x=last.x.take(np.arange(1)), is_trial=True)
        size = network_size(plugins, lambda: list(self.answers(single, Model())))
        states, step.measures, step.passes = before
        restore_generators(states)
        return size

    def instantiate(self, modules: Sequence[StoredModule]) -> int:
        """Create these modules in their initial state. Returns the number of modules."""
        for module in modules:
            self.session.module(module.kind, module.instance)
        self._look()
        return self.state.modules

    def reset(self) -> None:
        """Replace all modules by new, untrained ones."""
        session = self.session
        session.modules = session.modules.without_instances()
        if session.has("basemodel"):
            session.module("basemodel")

    def save(self, folder: Path, *, of_round: bool = True) -> Model:
        """Save the present state in `folder`. of_round: the round is complete. Raises PluginError above the job's
        limit."""
        session = self.session
        if of_round and session.valid is not None:
            session.valid.close()
            session.valid = None
        with spending() as spent:
            modules = session.modules.save(folder)
        self.saved += spent[0]
        measure.saved_bytes(folder, self._request.saved_mb)
        return Model(modules, folder)

    def restore(self, model: Model, *, taught: bool = True, fresh: bool = False) -> None:
        """Restore a saved model. fresh: in new objects of the plugin's classes."""
        self.session.modules.restore(tuple(model.modules), taught=taught, fresh=fresh)
        self._look()

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """Context manager whose time is not counted as training."""
        with spending() as spent:
            yield
        self._untimed += spent[0]

    @property
    def uses_copies(self) -> bool:
        """Whether evaluations use a second object, because predict() or answer() may change the learner.

        A learner with `answer` that saves nothing is evaluated itself, since no copy can be loaded.
        """
        plugins = [module.plugin for module in self.session.modules]
        answers = any(callable(getattr(plugin, "answer", None)) for plugin in plugins)
        saves = all(callable(getattr(plugin, "save", None)) for plugin in plugins)
        adapting = [module.adapts for module in self.session.modules]  # all are checked: each may raise PluginError
        return any(adapting) or (answers and saves)

    @property
    def adapts(self) -> bool:
        """Whether one of its modules learns during tests."""
        return any(module.adapts for module in self.session.modules)

    @contextmanager
    def evaluating(self, model: Model, *, apart: bool = False) -> Iterator[None]:
        """Context manager for an evaluation. Global random generators and measures are restored afterwards.

        model: the saved learner. apart: always use a second object.
        """
        session, before = self.session, generator_states()
        measures, passes = dict(session.step.measures), session.step.passes
        with ExitStack() as stack:
            stack.callback(restore_generators, before)
            if apart or self.uses_copies:
                stack.enter_context(session.replaced(self._load_copy(model)))
                restore_generators(before)
                yield
            elif not session.step.index:  # untrained: what its first predictions make is no matter
                yield
            else:
                most, plugins = digest_budget(self.spent.seconds), [module.plugin for module in session.modules]
                was = state_digest(plugins, most)
                yield
                self.changed = self.changed or changed_between(was, state_digest(plugins, most))
        session.step.measures, session.step.passes = measures, passes

    def answers(self, query: Query, model: Model) -> Iterator[Predictions]:
        """Yield validated predictions, as many at a time as the data type allows. model: for a copy to adapt."""
        session, context = self.session, dict(query.context)
        if query.round is not None:
            context |= session.round_context(*query.round)
        if query.evaluation_task is None:
            context["generation"] = query.replies_by
            self._last = query if query.adaptation is None else None
        x = as_served(query.x, self._request.threads)
        if query.is_trial:
            start_generators(session.seed, "tried")
        if query.evaluation_task is not None:
            yield Predictions(self._task_result(query, x, context))
        elif query.adaptation is None:
            yield from self._labels(query, x, context)
        else:
            handout, name, classes = query.adaptation
            start_generators(session.seed, f"adapt to {name}")
            stored = list(model.modules) if query.taught else None
            with session.replaced(session.modules.copied(stored), pretraining=False):
                for data in session.adaptation(session.view(handout), context, classes):
                    session.paradigm.adapt(data, session)
                yield from self._labels(query, x, context)

    def _labels(self, query: Query, x: Column, context: Mapping[str, Any]) -> Iterator[Predictions]:
        session, by, count = self.session, query.replies_by, max(1, len(x))
        size = self._kind.batch_limit or count
        for start in range(0, count, size):
            predictions = validated_predictions(
                self._kind,
                session.classes,
                x if size >= count else x.take(np.arange(start, min(start + size, count))),
                query.name,
                query.label_shape,
                lambda data: session.paradigm.predict(data, context, session),
                lambda: session.caller,
                f"{session.paradigm.name}.predict()",
                unseen=self._brief.rules.unseen != "none",
            )
            measure.synchronise()
            if by is not None and by.engine == "server" and not by.called:
                raise ReplyServerError(
                    f"{session.caller} does not have its replies written by `generation`. Take it out of the job.",
                    code="unfit-module",
                )
            # A learner may change its result object later.
            yield replace(predictions, labels=copy.deepcopy(predictions.labels))

    def _task_result(self, query: Query, x: Column, context: Mapping[str, Any]) -> NDArray[Any]:
        """Return the validated result of a further method of the base model for all samples."""
        task, learner = self._evaluation_tasks[str(query.evaluation_task)], self.session.module("basemodel")
        if why := task.lacks(learner.plugin):
            raise PluginError(f"`{task.name}: true` asks for {task.wanted}, and {why}.", code="broken-contract")
        data: TestView | TrainView = TestView(x, name=query.name)
        if query.replies is not None:
            data = TrainView({"x": x, "y": as_served(query.replies, self._request.threads)}, name=query.name)
        try:
            answers = self.session.call(learner, task.method, data, **context)
        finally:
            data.close()
        return task.checked(answers, len(x), self.session.classes, f"{learner.name}.{task.method}()")

    def _load_copy(self, model: Model) -> Modules:
        """Load `model` into new objects of the same classes. Raises PluginError if that is not possible."""
        for m in model.modules:
            if m.path is None and (m.calls or m.kind == "basemodel"):
                raise PluginError(
                    f"the {m.kind} has no save(). If it learns while it is tested, or is tested within a round, a "
                    "second object that loads what was saved predicts: add save() and load().",
                    code="broken-contract",
                )
        return self.session.modules.copied(list(model.modules))

    def _look(self) -> None:
        session, modules, torch = self.session, self.session.modules, sys.modules.get("torch")
        gpu = torch.cuda if torch is not None and torch.cuda.is_initialized() else None
        measure.synchronise()
        plugins = [module.plugin for module in modules]
        samples, size, note = measure.memory_sizes(plugins)
        modules.remarks |= {note} - {""}
        remarks = dict.fromkeys(" ".join(str(getattr(plugin, "remark", "") or "").split()) for plugin in plugins)
        base = next((module.plugin for module in modules if module.kind == "basemodel"), None)
        network = getattr(base, "basemodel", "")  # its name; may be the network itself
        self.state = LearnerState(
            passes=session.step.passes,
            measures=session.step.measures,
            basemodel=network if isinstance(network, str) else "",
            remark="; ".join(filter(None, [*remarks, *sorted(modules.remarks)])),
            memory_samples=samples,
            memory_bytes=size,
            peak_gpu_bytes=None if gpu is None else int(gpu.max_memory_allocated()),
            sees_past_rounds=modules.sees_past_rounds,
            modules=len(plugins),
            caller=session.caller,
            skipped_evaluations=self._skipped_evaluations() if self._evaluation_tasks else "",
            parameters=self._size.parameters,
            trainable_parameters=self._size.trainable,
            flops=self._size.flops,
        )

    def _skipped_evaluations(self) -> str:
        """Return the evaluations that are skipped because a method is missing, and why."""
        paradigm = type(self.session.paradigm)
        base = paradigm.predict is Paradigm.predict
        for task in self._evaluation_tasks.values():
            if task.may_lack:
                why = "" if base else f"{paradigm.name} does not answer by its base model alone, whose they would be"
                if why := why or task.lacks(self.session.module("basemodel").plugin):
                    return f"no {task.may_lack}: {why}"
        return ""


def _prepare_process(request: CaseRequest) -> str:
    """Set options for speed, and those that affect the last bits of results. Returns the device of the case."""
    keep_freed_memory()
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
        raise IanvsError(NO_CUDA, code="missing-device")  # checked before a run, too, but nodes of a cluster differ
    if available:
        torch.cuda.init()  # so that its generators are there to be seeded
    return "cuda" if available else "cpu"
