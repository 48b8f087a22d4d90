"""What can be told of a case before it runs: files that can't be imported, names that nobody registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from ianvs.base.errors import PluginError
from ianvs.kubeedge.loading import import_file, load_metric, prepare, registered
from ianvs.kubeedge.paradigms import find
from ianvs.kubeedge.work import METRICS, Metric, Work
from ianvs.kubeedge.yaml.file_models import PARADIGM_MODULES

__all__ = ["look", "problems"]


def look(question: Mapping[str, Any]) -> list[str]:
    """`problems`, of what came as JSON: "work", a Work as a mapping, and "metrics", pairs of name and url."""
    work = TypeAdapter(Work).validate_python(question["work"])
    return problems(work, [Metric(*pair) for pair in question["metrics"]])


def problems(work: Work, metrics: Sequence[Metric]) -> list[str]:
    """One sentence for each thing that would stop this case. Runs authors' code: for a process of its own.

    Nothing is constructed, and nothing is written but the folder W, if it is the working directory.
    """
    found: list[str] = []

    def tried(function: Callable[..., object], *args: object) -> None:
        try:
            function(*args)
        except PluginError as error:
            if str(error) not in found:
                found.append(str(error))

    tried(find, work.paradigm)
    prepare(work)
    for _, url in work.packages:
        tried(import_file, url)
    for module in work.modules:
        tried(registered, module)
    present = {module.type for module in work.modules}
    missing = [type_ for type_ in PARADIGM_MODULES.get(work.paradigm, ("basemodel",)) if type_ not in present]
    found += [f"{work.paradigm} needs a module of type '{type_}'." for type_ in missing]
    for metric in filter(None, [work.model_metric, *metrics]):
        if metric.url or metric.name not in METRICS:
            tried(load_metric, metric)
    return found
