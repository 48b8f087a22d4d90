"""The searches of a job as cases: their trials so far, and the winners of those that have ended."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from ianvs.base.errors import DamagedError
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec, Range, SearchSpec
from ianvs.results.stored.selection import first_half
from ianvs.running.planning.cases import PlannedAlgorithm, TrialCases, grid, grid_axes
from ianvs.running.planning.identity import metric_key
from ianvs.store.job_store import Study, StudyStore, Trial
from ianvs.store.keys import digest

# Settings that do not identify a search, or have another name.
_APART = ("place", "places", "trials", "metric", "select")


@dataclass(frozen=True)
class PlannedStudy:
    """A search of one algorithm in one exam.

    Attributes:
        bases: By seed, the algorithm with the trials' choices.
        stored: Its results so far; None: it has not begun.
        spec: Its settings.
        metric: The column that it optimises.
    """

    spec: SearchSpec
    metric: str
    bases: Mapping[int, PlannedAlgorithm]
    stored: Study | None = None

    @cached_property
    def key(self) -> str:
        """Identity of the search; more trials continue the same search."""
        base, spec, space = self.any_base, self.spec, self.space
        metrics = [metric_key(each) for each in base.testenv.metrics if each.name in self.metric.split(" of ")]
        return digest(
            {
                "exams": [[seed, self.bases[seed].exam_id] for seed in self.seeds],
                "algorithm": base.identity_digest,
                "name": base.spec.name,
                "fixed": {name: value for name, value in self.hyperparameters({}).items() if name not in space},
                "space": {
                    name: [space_range.kind, space_range.low, space_range.high, list(space_range.choices)]
                    for name, space_range in space.items()
                },
                "metrics": metrics,
                "metric": self.metric,
                "how": {name: value for name, value in vars(spec).items() if name not in _APART},
                "select": None if spec.select is None else [spec.select.by, spec.select.rounds, spec.select.share],
            }
        )

    @property
    def any_base(self) -> PlannedAlgorithm:
        return next(iter(self.bases.values()))

    @property
    def space(self) -> dict[str, Range]:
        return search_space(self.any_base.spec.modules)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The job's seeds for trials: the first, or those that `by: seeds` selects on."""
        by_seeds = self.spec.select is not None and self.spec.select.by == "seeds"
        seeds = sorted(self.bases)
        return tuple(sorted(first_half(seeds)) if by_seeds else seeds[:1])

    @property
    def ended(self) -> bool:
        if self.stored is None or not self.stored.ended:
            return False
        # A search without further configurations has ended, whatever is requested.
        return bool(self.stored.note) or len(self.stored.trials) >= self.spec.trials

    @property
    def left(self) -> int:
        """Number of further trials."""
        return 0 if self.ended else self.spec.trials - (0 if self.stored is None else len(self.stored.trials))

    @property
    def cases_left(self) -> int:
        """Upper limit of cases of further trials and of an unknown winner."""
        return 0 if self.ended else self.left * len(self.seeds) + len(self.bases)

    def hyperparameters(self, drawn: Mapping[str, object]) -> dict[str, object]:
        """Return all hyperparameters of a trial, in the order of the file."""
        first = next(grid(self.any_base.spec.modules))
        return {name: drawn.get(name, value) for name, value in first.items()}

    def stage(self, trial: Trial, outcome: str = "") -> Iterator[PlannedAlgorithm]:
        """Yield the cases of a trial up to its next rung, by seed. outcome: why it is not continued."""
        choice = self.hyperparameters(trial.drawn)
        at_the_end = self.stored is not None and trial.next_rung == self.stored.rounds
        until = None if outcome or at_the_end else trial.next_rung
        for seed in self.seeds:
            cases = TrialCases(self.key, trial.number, outcome)
            yield replace(self.bases[seed], trial=cases, choices=(choice,), seed=seed, until=until)

    def planned(self) -> Iterator[PlannedAlgorithm]:
        """Yield every trial so far, and the winner with all seeds of the job."""
        if self.stored is None:
            return
        winner = self.stored.winner if self.ended else None
        for trial in self.stored.trials:
            if trial.number == winner:
                choice = self.hyperparameters(trial.drawn)
                for base in {id(base): base for base in self.bases.values()}.values():
                    yield replace(base, trial=TrialCases(self.key, trial.number), choices=(choice,))
            else:
                yield from self.stage(trial, "" if trial.waits else _became(trial, self.stored.rounds))


def _became(trial: Trial, rounds: int) -> str:
    if trial.failed:
        return "trial failed"
    return "trial finished" if trial.reached == rounds else f"trial stopped after round {trial.reached}"


def plan_studies(job: JobSpec, spec: SearchSpec, students: Sequence[PlannedAlgorithm]) -> tuple[PlannedStudy, ...]:
    """Return a study for each algorithm with a range in each exam. students: the job's algorithms in its exams."""
    groups: dict[tuple[str, str], dict[int, PlannedAlgorithm]] = {}
    for student in students:
        if is_searched(student.spec):
            seeds = student.seeds(job.seeds)
            groups.setdefault((student.testenv_name, student.spec.name), {}).update(dict.fromkeys(seeds, student))
    store = StudyStore(job.workspace, job.name)
    studies = []
    for bases in groups.values():
        study = PlannedStudy(spec, search_metric(job), bases)
        with suppress(DamagedError):  # then it is planned again, with its trials done
            choices = {name: space_range.choices for name, space_range in study.space.items()}
            study = replace(study, stored=store.read(study.key, choices))
        studies.append(study)
    return tuple(studies)


def is_searched(algorithm: AlgorithmSpec) -> bool:
    return any(isinstance(value, Range) for module in algorithm.modules for _, axis in module.grid for value in axis)


def search_space(modules: tuple[ModuleSpec, ...]) -> dict[str, Range]:
    """Return ranges by hyperparameter, named as in a case; several values are a choice."""
    space = {}
    for name, values in grid_axes(modules):
        if isinstance(values[0], Range):
            space[name] = values[0]
        elif len(values) > 1:
            space[name] = Range("choice", choices=values)
    return space


def search_metric(job: JobSpec) -> str:
    assert job.search is not None
    return job.search.metric or job.rank.sort_by[0][0]


def with_ends(module: ModuleSpec) -> ModuleSpec:
    """Return the module with the ends of each range as values, to check them with its constructor."""
    ends = {name: values[0].ends for name, values in module.grid if isinstance(values[0], Range)}
    places = {name: module.value_places.get(name, ())[:1] * len(values) for name, values in ends.items()}
    tried = tuple((name, ends.get(name, values)) for name, values in module.grid)
    return replace(module, grid=tried, value_places={**module.value_places, **places})
