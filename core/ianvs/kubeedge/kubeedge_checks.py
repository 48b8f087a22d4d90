"""Checks of jobs under `contract: ianvs`.

Each missing thing is reported once: data, packages, unregistered names; and settings that a paradigm does not support.
Authors' files are imported, by other processes, only if nothing else is wrong.
"""

import ast
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.entry_points import installed
from ianvs.base.errors import DataError, Location, ValidationError, closest, one_line, shown_path
from ianvs.base.secrets import is_secret
from ianvs.config.contracts import ContractCase
from ianvs.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ModuleSpec, SourceSpec, TestEnvSpec
from ianvs.kubeedge.missing_names import missing_names
from ianvs.kubeedge.needed_packages import missing_packages, registered_names, unset_keys
from ianvs.kubeedge.work import metrics_of, work_of
from ianvs.kubeedge.yaml.file_models import (
    MINING,
    MINING_MODES,
    MULTI_INFERENCE_MODULES,
    SCHEME,
    SCHEMES,
    UNSUPPORTED_PARADIGMS,
)
from ianvs.kubeedge.yaml.settings import ExamSettings

_BUILT_IN: dict[str, tuple[str, ...]] = {  # names that need no file, by type of module
    **dict.fromkeys(("basemodel", "edgemodel", "cloudmodel", "drafter", "verifier", "dataset_processor"), ()),
    "hard_example_mining": ("Threshold", "CrossEntropy", "IBT", "Random"),
    "aggregation": ("FedAvg",),
}
_EXPORT = "If the plugin needs it, export it before the run."
_READS_JSON = "pycocotools"
_ONE_PART_MORE = ("fwt_splitting", "hard-example_splitting")  # than rounds


def _data_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Check the files of samples that the paradigms read."""
    from ianvs.kubeedge import datafiles
    from ianvs.kubeedge.plugin_files import file_problems

    for exam in job.testenvs:
        yield from (file_errors := file_problems(_read(job, exam)))
        for source in _read(job, exam) if not file_errors and not exam.contract_settings.if_mode_llm else ():
            if source.form in ("jsonl", "metadata"):  # the content of other files is known only to the plugin
                try:
                    datafiles.read(str(source.path), "inference")
                except (DataError, ValueError) as error:
                    yield ValidationError(f"{error} Mend the record.", source.place, code="invalid-record")


def _read(job: JobSpec, exam: TestEnvSpec) -> list[SourceSpec]:
    trains = any(algorithm.paradigm.name != "jointinference" for algorithm in job.algorithms)
    return [*(exam.dataset.train if trains else ()), *exam.dataset.test]


# --- settings -----------------------------------------------------------------------------------------------------


def setting_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Check settings and data that a paradigm of KubeEdge Ianvs does not support."""
    for algorithm in job.algorithms:
        if (name := algorithm.paradigm.name) in UNSUPPORTED_PARADIGMS:
            why = f"ianvs does not support the paradigm '{name}'. Run this job with KubeEdge Ianvs itself."
            yield ValidationError(why, algorithm.paradigm.place, code="unsupported-by-contract")
        for module in algorithm.modules:
            built_in = tuple(installed(SCHEMES)) if module.type == SCHEME else _BUILT_IN.get(module.type)
            if module.url is None and built_in is not None and module.name not in built_in:
                but = f", and is not built in: {', '.join(built_in)}" if built_in else ""
                message = f"{module.type} '{module.name}' has no url{but}. Write the path of its python file."
                yield ValidationError(message, _place(module), code="missing-key")
        for exam in job.testenvs:
            yield from _between(algorithm, exam)
    yield from _unknown_columns(job)
    yield from _data_problems(job)


def _unknown_columns(job: JobSpec) -> Iterator[ValidationError]:
    """Check rank.selected_output_columns for names that are not columns of selected_rank.csv."""
    columns = ["rank", "algorithm", "paradigm", "time", "url", "Round", "Dataset", "Seeds", "Status"]
    columns += [metric.name for exam in job.testenvs for metric in exam.metrics]
    for module in (module for algorithm in job.algorithms for module in algorithm.modules):
        columns += [module.type, *(f"{module.type}-{name}" for name, _ in module.grid)]
    for name in job.rank.selected_output_columns:
        if name not in columns:
            message = f"rank.selected_output_columns names '{name}', which is no column.{closest(name, columns)}"
            yield ValidationError(message, Location(job.file), code="unknown-column")


