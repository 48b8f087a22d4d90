"""A tree over the classes of a dataset, in a testenv or its own file."""

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.models.base import entries
from ianvs.config.strict_yaml import Document, Steps, described

ClassTree = tuple[tuple[str, str], ...]
"""(node, its parent), by name, of each node but the root; sorted. Every class is a node."""


def class_tree(document: Document, path: Steps) -> tuple[ClassTree, list[ValidationError]]:
    """Return the tree at `path` of `document`, and its errors."""
    parents, places, problems = dict[str, str](), dict[str, Location](), list[ValidationError]()
    for where, child, parent in _edges(document, path):
        place = document.key_place(where)
        if not {type(child), type(parent)} <= {str, int}:
            message = f"nodes of a hierarchy are names, found {described(child)} below {described(parent)}."
            problems.append(
                ValidationError(
                    f"{message} Write 'child: parent' or 'parent: [child, child]'.", place, code="invalid-hierarchy"
                )
            )
        elif (first_parent := parents.get(str(child))) is not None:
            problems.append(
                ValidationError(
                    f"'{child}' is below '{first_parent}', and here below '{parent}'. Keep one.",
                    place,
                    code="invalid-hierarchy",
                )
            )
        else:
            parents[str(child)], places[str(child)] = str(parent), place
    roots = {parent: places[child] for child, parent in parents.items() if parent not in parents}
    try:
        TopologicalSorter({child: [parent] for child, parent in parents.items()}).prepare()
    except CycleError as error:
        message = " is below ".join(f"'{name}'" for name in reversed(error.args[1]))
        problems.append(
            ValidationError(
                f"the hierarchy has a cycle: {message}. Take one out.",
                places[error.args[1][0]],
                code="invalid-hierarchy",
            )
        )
    else:
        if len(roots) != 1 and not problems:
            message = (
                f"a hierarchy has one root, found {one_line(list(roots)) or 'none'}. Put everything below one node."
            )
            problems.append(
                ValidationError(message, [document.value_place(path), *roots.values()][-1], code="invalid-hierarchy")
            )
    return tuple(sorted(parents.items())), problems


def _edges(document: Document, path: Steps, above: object = None) -> Iterator[tuple[Steps, object, object]]:
    """Yield (place, child, parent) below `above`; at the top, the value of a key is the key's parent."""
    for where, value in entries(document.data, *path):
        named, nested = isinstance(where[-1], str), isinstance(value, dict | list)
        if named and not (nested and above is None):
            yield where, where[-1], value if above is None else above
        if nested:
            yield from _edges(document, where, where[-1] if named else above)
        elif not named or above is not None:
            yield where, value, where[-1] if named else above


def tree_misfits(tree: ClassTree | None, classes: Sequence[str], place: Location | None) -> list[ValidationError]:
    """Return where a dataset's tree at `place` does not match the classes of the data."""
    if tree is None:
        return []
    nodes = dict.fromkeys(node for edge in tree for node in edge)
    messages = [f"class '{c}' is not in the hierarchy. Add it.{closest(c, nodes)}" for c in classes if c not in nodes]
    if not classes:
        messages = ["a hierarchy is over classes, and these data have none. Take it out."]
    return [ValidationError(message, place, code="invalid-hierarchy") for message in messages]
