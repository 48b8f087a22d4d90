"""Scenarios by name: installed ones and those in an author's file."""

from ianvs.base.entry_points import entries, installed, is_ours
from ianvs.base.errors import PluginError, closest, one_line
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios.request import Scenario
from ianvs.plugins.loader import Loaded, load

ENTRY_POINTS = "ianvs.scenarios"


def find_scenario(name: str) -> type[Scenario] | None:
    """Return a scenario of ianvs by any of its names, ignoring case, with blanks or underscores for hyphens."""
    folded = name.casefold().replace("_", "-").replace(" ", "-")
    point = installed(ENTRY_POINTS).get(folded)
    if point is not None and is_ours(point):
        scenario: type[Scenario] = point.load()
        return scenario
    return next((kind for kind in _built_in_scenarios() if folded in map(str.casefold, kind.names)), None)


def _built_in_scenarios() -> list[type[Scenario]]:
    return [point.load() for point in entries(ENTRY_POINTS) if is_ours(point)]


def is_authors(spec: ScenarioSpec) -> bool:
    """Return whether an author's code defines the scenario."""
    return spec.url is not None or (find_scenario(spec.name) is None and spec.name in installed(ENTRY_POINTS))


def load_authors_scenario(spec: ScenarioSpec) -> Loaded:
    """Return the class of an author or a package. Raises PluginError if there is none."""
    if spec.url is None and spec.name not in (scenarios := installed(ENTRY_POINTS)):
        names = [*(name for kind in _built_in_scenarios() for name in kind.names), *scenarios]
        message = f"there is no scenario '{spec.name}'.{closest(spec.name, names)} There are: {one_line([*scenarios])}."
        raise PluginError(f"{message} One of your own needs the `url` of its file.", code="unknown-scenario")
    loaded = load(None if spec.url is None else str(spec.url), spec.name, ENTRY_POINTS)
    if isinstance(loaded.target, type) and issubclass(loaded.target, Scenario):
        return loaded
    raise PluginError(f"'{spec.name}' is no subclass of ianvs.exam.scenarios.Scenario.", code="unknown-scenario")
