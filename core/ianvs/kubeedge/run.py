"""Runs one case of the contract `ianvs` in this process, which is used for nothing else; or checks it."""

import multiprocessing.process
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ianvs.base.errors import PluginError
from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.case_storage import Snapshot, begin_anew, read_outcome, seed_everything, write_outcome
from ianvs.kubeedge.loading import import_file, import_modules, load_metric, prepare, registered
from ianvs.kubeedge.paradigms import PARADIGMS
from ianvs.kubeedge.paradigms.mining_free import lacking_methods
from ianvs.kubeedge.plugin_case import Case, Report
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_METRICS
from ianvs.kubeedge.yaml.settings import ModelMetric

_LONGEST = 107 - len("/pymp-12345678/listener-12345678")  # appended by multiprocessing


def run(work: Work, report: Report = lambda text: None) -> None:
    """Run or resume a case, and store its outcome below W. A finished case does nothing.

    This process is changed permanently: sys.path, sys.meta_path, the environment, the working directory. report:
    receives the progress as text. Raises PluginError with round, client and module for errors of a plugin, DataError
    for unreadable data.
    """
    if read_outcome(work.folder) is not None:
        return
    paradigm = PARADIGMS[work.paradigm]
    root = work.folder
    interrupted = Snapshot.is_there(root)
    if not interrupted:
        begin_anew(root)
    temporary = root / "tmp"
    _temporary_files_below(temporary)
    prepare(work)
    seed_everything(work.seed)
    import_modules(work)
    note = _without_gpu(work.exam.min_compute_capability)
    case = _fresh(work, report)
    if interrupted and not case.resume():
        begin_anew(root)
        case = _fresh(work, report)
    if note:
        case.note(note)
    outcome = paradigm(case)
    case.report("storing the result")
    objects = {"result": outcome.result, "system": outcome.system}
    numbers = {
        **outcome.numbers(),
        "labels_file": outcome.labels_file or (case.data("test") if work.test else None),
        "paradigm": work.paradigm,
        "seconds": {name: {p: c[0] for p, c in phases.items()} for name, phases in case.clock.items()},
        "cpu_seconds": {name: {p: c[1] for p, c in phases.items()} for name, phases in case.clock.items()},
        "notes": case.notes,
    }
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        write_outcome(root, numbers, objects)
    except Exception as error:  # authors' objects may raise anything
        raise PluginError(
            f"the result can't be stored for the metrics, which run in a process of their own: "
            f"{type(error).__name__}: {error}. Let predict return arrays, lists, mappings, numbers or texts.",
            code="broken-contract",
        ) from error


def _without_gpu(least: float | None) -> str:
    """Return a note for a machine without a GPU. Raises PluginError for a GPU below `min_compute_capability`."""
    if least is None:
        return ""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return f"min_compute_capability {least} is not met: no GPU was used."
    major, minor = torch.cuda.get_device_capability()
    if major + minor / 10 < least:
        raise PluginError(
            f"the GPU has the compute capability {major}.{minor}; min_compute_capability is {least}. Take another GPU.",
            code="missing-device",
        )
    return ""


def _usable(module: Module) -> None:
    """Raise PluginError for a module that can't be loaded, or lacks methods that joint inference calls."""
    if lacking := lacking_methods(module.type, registered(module)):
        raise PluginError(f"{module.type} '{module.name}': {lacking}", code="broken-contract")


def _temporary_files_below(folder: Path) -> None:
    """Make tempfile write there only.

    Sockets between a plugin's worker processes, such as those of a DataLoader, may have 107 bytes in their path. If the
    folder's own path is too long, they use this process's handle of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    if len(str(folder)) > _LONGEST and Path("/proc/self/fd").is_dir():
        handle = os.open(folder, os.O_RDONLY)  # never closed, since the process only runs this case
        vars(multiprocessing.process.current_process())["_config"]["tempdir"] = f"/proc/{os.getpid()}/fd/{handle}"


def _fresh(work: Work, report: Report) -> Case:
    """Return the case with new instances.

    It is seeded here, too, since imports may have drawn numbers or loaded torch.
    """
    Path(tempfile.gettempdir()).mkdir(parents=True, exist_ok=True)
    seed_everything(work.seed)
    case = Case(work, report)
    case.build()
    return case


def problems(question: tuple[Work, Sequence[MetricSpec]]) -> list[str]:
    """Return a sentence for each problem that would stop a case with these metrics.

    Nothing is constructed, and nothing is written but the folder W, if it is the working directory.
    """
    work, metrics = question
    named: list[MetricSpec | ModelMetric] = [work.model_metric] if work.model_metric.name else []
    theirs = [metric for metric in (*named, *metrics) if metric.url or metric.name not in KUBEEDGE_METRICS]
    packages = [str(package.url or "") for package in work.algorithm.third_party_packages]
    loads: list[Callable[[], object]] = [partial(import_file, url) for url in packages]
    loads += [partial(_usable, module) for module in work.modules]
    loads += [partial(load_metric, metric) for metric in theirs]
    messages = []
    prepare(work)
    for load in loads:
        try:
            load()
        except PluginError as error:
            messages.append(str(error))
    return list(dict.fromkeys(messages))
