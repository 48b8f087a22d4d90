"""Finds stored cases of a plan from the disk, since a grid may have a million others; and earlier ones."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from ianvs.base.errors import DamagedError, one_line
from ianvs.base.secrets import HIDDEN
from ianvs.base.types import TestCase
from ianvs.running.planning.cases import AcceptedCase, PlannedAlgorithm, grid_axes, with_prefixes
from ianvs.store import CaseStore, JobStore
from ianvs.store.keys import canonical


def stored_ids(store: CaseStore) -> Set[str]:
    """Return the names of the folders of cases."""
    with suppress(FileNotFoundError):
        return {name for name in os.listdir(store.root) if not name.startswith(".")}  # noqa: PTH208 - a million
    return set()


def stored_cases(
    algorithms: Sequence[PlannedAlgorithm], seeds: Sequence[int], store: CaseStore, ids: Set[str]
) -> Iterator[tuple[TestCase, PlannedAlgorithm]]:
    """Yield stored cases in the order of the plan, and all trials of searches. ids: `stored_ids(store)`."""
    by_id: dict[str, TestCase] = {}
    for case_id in ids:
        with suppress(DamagedError):
            if (case := store.case(case_id)) is not None and HIDDEN not in canonical(case.hyperparameters):
                by_id[case_id] = case
    all_told = len(by_id) == len(ids)  # otherwise missing facts have to be searched
    for algorithm in algorithms:
        trials = algorithm.choices is not None
        if not trials and all_told and len(algorithm) * len(seeds) > 2 * len(ids):
            yield from ((case, algorithm) for case in _cases_of_grid(algorithm, algorithm.seeds(seeds), by_id))
        else:
            yield from ((case, algorithm) for case in algorithm.cases(seeds) if trials or case.id in ids)


def _cases_of_grid(algorithm: PlannedAlgorithm, seeds: Sequence[int], by_id: Mapping[str, TestCase]) -> list[TestCase]:
    """Return those of the cases `by_id` that belong to the algorithm's grid."""
    values: dict[str, Sequence[object]] = {"": seeds}
    for prefix, module in with_prefixes(algorithm.spec.modules):
        values |= {prefix + name: (value,) for name, value in module.constants.items()}
    values |= dict(grid_axes(algorithm.spec.modules))
    places = {name: {canonical(option): place for place, option in enumerate(axis)} for name, axis in values.items()}
    of_grid = []
    for case_id, case in by_id.items():
        chosen = {"": case.seed, **case.hyperparameters}
        if chosen.keys() == places.keys():
            where = [axis.get(canonical(chosen[name]), -1) for name, axis in places.items()]
            if -1 not in where and (mine := algorithm.case(case.hyperparameters, case.seed)).id == case_id:
                of_grid.append(([*where[1:], where[0]], mine))
    return [case for _, case in sorted(of_grid, key=lambda option: option[0])]


def accepted_cases(job_store: JobStore) -> dict[str, AcceptedCase]:
    """Return finished cases of an earlier source that a job counts as its own, by the id that each would have now.

    Damaged ones don't count, since they can't be restored with the present source.
    """
    store, accepted = CaseStore(job_store.folder.parent), {}
    for now, before in job_store.accepted().items():
        with suppress(DamagedError):
            state, identity = store.state(before, thoroughly=True), store.identity(before)
            if state.status == "finished" and not state.damaged and identity and store.status(now) != "finished":
                accepted[now] = AcceptedCase(before, identity["algorithm"]["source"])
    return accepted


def cases_of_other_source(
    algorithms: Sequence[PlannedAlgorithm], cases: Iterable[tuple[TestCase, PlannedAlgorithm]], store: CaseStore
) -> dict[str, str]:
    """Find finished cases that differ from cases of a plan in nothing but the source of the algorithm.

    Args:
        algorithms: Those of the plan.
        cases: Those of the plan; of these the ones that have finished are left out.
        store: Where cases are stored.

    Returns:
        {id of the plan's case: id of the finished one, the last that was made}.
    """
    finished: dict[str, float] = {}
    sources: dict[str, dict[str, Mapping[str, str]]] = {}  # by exam, by its text
    for case_id in stored_ids(store):
        with suppress(DamagedError, OSError):
            identity = store.identity(case_id) if store.status(case_id) == "finished" else None
            if identity is not None:
                finished[case_id] = store.folder(case_id).stat().st_mtime
                source = identity["algorithm"]["source"]
                sources.setdefault(identity["exam_id"], {})[canonical(source)] = source
    earlier = {
        (algorithm.exam_id, algorithm.identity_digest): [
            algorithm.with_source(variant) for variant in sources.get(algorithm.exam_id, {}).values()
        ]
        for algorithm in algorithms
    }
    matches = {}
    for case, algorithm in cases:
        ids = {
            variant.case(case.hyperparameters, case.seed).id
            for variant in earlier[algorithm.exam_id, algorithm.identity_digest]
        }
        if case.id not in finished and (stored := [variant for variant in ids if variant in finished]):
            matches[case.id] = max(stored, key=finished.__getitem__)
    return matches


@dataclass(frozen=True)
class EarlierCase:
    """A case that a job has stored before something changed.

    Attributes:
        differences: The changes, as text.
        same_exam: Whether none of them belongs to the exam.
    """

    case_id: str
    differences: tuple[str, ...]
    same_exam: bool

    @property
    def other_source_alone(self) -> bool:
        """Whether only source files have changed, of the algorithm or of ianvs."""
        return all(
            difference.startswith(("source ", "ianvs itself", "how ianvs digests")) for difference in self.differences
        )

    @property
    def description(self) -> str:
        """A description, as in "made by an earlier plugin.py"."""
        sources = [
            difference.removeprefix("source ") for difference in self.differences if difference.startswith("source ")
        ]
        others = [difference for difference in self.differences if not difference.startswith("source ")]
        by = [f"by an earlier {one_line(difference.split(', '), 3)}" for difference in sources]
        return " and ".join([*by, *([f"before these changed: {', '.join(others)}"] if others else [])])


def earlier_case_sentences(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence for each change, as "12 cases were made by an earlier plugin.py". counts: by description."""
    return [f"{count} case{' was' if count == 1 else 's were'} made {sentence}" for sentence, count in counts.items()]
