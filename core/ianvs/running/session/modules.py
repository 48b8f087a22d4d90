"""Plugin objects of a case: creates, calls, saves and restores them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ianvs.base.errors import ExamRuleError, PluginError, closest
from ianvs.base.types import Measure, TestCase
from ianvs.config.contracts import interpreter_of
from ianvs.config.spec import AlgorithmSpec
from ianvs.exam.scenarios.exam import Rules
from ianvs.plugins.contract import CONTEXT
from ianvs.plugins.loader import Loaded, place_for_others
from ianvs.plugins.missing_folders import missing_folder_text
from ianvs.plugins.signature import named_arguments
from ianvs.processes.interpreters.author_object import load_in
from ianvs.running.planning.cases import own_hyperparameters
from ianvs.running.planning.named_files import absolute_paths
from ianvs.running.session.generators import start_generators
from ianvs.store import StoredModule


@dataclass(frozen=True)
class TrainingHistory:
    """Training history of a module. calls: number of calls. seen, new: class indices in all calls, in the last."""

    calls: int = 0
    seen: tuple[int, ...] = ()
    new: tuple[int, ...] = ()


class AuthorsModule:
    """One plugin object; all of its methods are called through this class."""

    def __init__(self, kind: str, instance: str, plugin: Any, loaded: Loaded, rules: Rules) -> None:
        """rules: of the exam, for error messages."""
        self.kind, self.instance, self.plugin = kind, instance, plugin
        self._loaded, self._rules = loaded, rules
        self.name = type(plugin).__name__
        self.taught = TrainingHistory()
        self._adapts = bool(getattr(plugin, "adapts_in_testing", False))

    @property
    def adapts(self) -> bool:
        """Whether it learns during tests, as declared when it was created. Raises PluginError if that has changed."""
        if bool(getattr(self.plugin, "adapts_in_testing", False)) != self._adapts:
            raise PluginError(
                f"{self.name}.adapts_in_testing was {self._adapts} when it was built and is {not self._adapts} now. "
                "Make it a class attribute that stays as it is.",
                code="broken-contract",
            )
        return self._adapts

    def call(self, method: str, arguments: tuple[Any, ...], offered: Mapping[str, Any]) -> Any:
        """Call `method` with those of the `offered` arguments that it names."""
        function = getattr(self.plugin, method, None)
        if not callable(function):
            raise PluginError(f"{self.name} has no method {method}().", code="broken-contract")
        given = named_arguments(function, offered)
        try:
            with self._loaded.active():
                return function(*arguments, **given)
        except (TypeError, KeyError) as error:
            hidden = [name for name in CONTEXT if name not in offered and f"'{name}'" in str(error)]
            missing = isinstance(error, KeyError) or "required" in str(error)
            if hidden and missing:
                raise ExamRuleError(self._hidden(hidden[0], method), code="broken-rule") from error
            raise

    def save(self, path: Path) -> Path | None:
        """Call save(path). Returns the path for load(); None if the plugin has no save()."""
        if not callable(getattr(self.plugin, "save", None)):
            return None
        try:
            with self._loaded.active():
                written = self.plugin.save(path)
        except (OSError, RuntimeError) as error:
            if (folder := _missing_folder(error)) is None:
                raise
            raise PluginError(missing_folder_text(self.name, folder), code="missing-file") from error
        written = Path(written) if isinstance(written, str | Path) else path
        return written if written.is_relative_to(path.parent) else path

    def load(self, path: Path | str) -> None:
        with self._loaded.active():
            self.plugin.load(path)

    def _hidden(self, name: str, method: str) -> str:
        asks = f"{self.name}.{method}() asks for '{name}'"
        rules = self._rules
        if name not in ("task", "task_classes"):
            return f"{asks}, which the rules of this exam do not show."
        when = "in testing" if method == "predict" else "in training"
        if rules.task_in_training and rules.task_in_testing:
            return f"{asks}, but the answers of {rules.scenario} are not chosen among the classes of a task."
        return f"{asks}, but {rules.scenario} hides the identity of the task {when}."


def _missing_folder(error: Exception) -> str | None:
    """Return the missing folder that a file was to be written into; None for other errors."""
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str | bytes | Path):
        folder = Path(os.fsdecode(error.filename)).parent
        return None if folder.exists() else str(folder)
    match = re.search(r"Parent directory (.+) does not exist", str(error))  # of torch.save
    return match[1].strip("'\"") if match else None


class Modules:
    """All modules of a case so far, by type and name of the instance."""

    def __init__(self, algorithm: AlgorithmSpec, case: TestCase, rules: Rules, home: Path) -> None:
        """home: base of relative paths among hyperparameters."""
        self._algorithm, self._case, self._rules, self._home = algorithm, case, rules, home
        self._loaded: dict[str, Loaded] = {}
        self._made: dict[tuple[str, str], AuthorsModule] = {}
        self.remarks: set[str] = set()  # messages of ianvs

    def __iter__(self) -> Iterator[AuthorsModule]:
        return iter(self._made.values())

    def get(self, kind: str, instance: str = "", *, fresh: bool = False) -> AuthorsModule:
        """Return the module of this type and name; it is created if it is missing, or if `fresh`.

        Each starts with the same random numbers, so that its initial state does not depend on the time of creation.
        """
        if fresh or (kind, instance) not in self._made:
            self.import_class(kind)  # and what has generators of its own
            start_generators(self._case.seed, "global")
            self._made[kind, instance] = self._build(kind, instance)
        return self._made[kind, instance]

    def has(self, kind: str) -> bool:
        return any(module.type == kind for module in self._algorithm.modules)

    def save(self, folder: Path) -> list[StoredModule]:
        """Save every module into a subfolder of `folder`."""
        stored = []
        for number, module in enumerate(self):
            place = folder if number == 0 else folder / str(number)
            place.mkdir(exist_ok=True)
            path = module.save(place / "model")
            stored.append(StoredModule(module.kind, module.instance, path, **vars(module.taught)))
        return stored

    def restore(self, stored: tuple[StoredModule, ...], *, taught: bool, fresh: bool) -> None:
        """Restore every stored module. taught: also restore its training counts.

        fresh: in new objects, which have only the saved state.
        """
        before = set() if fresh else {(entry.kind, entry.instance) for entry in stored}
        self._made = {key: module for key, module in self._made.items() if key in before}
        for entry in stored:
            module = self.get(entry.kind, entry.instance)
            if entry.path is not None:
                module.load(entry.path)
            if taught:
                module.taught = TrainingHistory(entry.calls, entry.seen, entry.new)

    def without_instances(self) -> Modules:
        """Return a collection for the same case without any object."""
        return Modules(self._algorithm, self._case, self._rules, self._home)

    def copied(self, stored: list[StoredModule] | None) -> Modules:
        """Return new objects of the same classes with the saved state; None: in their initial state."""
        copy = self.without_instances()
        copy._loaded = self._loaded
        paths = {(entry.kind, entry.instance): entry.path for entry in stored or ()}
        for key, module in self._made.items():
            copy._made[key] = self._build(*key, paths.get(key))
            copy._made[key].taught = module.taught
        return copy

    @property
    def sees_past_rounds(self) -> bool:
        """Whether a class declares that it gets all rounds so far, as an upper bound."""
        return any(bool(getattr(module.plugin, "sees_past_rounds", False)) for module in self)

    def _build(self, kind: str, instance: str, path: Path | None = None) -> AuthorsModule:
        """Create an object and load `path`; without a path, a base model loads the initial model."""
        loaded = self.import_class(kind)
        kinds = [module.type for module in self._algorithm.modules]
        with loaded.active() as build:
            given = own_hyperparameters(self._case.hyperparameters, kind, kinds)
            plugin = build(**{name: absolute_paths(value, self._home) for name, value in given.items()})
        made = AuthorsModule(kind, instance, plugin, loaded, self._rules)
        model = self._algorithm.initial_model if path is None and kind == "basemodel" else path
        if model is not None:
            made.load(model)
        return made

    def import_class(self, kind: str) -> Loaded:
        """Import the class of this type of module. Raises PluginError."""
        types = {module.type: module for module in self._algorithm.modules}
        if kind not in types:
            listed = f"It lists: {', '.join(types)}."
            raise PluginError(
                f"the algorithm {self._algorithm.name} has no module of type '{kind}'.{closest(kind, types)} {listed}",
                code="missing-module",
            )
        if kind not in self._loaded:
            self._loaded[kind] = load_in(interpreter_of(self._algorithm), types[kind].url, types[kind].name)
            place_for_others(str(getattr(self._loaded[kind].target, "__module__", "")))
        return self._loaded[kind]


def declared_measures(modules: Iterable[AuthorsModule], taken: Iterable[str]) -> dict[str, Measure]:
    """Return the measures that modules declare. taken: names of the paradigm's measures. Raises PluginError."""
    declared: dict[str, Measure] = {}
    for module in modules:
        measures = getattr(module.plugin, "measures", None)
        if measures is None or callable(measures):
            continue
        if not isinstance(measures, Mapping) or not all(isinstance(measure, Measure) for measure in measures.values()):
            raise PluginError(
                f"{module.name}.measures must be a dict: name -> ianvs.base.types.Measure.", code="broken-contract"
            )
        if twice := sorted(set(measures) & {*taken, *declared}):
            raise PluginError(
                f"{module.name}.measures has '{twice[0]}', which is measured already. Rename it.",
                code="duplicate-column",
            )
        declared |= measures
    return declared


def checked_measures(module: AuthorsModule, values: object) -> dict[str, float]:
    """Validate the result of `measured`: a finite number for each name, which must be declared."""
    declared = module.plugin.measures
    caller = f"{module.name}.measured()"
    if not isinstance(values, Mapping):
        raise PluginError(
            f"{caller} returned {type(values).__name__}: return a dict, name -> number.", code="invalid-result"
        )
    for name, value in values.items():
        if name not in declared:
            raise PluginError(
                f"{caller} returned '{name}', which is not in its `measures`.{closest(str(name), declared)}",
                code="invalid-result",
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PluginError(
                f"{caller} returned {value!r} as '{name}': a finite number is needed.", code="invalid-result"
            )
    return {name: float(value) for name, value in values.items()}
