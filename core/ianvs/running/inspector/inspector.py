"""Inspects the files of a job's authors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from ianvs.base.errors import ConfigError, IanvsError, ValidationError
from ianvs.config.contracts import THIS_INTERPRETER, contract_named, interpreter_of, runner_of
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ModuleSpec
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.registry import metric_header
from ianvs.plugins.source import source_of
from ianvs.processes.engines.engine import THREADS, Engine
from ianvs.processes.interpreters.lock import lock_of
from ianvs.processes.isolated import InThisProcess, IsolatedCaller, IsolatedCallError
from ianvs.processes.sandbox import Sandbox
from ianvs.running.inspector.facts import (
    Answer,
    ParadigmFacts,
    PluginFacts,
    metric_from,
    paradigm_facts,
)
from ianvs.running.inspector.plugin_check import CheckResult, Subject, check_result, interrupted_check
from ianvs.store.keys import digest

_PLUGIN_FACTS, _PARADIGM_FACTS = TypeAdapter(PluginFacts), TypeAdapter(ParadigmFacts)
_FACTS = "ianvs.running.inspector.facts"
_CHECK = "ianvs.running.inspector.plugin_check:check_plugin"


class Inspector:
    """Imports each plugin file of `job` once, in a process that lives until `close`; metrics have a second process.

    Facts about a file are cached in the workspace by the digest of its source, and failures in this object. A file that
    crashes or hangs its process is skipped, and the others are inspected in a new process.

    Args:
        engine: For `IsolatedCaller`.
        sandbox: In which plugins are imported and built.
        inline: Import files in this process, as the job's cases will.
    """

    def __init__(
        self,
        job: JobSpec,
        engine: Callable[[], Engine | None] = lambda: None,
        sandbox: Callable[[], Sandbox | None] = lambda: None,
        *,
        inline: bool = False,
    ) -> None:
        self._job, self._seconds, self._engine, self._sandbox = job, job.limits.check_seconds, engine, sandbox
        self._answers: dict[Path, Answer | str] = {}
        self._failed: dict[tuple[object, ...], str] = {}  # by python, url and name: why a plugin can't be imported
        self._inline = InThisProcess() if inline else None
        self._processes: dict[bool, IsolatedCaller] = {}  # the process of plugins and paradigms, and that of metrics

    def close(self) -> None:
        """End the processes; a further request starts them again."""
        for process in self._processes.values():
            process.close()

    def plugins(self, plugins: Sequence[tuple[AlgorithmSpec, ModuleSpec]]) -> list[PluginFacts | None]:
        """Return the facts of each module.

        None for one that can't be imported in time (its check reports that), or whose contract runs its cases.
        """
        facts: list[PluginFacts | None] = []
        for algorithm, module in plugins:
            facts.append(None)
            where, url, name, more = interpreter_of(algorithm), module.url, module.name, None
            if runner_of(algorithm) is not None:
                continue
            if where != THIS_INTERPRETER:
                try:
                    more = [where.adapter, algorithm.python and lock_of(algorithm).identity]
                except IanvsError:  # its interpreter can't be started, which another check reports
                    continue
            answer = self._answer("plugin", url, name, (url, name, where), more)
            if isinstance(answer, str):
                self._failed[algorithm.python, url, name] = answer
            elif "problems" not in answer:
                facts[-1] = _PLUGIN_FACTS.validate_python(answer)
        return facts

    def check(self, subject: Subject) -> CheckResult:
        """Check a plugin, its hyperparameters, and its constructor."""
        python = subject.algorithm.python
        plugin = python, subject.module.url, subject.module.name
        if plugin in self._failed:
            return interrupted_check(subject, self._failed[plugin])
        if python is not None:
            try:
                lock_of(subject.algorithm)
            except IanvsError:  # its interpreter can't be started, which another check reports
                return CheckResult((), asks=False)
        answers = self._process().call_iter(_CHECK, subject, self._seconds)
        try:
            facts = next(answers)
        except IsolatedCallError as error:
            self._failed[plugin] = str(error)
            return interrupted_check(subject, str(error))
        return check_result(subject, facts, answers)

    def paradigm(self, algorithm: AlgorithmSpec) -> ParadigmFacts:
        """Return the facts of an algorithm's paradigm."""
        spec = algorithm.paradigm
        if algorithm.contract != NATIVE and (types := contract_named(algorithm.contract).module_types(spec)):
            return ParadigmFacts(dict.fromkeys(types[0], ()), types[1])
        if spec.url is None:
            return paradigm_facts(spec)
        answer = self._answer("paradigm", spec.url, spec.name, spec, spec.options)
        if isinstance(answer, str):
            return ParadigmFacts(problems=(("", f"importing the file of paradigm '{spec.name}' {answer}."),))
        return _PARADIGM_FACTS.validate_python(answer)

    def metric(self, spec: MetricSpec) -> Metric | list[ValidationError]:
        """Return a metric or its errors. A metric of an author's file has no `function` here."""
        try:
            metric = metric_header(spec)
        except ConfigError as error:
            return list(error.problems)
        if spec.url is None or metric.level == "reported":
            return metric
        answer = self._answer("metric", str(spec.url), spec.name, spec, [spec.score, spec.options])
        if isinstance(answer, str):
            return [
                ValidationError(
                    f"importing the file of metric '{spec.name}' {answer}.", spec.place, code="unloadable-plugin"
                )
            ]
        wrong = [ValidationError(message, spec.place, code=code) for code, message in answer.get("problems", ())]
        return wrong or metric_from(spec.name, **answer)

    def _answer(self, subject: str, url: str | None, name: str, request: object, more: object = None) -> Answer | str:
        """Return the facts of a file, or an error message.

        Args:
            subject: "plugin", "paradigm" or "metric".
            url: The file.
            name: Of the object in it.
            request: The argument of `look_at_<subject>`.
            more: What the answer depends on besides the source.
        """
        try:
            source = source_of(url, name, job=self._job.file.parent, exactly=True)
        except OSError:  # it is missing, which the loader reports
            source = {}
        file = self._job.workspace / "cache" / f"{subject}s" / f"{digest([url, name, more, source])}.json"
        if file not in self._answers:
            stored: Answer | str | None = read_memo(file)
            if not isinstance(stored, dict) or (subject == "plugin" and not _same_reference(stored)):
                process = self._process(of_plugins=subject != "metric")
                try:
                    answer: Answer
                    [answer] = process.call_iter(f"{_FACTS}:look_at_{subject}", request, self._seconds)
                    if not answer.get("problems"):
                        write_memo(file, answer)
                    stored = answer
                except IsolatedCallError as error:
                    stored = str(error)
            self._answers[file] = stored
        return self._answers[file]

    def _process(self, *, of_plugins: bool = True) -> IsolatedCaller | InThisProcess:
        sealed = of_plugins and self._job.sandboxed  # metrics belong to the exam
        if self._inline is not None and not sealed:
            return self._inline
        if of_plugins not in self._processes:
            environment = dict.fromkeys(THREADS, str(self._job.threads))
            if of_plugins and self._job.device == "cpu":
                environment["CUDA_VISIBLE_DEVICES"] = ""
            sandbox = self._sandbox() if sealed else None
            self._processes[of_plugins] = IsolatedCaller(environment, self._engine, sandbox)
        return self._processes[of_plugins]


def _same_reference(answer: Mapping[str, object]) -> bool:
    """Return whether the source of the reference class is unchanged."""
    try:
        facts = _PLUGIN_FACTS.validate_python(answer).reference
        return facts is not None and facts.source == digest(source_of(facts.url, facts.name, exactly=True))
    except (ValueError, OSError):  # its file is missing
        return False
