"""A tree over the classes of a dataset, as a testenv or a file of its own gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from ianvs.base.errors import Place, Problem, closest, one_line
from ianvs.config.models.base import described, entries
from ianvs.config.strict_yaml import Document, Steps


@dataclass(frozen=True)
class ClassTree:
    """edges: (node, its parent), by name, of each node but the root; sorted. Every class is a node."""

    edges: tuple[tuple[str, str], ...]
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def parents(self) -> Mapping[str, str]:
        return dict(self.edges)

    def lacks(self, classes: tuple[str, ...]) -> Iterator[Problem]:
        """A problem for each class that is no node; one where there are no classes."""
        nodes = {name: None for edge in self.edges for name in edge}
        for name in classes:
            if name not in nodes:
                hint = closest(name, nodes) or f" There are: {one_line(list(nodes))}."
                yield Problem(f"the class '{name}' is not in the hierarchy. Add it below a node.{hint}", self.place)
        if not classes:
            yield Problem("a hierarchy is over classes, and these data have none. Take it out.", self.place)


def class_tree(document: Document, path: Steps) -> tuple[ClassTree, list[Problem]]:
    """The tree at `path` of `document`, and what is wrong with it."""
    found: dict[str, str] = {}
    problems, places = [], dict[str, Place]()
    for where, *edge in _edges(document, path):
        place = document.key_place(where)
        for name in edge:
            if isinstance(name, bool) or not isinstance(name, str | int):
                message = f"a node of the hierarchy is a name, found {described(name)}."
                problems.append(Problem(f"{message} Write 'child: parent', or 'parent: [child, child]'.", place))
        child, parent = map(str, edge)
        if found.setdefault(child, parent) != parent or child in places:
            message = f"'{child}' is below '{found[child]}' already, and here below '{parent}'. Keep one."
            problems.append(Problem(message, place))
        places.setdefault(child, place)
    roots = {parent: places[child] for child, parent in found.items() if parent not in found}
    try:
        TopologicalSorter({child: [parent] for child, parent in found.items()}).prepare()
    except CycleError as error:
        cycle = " below ".join(f"'{name}'" for name in reversed(error.args[1]))
        problems.append(Problem(f"the hierarchy has a cycle: {cycle}. Take one of them out.", places[error.args[1][0]]))
    else:
        if len(roots) != 1:
            message = f"a hierarchy has one root, found {one_line([f"'{root}'" for root in roots]) or 'none'}."
            place = [document.value_place(path), *roots.values()][-1]
            problems.append(Problem(f"{message} Put everything below one node.", place))
    return ClassTree(tuple(sorted(found.items())), document.value_place(path)), problems


def _edges(document: Document, path: Steps, above: object = None) -> Iterator[tuple[Steps, object, object]]:
    """(where, child, parent) as they stand below `above`; at the top, a name after a key is the key's parent."""
    for where, value in entries(document.data, *path):
        key, nested = where[-1], isinstance(value, dict | list)
        if isinstance(key, str) and nested:
            if above is not None:
                yield where, key, above
            yield from _edges(document, where, key)
        elif isinstance(key, str):
            yield where, key, value if above is None else None  # 'child: parent' only at the top
        elif isinstance(value, dict):
            yield from _edges(document, where, above)
        else:
            yield where, value, above
