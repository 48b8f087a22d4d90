"""Reference runs: models that others are compared with by IM, the survey's FWT, delta_m and Omega.

joint: for each round k a new model trained on rounds 1 to k together. single_task: for each round j a new model trained
on it alone. They are ordinary cases of the paradigms `joint` and `solo`. The trained class is the one that an algorithm
names as its `reference`, with those of its hyperparameters that this class takes; so all algorithms with the same
network, data and seed share one. A class that names none is its own reference, since a new model has nothing to forget.

stateless: the algorithm itself, reset before each sample of a stream and without feedback, for `gain`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ianvs.base.types import TestCase
from ianvs.config.spec import JobSpec, ModuleSpec, ParadigmSpec, TestEnvSpec
from ianvs.exam.metrics.registry import metric_header
from ianvs.running.inspector import Inspector, ParadigmFacts, PluginFacts, ReferenceFacts
from ianvs.running.planning.cases import PlannedAlgorithm, grid, own_hyperparameters
from ianvs.running.planning.identity import algorithm_identity, published_pictures
from ianvs.running.planning.named_files import named_files
from ianvs.store.keys import digest

_PARADIGMS = {"joint": "joint", "single_task": "solo"}  # by role
ROLES = tuple(_PARADIGMS)
STATELESS = "stateless"
# Paradigms whose predictions come from modules that can be reset.
_HAVE_STATELESS = ("incrementallearning", "testtimelearning")

_Values = Mapping[str, object]
_Known = tuple[PlannedAlgorithm, Callable[[_Values], _Values]]


@dataclass(frozen=True)
class PlannedReferences:
    """algorithms: of the reference runs that are planned besides those that the job lists."""

    algorithms: tuple[PlannedAlgorithm, ...] = ()
    # (exam, identity, algorithm, role) -> (reference, hyperparameters of a case -> those of its reference):
    by_student: Mapping[tuple[str, ...], _Known] = field(default_factory=dict)

    def ids(self, case: TestCase, algorithm: PlannedAlgorithm) -> dict[str, str]:
        """Return {role: id of the reference case} of a case."""
        ids = {}
        for role in (*ROLES, STATELESS):
            planned = self.by_student.get(_key(algorithm, role))
            if planned is not None and algorithm.is_ranked and not case.role:
                reference, taken = planned
                ids[role] = reference.case(taken(case.hyperparameters), case.seed).id
        return ids


def plan_references(job: JobSpec, students: Sequence[PlannedAlgorithm], inspector: Inspector) -> PlannedReferences:
    """Return the references that the metrics of each exam need: those that the job lists, else planned ones."""
    by_student: dict[tuple[str, ...], _Known] = {}
    planned: dict[tuple[str, str], tuple[PlannedAlgorithm, dict[str, _Values]]] = {}  # with their hyperparameters
    facts = _facts(job, students, inspector)
    for student in students:
        if student.paradigm.as_one:
            continue  # it has no rounds to compare
        exam = student.testenv
        has_stream = exam.prequential is not None and student.spec.paradigm.name in _HAVE_STATELESS
        if has_stream and any(STATELESS in metric_header(metric).needs for metric in exam.metrics):
            made = _stateless(job, student)
            reference, choices = planned.setdefault((made.exam_id, made.identity_digest), (made, {}))
            by_student[_key(student, STATELESS)] = (reference, dict)
            choices |= {digest(taken): taken for taken in student.hyperparameters()}
        for role in _needed(student.testenv):
            if (name := job.references.get(role)) is not None:
                same = (s for s in students if s.testenv is student.testenv and s.drawn == student.drawn)
                named = next(s for s in same if s.spec.name == name)
                only = next(grid(named.spec.modules))  # it has one choice, as the scheduler's checks ensure
                by_student[_key(student, role)] = (named, partial(_constant_values, only))
                continue
            plugin = facts.get(student.spec.name)
            if plugin is None or plugin.bound or plugin.reference is None:
                continue
            made = _reference(job, student, plugin.reference, role)
            reference, choices = planned.setdefault((made.exam_id, made.identity_digest), (made, {}))
            taken_by = partial(
                _accepted_values, plugin.reference.takes, [module.type for module in student.spec.modules]
            )
            by_student[_key(student, role)] = (reference, taken_by)
            for hyperparameters in student.hyperparameters():
                taken = taken_by(hyperparameters)
                choices.setdefault(digest(taken), taken)
    algorithms = (
        replace(made, choices=tuple(choices.values()), trial=None, seed=made.drawn.seed if made.drawn else None)
        for made, choices in planned.values()
    )
    return PlannedReferences(tuple(algorithms), by_student)


def _stateless(job: JobSpec, student: PlannedAlgorithm) -> PlannedAlgorithm:
    """Return the student without memory. Feedback is not shown to it, so its settings are not part of the identity."""
    asks = student.testenv.prequential
    assert asks is not None
    exam = {**student.exam, "prequential": {"score": asks.score}}
    spec = replace(
        student.spec,
        name=f"{student.spec.name} ({STATELESS} reference)",
        paradigm=ParadigmSpec(STATELESS, place=student.spec.place),
    )
    paradigm = ParadigmFacts(student.paradigm.methods, student.paradigm.needed, reference=True)
    identity = algorithm_identity(job, student.testenv, spec, paradigm)
    drawn = student.drawn and replace(student.drawn, group_id=digest({"group": student.drawn.group_id, **exam}))
    return replace(
        student,
        spec=spec,
        paradigm=paradigm,
        exam=exam,
        exam_id=digest(exam),
        drawn=drawn,
        identity=identity,
        identity_digest=digest(identity),
        role=STATELESS,
    )


def _needed(exam: TestEnvSpec) -> tuple[str, ...]:
    needs = {need for metric in exam.metrics for need in metric_header(metric).needs}
    return tuple(role for role in ROLES if role in needs)


def _facts(job: JobSpec, students: Sequence[PlannedAlgorithm], inspector: Inspector) -> dict[str, PluginFacts]:
    """Return facts by algorithm; {} if no reference has to be planned, since inspection takes seconds."""
    roles = {role for student in students for role in _needed(student.testenv)} - set(job.references)
    if not roles or not job.plans_references:
        return {}
    modules = {a.name: (a, module) for a in job.algorithms for module in a.modules if module.type == "basemodel"}
    answers = inspector.plugins([*modules.values()])
    return {name: facts for name, facts in zip(modules, answers, strict=True) if facts is not None}


def _reference(job: JobSpec, student: PlannedAlgorithm, facts: ReferenceFacts, role: str) -> PlannedAlgorithm:
    module = ModuleSpec("basemodel", facts.name, facts.url, place=student.spec.place)
    spec = replace(
        student.spec,
        name=f"{facts.name} ({role} reference)",
        modules=(module,),
        paradigm=ParadigmSpec(_PARADIGMS[role], place=student.spec.place),
    )
    paradigm = ParadigmFacts(student.paradigm.methods, ("basemodel",), reference=True)
    identity = algorithm_identity(job, student.testenv, spec, paradigm)
    if files := named_files(job, student.spec, facts.takes):
        identity["weights"] = files
    if pictures := published_pictures(student.spec):
        identity["pictures"] = pictures
    return replace(
        student,
        spec=spec,
        paradigm=paradigm,
        identity=identity,
        identity_digest=digest(identity),
        role=role,
    )


def _accepted_values(takes: tuple[str, ...] | None, kinds: Sequence[str], hyperparameters: _Values) -> _Values:
    """Return the base model's hyperparameters that the reference takes. kinds: of the algorithm's modules."""
    values = own_hyperparameters(hyperparameters, "basemodel", kinds)
    return {name: value for name, value in values.items() if takes is None or name in takes}


def _constant_values(only: _Values, hyperparameters: _Values) -> _Values:
    return only


def _key(student: PlannedAlgorithm, role: str) -> tuple[str, ...]:
    return (student.exam_id, student.identity_digest, student.spec.name, role)
