"""The context of paradigms: a case in its process, with its modules, folder and clocks."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ianvs.base.errors import PluginError, shown_path
from ianvs.kubeedge import datafiles
from ianvs.kubeedge.calls import accepts, errors_in, positionals
from ianvs.kubeedge.case_storage import Snapshot
from ianvs.kubeedge.domain_lines import domain_lines
from ianvs.kubeedge.loading import load_metric, registered
from ianvs.kubeedge.provided.datasources import BaseDataSource
from ianvs.kubeedge.work import Module, Work
from ianvs.processes.proc import cpu_seconds

Report = Callable[[str], None]  # callback that receives the progress as text


class Case:
    """A case in this process.

    modules: modules of the algorithm file by type, in the form of KubeEdge Ianvs: instances, or {"method": name,
    "param": values} for modules without a file and for hard-example mining.
    """

    def __init__(self, work: Work, report: Report) -> None:
        self.work, self.report = work, report
        self.root = work.folder
        self.modules: dict[str, Any] = {}
        self.notes: list[str] = []
        self.clock: dict[str, dict[str, list[float]]] = {}  # round -> phase -> [seconds, CPU seconds]
        self.current_round = ""  # name of the running round; "" outside of rounds
        self.state: Any = None  # last state that the paradigm stored; None at the beginning of a case

    # Modules

    def build(self) -> None:
        """Instantiate the modules, in the order of the file. Afterwards state can be stored."""
        for module in self.work.modules:
            thing = registered(module) if module.url else None
            if module.type == "hard_example_mining" or (thing is None and module.type != "aggregation"):
                param = {"param": dict(module.values)} if module.values else {}
                self.modules[module.type] = {"method": module.name, **param}
            else:
                with self.calling(module.type, "constructor", module):
                    self.modules[module.type] = (thing or registered(module))(**module.values)
        os.environ["LOCAL_TEST"] = "TRUE"
        folders = [str(Path(module.url).absolute().parent) for module in self.work.modules if module.url]
        self._snapshot = Snapshot(self.root, folders)

    def required_modules(self, *types: str) -> Any:
        """Return the instance of a type, or a list for several types. Raises PluginError if one is missing."""
        for type_ in types:
            if type_ not in self.modules:
                raise PluginError(f"{self.work.paradigm} needs a module of type '{type_}'.", code="missing-module")
        instances = [self.modules[type_] for type_ in types]
        return instances[0] if len(types) == 1 else instances

    def instantiate(self, type_: str, *first: object, **more: object) -> Any:
        """Return the instance of a module, or a new one from {"method", "param"}; None without such a module.

        first, more: arguments of the constructor besides `param`; those that it does not accept are left out.
        """
        entry = self.modules.get(type_)
        module = self.work.module(type_)
        if not isinstance(entry, dict) or module is None:
            return entry() if isinstance(entry, type) else entry
        class_ = registered(module)
        given = {name: value for name, value in more.items() if accepts(class_, name)}
        with self.calling(type_, "constructor"):
            return class_(*first[: positionals(class_)], **given, **entry.get("param", {}))

    @contextmanager
    def calling(self, type_: str, method: str, module: Module | None = None) -> Iterator[None]:
        """Context manager: exceptions are reported as errors of this method of the module."""
        module = module or self.work.module(type_)
        plugin = type_ if module is None else f"{type_} '{module.name}'"
        file = Path(module.url).absolute() if module is not None and module.url else None
        where = f" ({shown_path(file)})" if file else ""
        with errors_in(f"{plugin}{where}, {method}", file):
            yield

    def metric(self) -> tuple[str, Callable[..., Any]]:
        return self.work.model_metric.name, load_metric(self.work.model_metric)

    # Data

    def data(self, which: str) -> str:
        """Return the "train" or "test" file, with absolute paths in it. Raises PluginError if none is named."""
        file = self.work.train if which == "train" else self.work.test
        if not file:
            raise PluginError(
                f"testenv: dataset has no {which} file, such as {which}_index or {which}_data.", code="missing-data"
            )
        return datafiles.absolute_index(file, self.root / "dataset" / f"{which}_index.txt", self.work.using)

    def domain_files(self, which: str) -> dict[str, str]:
        """Return an index of each domain in `using`, cut from the "train" or "test" file.

        If no line names a domain, they are parts of equal size in the order of the file.
        """
        file, using = Path(str(self.work.train if which == "train" else self.work.test)), self.work.using
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        parts = domain_lines(lines, using) or dict(zip(using, datafiles.parts_of(lines, len(using)), strict=True))
        targets = {name: self.root / "dataset" / f"{which}_domain-{i}.txt" for i, name in enumerate(using, 1)}
        return {name: datafiles.write_index(parts[name], file.parent, target) for name, target in targets.items()}

    def source(self, file: str, data_type: str, func: Callable[[str], object] | None = None) -> BaseDataSource:
        return datafiles.read(file, data_type, self.work.label, func)

    def pairs(self, kinds: tuple[str, str], n: int, *, by_domain: bool = False) -> list[tuple[str, str]]:
        """Return files for training and evaluation of each round.

        Args:
            kinds: Names of the files for training and for evaluation.
            n: Number of rounds.
            by_domain: Whether rounds are the domains of `using`, if there are any.
        """
        split = self.work.algorithm.data_setting(self.work.paradigm)
        assert split is not None  # for paradigms that need them
        files = self.domain_files("train").values() if by_domain and self.work.using else ()
        rounds = [Path(file).read_text(encoding="utf-8").splitlines() for file in files]
        return datafiles.write_pairs(
            self.data("train"), self.root / "dataset", kinds, split.splitting_method, split.train_ratio, n, rounds
        )

    def folder(self, *parts: str | int) -> str:
        """Return a folder below `output` in the case's folder; it is created if it is missing."""
        folder = self.root.joinpath("output", *map(str, parts))
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    # Time

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Context manager: count the time for a phase ("train", "predict", "evaluate") of the current round."""
        start, cpu = time.perf_counter(), cpu_seconds()
        try:
            yield
        finally:
            clock = self.clock.setdefault(self.current_round, {}).setdefault(phase, [0.0, 0.0])
            clock[0] += time.perf_counter() - start
            clock[1] += max(0.0, cpu_seconds() - cpu)

    def note(self, text: str) -> None:
        """Add a warning for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def round(self, name: str | int) -> Iterator[None]:
        """Context manager: errors and times are counted for this round."""
        self.current_round = str(name)
        self.report(f"round {name}")
        with errors_in(f"round {name}"):
            yield
        self.current_round = ""

    # Resuming after a kill

    def resume(self) -> bool:
        """Restore state, instances, clocks and notes of the last snapshot. Returns whether a snapshot existed."""
        stored = self._snapshot.resumed()
        vars(self).update(stored or {})
        return stored is not None

    def store_snapshot(self, state: object) -> None:
        """Store a snapshot from which a killed case continues."""
        stored = {"state": state, "modules": self.modules, "notes": self.notes, "clock": self.clock}
        if why := self._snapshot.keep(stored):
            self.note(f"A case that is interrupted starts over, since it can't be stored between rounds: {why}.")