def _between(algorithm: AlgorithmSpec, exam: TestEnvSpec) -> Iterator[ValidationError]:
    settings: ExamSettings = exam.contract_settings
    paradigm, metric = algorithm.paradigm.name, settings.model_eval.model_metric
    mode = settings.hard_example_mining_mode
    has_scheme = any(module.type == SCHEME for module in algorithm.modules)
    if paradigm == "jointinference" and mode not in MINING_MODES and not has_scheme:
        message = (
            f"hard_example_mining_mode should be one of {', '.join(MINING_MODES)}, found '{mode}'. Another way "
            f"to answer is a module of the type {SCHEME} (docs/ianvs.md)."
        )
        yield ValidationError(message, exam.places.get("hard_example_mining_mode", exam.place), code="invalid-choice")
    types = [module.type for module in algorithm.modules]
    needed = MINING_MODES["self-design" if has_scheme else mode] if has_scheme or mode in MINING_MODES else ()
    if paradigm == "jointinference" and (absent := [type_ for type_ in needed if type_ not in types]):
        message = f"hard_example_mining_mode '{mode}' needs modules of the types {', '.join(absent)}. Add them."
        yield ValidationError(message, algorithm.places.get("modules", algorithm.place), code="missing-module")
    if paradigm == "incrementallearning" and MINING not in types:
        message = (
            f"nothing would be trained: {paradigm} trains on the samples that a module of type {MINING} picks, and "
            "there is none. Add one (IBT and Threshold need no url), or take paradigm_type singletasklearning."
        )
        yield ValidationError(message, algorithm.places.get("modules", algorithm.place), code="missing-module")
    if exam.dataset.using:
        yield from _domain_problems(algorithm, exam)
    place = metric.place or exam.places.get("model_eval", exam.place)
    lifelong = paradigm == "lifelonglearning"
    lacking = [kind for kind in MULTI_INFERENCE_MODULES if kind not in types]
    if lifelong and metric.mode == "multi-inference" and lacking:
        message = f"mode multi-inference needs modules of the types {', '.join(lacking)}. Add them."
        yield ValidationError(message, algorithm.places.get("modules", algorithm.place), code="missing-module")
    judges = lifelong or paradigm in ("incrementallearning", "federatedclassincrementallearning")
    if judges and metric.mode != "multi-inference" and (not metric.name or metric.url is None):
        message = f"{paradigm} judges models by model_eval.model_metric. Write its name and url there."
        yield ValidationError(message, place, code="missing-key")
    if judges and metric.name and metric.url is not None and not metric.url.exists():
        message = f"there is no file {shown_path(metric.url)}, which should define the metric '{metric.name}'."
        yield ValidationError(message, metric.places.get("url", place), code="missing-file")
    method = algorithm.split.splitting_method if algorithm.split is not None else "default"
    if lifelong and metric.mode in ("no-inference", "hard-example-mining") and method not in _ONE_PART_MORE:
        message = (
            f"mode {metric.mode} needs one part of the data more than incremental_rounds, for the round before the "
            f"first; splitting_method '{method}' makes none. Take {' or '.join(_ONE_PART_MORE)}."
        )
        yield ValidationError(
            message, algorithm.places.get("lifelong_learning_data_setting", algorithm.place), code="unfit-module"
        )


def _domain_problems(algorithm: AlgorithmSpec, exam: TestEnvSpec) -> Iterator[ValidationError]:
    """Check that the index files have the domains of `using`, and the job a round for each."""
    from ianvs.kubeedge.domain_lines import domain_lines

    using, data = tuple(exam.dataset.using), exam.dataset
    place = data.places.get("using", data.place)
    if algorithm.paradigm.name != "incrementallearning":
        message = f"`using` only fills the column Dataset: {algorithm.paradigm.name} has no round for each domain."
        yield ValidationError(message, place, warning=True, code="doubtful-data")
        return
    method = algorithm.split.splitting_method if algorithm.split is not None else "default"
    if method != "default":
        message = (
            f"each domain of `using` is a round, so splitting_method is default; found {method}. Keep one of them."
        )
        yield ValidationError(message, place, code="conflicting-keys")
    seen = {}
    for source in (source for source in (*data.train[:1], *data.test[:1]) if source.path.is_file()):
        lines = source.path.read_text(encoding="utf-8", errors="replace").splitlines()
        seen[source.path] = {name for name, part in domain_lines(lines, using).items() if part}
    if not any(seen.values()):
        message = (
            f"no line of the index files names a domain of `using`, by a third column or a folder: both are cut into "
            f"{len(using)} parts of equal size in the order of their lines."
        )
        yield ValidationError(message, place, warning=True, code="doubtful-data")
        return
    for path, names in seen.items():
        if absent := [name for name in using if name not in names]:
            message = f"no line of {shown_path(path)} names the domain {one_line(absent)}. Add a third column with it."
            yield ValidationError(message, place, code="unknown-domain")


