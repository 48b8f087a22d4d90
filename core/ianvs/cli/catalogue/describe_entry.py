"""Detailed description of one name: its purpose, its source, its options with types and defaults, and its usage."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from pydantic import BaseModel

from ianvs.base.errors import IanvsError, closest, one_line
from ianvs.base.method_names import ALIASES, built_in, folded, qualified
from ianvs.base.package import shipped_jobs
from ianvs.cli.catalogue.name_registry import KINDS, WIDTH, Entry, listed
from ianvs.plugins.loader import cause, load
from ianvs.plugins.signature import Parameters, constructor_parameters

_MAX_INHERITED = 12  # inherited hyperparameters that are listed

_OptionRow = tuple[str, str, str]  # name, type, default


def describe_name(name: str, whole: bool = False) -> str:
    """Return the description of what a name stands for in the files, and a line for each other thing of the same name.

    Args:
        name: A name or an alias. If no kind of entry has it, case is ignored.
        whole: Include the options of base classes, and describe everything of this name.

    Raises:
        IanvsError: The name is unknown.
    """
    entries = [entry for kind in KINDS for entry in listed(kind)]
    matches = [entry for entry in entries if _is_meant(entry, name)]
    alike = [entry for entry in entries if folded(name) in map(folded, (entry.name, *entry.aliases))]
    others = [entry for entry in alike if entry not in matches]
    if not matches:
        matches = [entry for entry in alike if not entry.url] or alike[:1]
        others = [entry for entry in alike if entry not in matches]
    if not matches:
        names = [*ALIASES, *(other for entry in entries for other in (*entry.aliases, entry.name))]
        hint = closest(name, names) or f" `ianvs list {{{','.join(KINDS)}}}` shows all."
        raise IanvsError(f"unknown name '{name}'.{hint}", code="unknown-name")
    if whole:
        matches, others = [*matches, *others], []
    blocks = ["\n".join(_lines(entry, name, whole)) for entry in matches]
    if others:
        names = [_shown_name(entry) + _kind_unless(entry, matches[0].kind) for entry in others]
        blocks.append(f"Also {'; '.join(names)}: `ianvs show {name} --all`.")
    return ("\n\n" if whole else "\n").join(blocks)


def _is_meant(entry: Entry, name: str) -> bool:
    """Return whether a file that names an entry of this kind accepts `name` for it."""
    from ianvs.exam.metrics.registry import find
    from ianvs.exam.scenarios.scenario_catalogue import find_scenario

    if entry.kind == "algorithm":
        return built_in(name) == (entry.name, entry.url or None)
    if entry.kind == "metric":
        metric = find(name)
        return metric is not None and metric.name == entry.name
    if entry.kind == "scenario" and (scenario := find_scenario(name)) is not None:
        return scenario.names[0] == entry.name
    return entry.name == name


def _shown_name(entry: Entry) -> str:
    return (qualified(entry.value) if entry.url else "") or entry.name


def _kind_unless(entry: Entry, kind: str) -> str:
    return "" if entry.kind == kind else f" ({_with_article(entry.kind)})"


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind}"


def _lines(entry: Entry, query: str, whole: bool) -> Iterator[str]:
    origin = f", of the package {entry.package}" if entry.package else ""
    name = _shown_name(entry)
    alias = "" if folded(query) in (folded(entry.name), folded(name)) else f"{query}, alias of "
    yield f"{alias}{name}: {_with_article(entry.kind)}{origin}"
    yield from _algorithm(entry, whole) if entry.kind == "algorithm" else _BY_KIND[entry.kind](entry)


def _indented(text: str) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in text.splitlines())


def _table(title: str, rows: list[_OptionRow]) -> Iterator[str]:
    if not rows:
        yield f"  {title}: none"
        return
    yield f"  {title}:"
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, type_, default in rows:
        yield f"    {name:<{widths[0]}}  {type_:<{widths[1]}}  {default}".rstrip()


def _target(entry: Entry) -> Any:
    module, _, name = entry.value.partition(":")
    try:
        return load(module, name).target
    except Exception as error:
        raise IanvsError(f"{entry.value} can't be imported: {cause(error, None)}", code="unloadable-plugin") from error


def _doc(target: object) -> Iterator[str]:
    doc = target.__doc__ or inspect.getdoc(inspect.getmodule(target)) or ""  # a class inherits none so
    yield from _indented(inspect.cleandoc(doc))


def _annotated(annotation: object) -> str:
    return inspect.formatannotation(annotation).replace("collections.abc.", "").replace("typing.", "")


def _option_rows(parameters: Parameters) -> list[_OptionRow]:
    values = {name: _default_text(value) for name, value in parameters.defaults.items()}
    return [
        (name, _annotated(parameters.types[name]) if name in parameters.types else "", values.get(name, "required"))
        for name in parameters.names
    ]


def _default_text(value: object) -> str:
    """Return a default value as YAML."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return repr(list(value))
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _fields(model: type[BaseModel]) -> list[_OptionRow]:
    return [
        (name, _annotated(info.annotation), "required" if info.is_required() else _default_text(info.get_default()))
        for name, info in model.model_fields.items()
    ]


