"""The cases of a plan of which something is stored, found from the disk: a grid may have a million others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress

from ianvs.base.errors import DamagedError
from ianvs.base.secrets import without_secrets
from ianvs.base.types import TestCase
from ianvs.running.planning.cases import PlannedAlgorithm, axes, prefixed
from ianvs.store import CaseStore
from ianvs.store.keys import canonical

_Cases = Iterator[tuple[TestCase, PlannedAlgorithm]]


def stored_ids(store: CaseStore) -> Set[str]:
    """Names of the folders of cases."""
    with suppress(FileNotFoundError):
        return {name for name in os.listdir(store.root) if not name.startswith(".")}  # noqa: PTH208 - a million
    return set()


def stored_cases(algorithms: Sequence[PlannedAlgorithm], seeds: Sequence[int], store: CaseStore) -> _Cases:
    """In the order of the plan. Trials of searches are among them whether or not something is stored of them."""
    ids = stored_ids(store)
    told: dict[str, TestCase] = {}
    for case_id in sorted(ids):
        with suppress(DamagedError):
            if (case := store.case(case_id)) is not None:
                told[case_id] = case
    for algorithm in algorithms:
        if algorithm.choices is not None:
            yield from ((case, algorithm) for case in algorithm.cases(seeds))
        elif len(algorithm) * len(seeds) <= 2 * len(ids) or len(told) < len(ids) or _has_secrets(algorithm):
            yield from ((case, algorithm) for case in algorithm.cases(seeds) if case.id in ids)
        else:
            yield from ((case, algorithm) for case in _of_grid(algorithm, algorithm.seeds(seeds), told))


def _of_grid(algorithm: PlannedAlgorithm, seeds: Sequence[int], told: Mapping[str, TestCase]) -> list[TestCase]:
    """Those of `told`, by id, that the algorithm's grid makes."""
    places = {
        name: {canonical(value): place for place, value in reversed(list(enumerate(values)))}
        for name, values in axes(algorithm.spec.modules)
    }
    for prefix, module in prefixed(algorithm.spec.modules):
        places = {prefix + name: {canonical(value): 0} for name, value in module.constants.items()} | places
    found = []
    for case_id, case in told.items():
        chosen = case.hyperparameters
        if case.seed not in seeds or chosen.keys() != places.keys():
            continue
        where = [of.get(canonical(chosen[name])) for name, of in places.items()]
        if None not in where and (mine := algorithm.case(chosen, case.seed)).id == case_id:
            found.append(([*where, seeds.index(case.seed)], mine))
    return [case for _, case in sorted(found, key=lambda one: one[0])]


def _has_secrets(algorithm: PlannedAlgorithm) -> bool:
    """Whether what is stored of its hyperparameters is not what they are."""
    every: dict[str, object] = dict(axes(algorithm.spec.modules))
    for prefix, module in prefixed(algorithm.spec.modules):
        every |= {prefix + name: value for name, value in module.constants.items()}
    return canonical(without_secrets(every)) != canonical(every)
