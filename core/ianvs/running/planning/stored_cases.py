"""Cases that are stored: of a plan, found from the disk, since a grid may have a million others; and earlier ones."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import DamagedError, one_line
from ianvs.base.secrets import HIDDEN
from ianvs.base.types import TestCase
from ianvs.running.planning.cases import AcceptedCase, PlannedAlgorithm, axes, prefixed
from ianvs.store import CaseStore, JobStore
from ianvs.store.keys import canonical


def stored_ids(store: CaseStore) -> Set[str]:
    """Names of the folders of cases."""
    with suppress(FileNotFoundError):
        return {name for name in os.listdir(store.root) if not name.startswith(".")}  # noqa: PTH208 - a million
    return set()


def stored_cases(
    algorithms: Sequence[PlannedAlgorithm], seeds: Sequence[int], store: CaseStore
) -> Iterator[tuple[TestCase, PlannedAlgorithm]]:
    """In the order of the plan. Trials of searches are among them whether or not something is stored of them."""
    ids = stored_ids(store)
    told: dict[str, TestCase] = {}
    for case_id in ids:
        with suppress(DamagedError):
            if (case := store.case(case_id)) is not None and HIDDEN not in canonical(case.hyperparameters):
                told[case_id] = case
    all_told = len(told) == len(ids)  # else what one does not tell has to be looked for
    for algorithm in algorithms:
        trials = algorithm.choices is not None
        if not trials and all_told and len(algorithm) * len(seeds) > 2 * len(ids):
            yield from ((case, algorithm) for case in _of_grid(algorithm, algorithm.seeds(seeds), told))
        else:
            yield from ((case, algorithm) for case in algorithm.cases(seeds) if trials or case.id in ids)


def _of_grid(algorithm: PlannedAlgorithm, seeds: Sequence[int], told: Mapping[str, TestCase]) -> list[TestCase]:
    """Those of `told`, by id, that the algorithm's grid makes."""
    values: dict[str, Sequence[object]] = {"": seeds}
    for prefix, module in prefixed(algorithm.spec.modules):
        values |= {prefix + name: (value,) for name, value in module.constants.items()}
    values |= dict(axes(algorithm.spec.modules))
    places = {name: {canonical(one): place for place, one in enumerate(of)} for name, of in values.items()}
    found = []
    for case_id, case in told.items():
        chosen = {"": case.seed, **case.hyperparameters}
        if chosen.keys() == places.keys():
            where = [of.get(canonical(chosen[name]), -1) for name, of in places.items()]
            if -1 not in where and (mine := algorithm.case(case.hyperparameters, case.seed)).id == case_id:
                found.append(([*where[1:], where[0]], mine))
    return [case for _, case in sorted(found, key=lambda one: one[0])]


def accepted_cases(workspace: Path, job: str) -> dict[str, AcceptedCase]:
    """Finished cases of an earlier source that a job counts as its own, by the id that each would have now.

    Those that are damaged don't count: with the source of today they can't be made again.
    """
    store, found = CaseStore(workspace), {}
    for now, before in JobStore(workspace, job).accepted().items():
        with suppress(DamagedError):
            state, identity = store.state(before, thoroughly=True), store.identity(before)
            if state.status == "finished" and not state.damaged and identity and store.status(now) != "finished":
                found[now] = AcceptedCase(before, identity["algorithm"]["source"])
    return found


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
        (of.exam_id, of.identity_digest): [of.with_source(one) for one in sources.get(of.exam_id, {}).values()]
        for of in algorithms
    }
    found = {}
    for case, of in cases:
        ids = {one.case(case.hyperparameters, case.seed).id for one in earlier[of.exam_id, of.identity_digest]}
        if case.id not in finished and (stored := [one for one in ids if one in finished]):
            found[case.id] = max(stored, key=finished.__getitem__)
    return found


@dataclass(frozen=True)
class EarlierCase:
    """A case that a job has stored before something changed, and that would be another one now.

    differences: what changed, in words. same_exam: whether none of that belongs to the exam.
    """

    case_id: str
    differences: tuple[str, ...]
    same_exam: bool

    @property
    def other_source_alone(self) -> bool:
        """Whether nothing has changed but source files, of the algorithm or of ianvs."""
        return all(one.startswith(("source ", "ianvs itself", "the way that ianvs counts")) for one in self.differences)

    @property
    def said(self) -> str:
        """As in "made by an earlier plugin.py"."""
        sources = [one.removeprefix("source ") for one in self.differences if one.startswith("source ")]
        others = [one for one in self.differences if not one.startswith("source ")]
        by = [f"by an earlier {one_line(one.split(', '), 3)}" for one in sources]
        return " and ".join([*by, *([f"before these changed: {', '.join(others)}"] if others else [])])


def said_of_earlier(found: Iterable[EarlierCase]) -> list[str]:
    """A sentence for each change, as "12 cases were made by an earlier plugin.py"."""
    counts = Counter(one.said for one in found)
    return [f"{count} case{' was' if count == 1 else 's were'} made {said}" for said, count in counts.items()]