def import_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Import the files of modules and metrics, those of each algorithm in a separate process, and yield errors."""
    from ianvs.processes.isolated import IsolatedCallError, ask_isolated

    for exam in job.testenvs:
        for algorithm in job.algorithms:
            place = algorithm.place or Location(algorithm.file)
            with tempfile.TemporaryDirectory() as folder:
                below = Path(folder)
                work = work_of(ContractCase(algorithm, exam, {}, 0, (), below, below, job.working_directory))
                try:
                    question = work, metrics_of(exam.metrics)
                    messages = ask_isolated("ianvs.kubeedge.run:problems", question, job.limits.check_seconds)
                except IsolatedCallError as error:
                    messages = [f"importing its files {error}" + ("" if error.overran else ".")]
            yield from (
                ValidationError(f"{algorithm.name}: {message}", place, code="unloadable-plugin") for message in messages
            )


# --- plugins ------------------------------------------------------------------------------------------------------


def code_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Yield errors of syntax, unregistered names, and missing packages; nothing is imported."""
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    # Folders where modules and metrics search imports.
    urls = [Path(module.url) for module in modules if module.url]
    home = [job.working_directory] if job.working_directory else []
    folders = list(dict.fromkeys([*(url.parent for url in urls), *home]))
    seen: set[tuple[Path, str]] = set()
    files: list[Path] = []
    plugins: list[tuple[str, ModuleSpec | MetricSpec]] = [(module.type, module) for module in modules]
    plugins += [("metric", metric) for exam in job.testenvs for metric in exam.metrics]
    for kind, plugin in plugins:
        name, url = plugin.name, Path(plugin.url or "")
        file = url / "__init__.py" if url.is_dir() else url
        if plugin.url is None or (url, name) in seen or not file.is_file():
            continue
        seen.add((url, name))
        if (syntax := _syntax(file)) is not None:
            yield syntax
            continue
        files.append(file)
        names = registered_names(file, folders)
        if names is not None and name not in names:
            there_are = f" It registers: {one_line(sorted(names))}." if names else " It registers nothing."
            yield ValidationError(
                f"{shown_path(url)} registers no {kind} under the name '{name}'.{there_are}",
                _place(plugin),
                code="unregistered-name",
            )
    for key, path, line in unset_keys(files, folders):
        message = f"the variable {key}, which is read here, is not set. {_EXPORT}"
        yield ValidationError(message, Location(path, line, 1), warning=True, code="unset-variable")
    for module in modules:
        for name, values in module.grid:
            named = map(str, values if name.endswith("_env") and is_secret(name) else ())
            for key in (key for key in named if not os.environ.get(key)):
                yield ValidationError(
                    f"{name}: the variable {key} is not set. {_EXPORT}",
                    module.place,
                    warning=True,
                    code="unset-variable",
                )
    lacking = missing_packages(list(dict.fromkeys(files)), folders)
    for missing in lacking:
        where = "a function in " if missing.lazily else ""
        message = f"{where}this file imports '{missing.name}', which is not installed. {missing.remedy}"
        yield ValidationError(
            message, Location(missing.file, missing.line, 1), warning=missing.lazily, code="missing-package"
        )
    for lost in missing_names(list(dict.fromkeys(files)), folders):
        message = f"this file imports the name '{lost.name}' from {shown_path(lost.source)}, which does not define it."
        yield ValidationError(message, Location(lost.file, lost.line, 1), code="missing-name")
    read = [source for exam in job.testenvs for source in _read(job, exam) if source.form == "json"]
    settled = (
        any(missing.name == _READS_JSON for missing in lacking) or importlib.util.find_spec(_READS_JSON) is not None
    )
    if read and not settled:
        message = f"a json of samples is read by '{_READS_JSON}', which is not installed."
        yield ValidationError(
            f"{message} Install it (pip install {_READS_JSON}).", read[0].place, code="missing-package"
        )


def _place(named: ModuleSpec | MetricSpec) -> Location | None:
    return named.places.get("name", named.place)


def _syntax(file: Path) -> ValidationError | None:
    try:
        ast.parse(file.read_bytes())
    except SyntaxError as error:
        return ValidationError(
            f"this is not Python: {error.msg}.",
            Location(file, error.lineno or 0, error.offset or 0),
            code="invalid-syntax",
        )
    except ValueError as error:
        return ValidationError(f"this is not Python: {error}.", Location(file), code="invalid-syntax")
    except OSError as error:
        message = f"the file can't be read: {error.strerror}. Make it readable."
        return ValidationError(message, Location(file), code="unreadable-file")
    return None