def _algorithm(entry: Entry, whole: bool) -> Iterator[str]:
    target = _target(entry)
    yield from _doc(target)
    bases = [
        base
        for base in (target.__mro__[1:] if isinstance(target, type) else ())
        if base.__module__.startswith("ianvs.") and "__init__" in vars(base) and base.__doc__
    ]
    rows = _option_rows(constructor_parameters(target))
    inherited = _option_rows(constructor_parameters(bases[0])) if bases and not whole else []
    yield from _table("hyperparameters", [row for row in rows if row not in inherited])
    if same := [row[0] for row in rows if row in inherited]:
        text = f"and those of {bases[0].__name__}: {one_line(same, _MAX_INHERITED)}; `ianvs show {entry.name} --all`"
        yield textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="      ")
    for base in bases if whole else ():
        yield f"  those of {base.__name__}:"
        yield from _doc(base)
    yield f"  in an algorithm's yaml: {{type: basemodel, name: {_shown_name(entry)}}}"
    yield from _also_called((alias, ALIASES[alias][1]) for alias in entry.aliases)
    yield f"  code: {entry.value}"


def _also_called(aliases: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield lines on aliases and their sources."""
    names = list(aliases)
    if len(names) > 1:
        yield "  also called:"
    for alias, source in names:
        indent = "    " if len(names) > 1 else "  also called: "
        yield textwrap.fill(f"{alias} ({source})", WIDTH, initial_indent=indent, subsequent_indent="      ")


def _scenario(entry: Entry) -> Iterator[str]:
    target = _target(entry)
    yield from _doc(target)
    if names := getattr(target, "names", ()):
        yield f"  names: {', '.join(names)}"
    yield from _table("options", _fields(target))
    yield f"  in a testenv: scenario: {{name: {entry.name}}}; docs/scenarios.md"


def _metric(entry: Entry) -> Iterator[str]:
    from ianvs.exam.metrics.metric_names import ALIASES as METRIC_ALIASES
    from ianvs.exam.metrics.table import describe

    row: Mapping[str, Any] = next(row for row in describe() if row["name"] == entry.name)
    yield from _indented("\n".join(str(row[key]) for key in ("summary", "formula", "source") if row.get(key)))
    yield f"  {row['level']}" + (f", {row['better']} is better" if row["better"] else "")
    for key in ("aliases", "needs"):
        if row[key]:
            yield f"  {key}: {', '.join(row[key])}"
    yield from _also_called((alias, source) for alias, (name, source) in METRIC_ALIASES.items() if name == entry.name)
    yield f"  in a testenv: metrics: [{entry.name}]"


def _dataset(entry: Entry) -> Iterator[str]:
    target = _target(entry)
    yield from _indented(entry.summary)
    yield from _table("options", _fields(target))
    if takes := getattr(target, "takes", ()):
        yield f"  takes also: {', '.join(takes)}"
    yield f"  in a testenv: dataset: {{name: {entry.name}}}"


def _data_type_or_evaluation_task(entry: Entry) -> Iterator[str]:
    """Describe a data type or an evaluation task."""
    target = _target(entry)
    yield from _doc(target)
    usage = f"in a testenv: evaluation_tasks: [{entry.name}]"
    if entry.kind == "data type":
        named = "read" in vars(target)
        usage = f"in a testenv: dataset: {{..., data_type: {entry.name}}}" if named else "detected from the labels"
    yield f"  {usage}; docs/data_types.md"


def _network(entry: Entry) -> Iterator[str]:
    from ianvs.authoring.backbone_choice import BackboneChoice
    from ianvs.authoring.preprocessing import published, torchvision_weights

    if entry.value:
        target = _target(entry)
        yield from _doc(target)
        rows = [row for row in _option_rows(constructor_parameters(target)) if row[2] != "required"]
    else:
        yield from _indented(entry.summary)
        rows = [*_option_rows(constructor_parameters(BackboneChoice))]
    yield from _table("options", rows)
    for weights in torchvision_weights(entry.name):
        options = ", ".join(f"{key} {value}" for key, value in published(entry.name, weights).items())
        yield f"  weights {weights}: {options}"
    yield f"  a hyperparameter: network: {{values: [{entry.name}]}}; its options are hyperparameters too"


def _paradigm(entry: Entry) -> Iterator[str]:
    from ianvs.config.spec import ParadigmSpec
    from ianvs.exam.paradigms import find_paradigm

    target = find_paradigm(ParadigmSpec(entry.name))
    yield from _doc(target)
    yield from _table("options", _fields(target.options) if target.options else [])
    yield f"  types of modules: {', '.join(target.modules)}"
    if target.measures:
        yield f"  columns: {', '.join(name.capitalize() for name in target.measures)}"
    yield f"  in an algorithm's yaml: paradigm_type: {entry.name}; docs/scenarios.md#paradigms"


def _engine(entry: Entry) -> Iterator[str]:
    yield from _indented(entry.summary)
    yield f"  in a job: engine: {entry.name}; or --engine {entry.name}"


def _job(entry: Entry) -> Iterator[str]:
    from ianvs.config.load import files_of_job

    file = shipped_jobs()[entry.name]
    comments = takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines())
    yield from _indented("\n".join(line.removeprefix("#").strip() for line in comments))
    yield "  files:"
    yield from _indented("\n".join(map(str, files_of_job(file))))
    yield f"  `ianvs -f {entry.name}` runs it; `ianvs jobs {entry.name}` prints its files;"
    yield f"  `ianvs new job NAME --from {entry.name}` writes a copy to change."


_BY_KIND: dict[str, Callable[[Entry], Iterator[str]]] = {
    "scenario": _scenario,
    "metric": _metric,
    "dataset": _dataset,
    "data type": _data_type_or_evaluation_task,
    "evaluation task": _data_type_or_evaluation_task,
    "network": _network,
    "paradigm": _paradigm,
    "engine": _engine,
    "job": _job,
}
