"""Identity of a result: the facts that determine it.

Included: the data, the exam's rules and rounds, the source of an author's scenario, the algorithm's source, its
hyperparameters with the content of files that they name, the seed, the number of threads (which changes the last bits),
whether a server writes the replies, with its version, and the version of this recipe. Not included: names and places of
files, key order, the spelling of numbers, comments in yaml, the number of jobs, the engine, the device's index, the
list of metrics, the url of a server.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from ianvs.base.entry_points import installed, is_ours
from ianvs.config.contracts import contract_named
from ianvs.config.models.contract_name import GROUP as CONTRACTS
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import AlgorithmSpec, GateSpec, JobSpec, MetricSpec, TestEnvSpec
from ianvs.exam.metrics.registry import foreign_module, metric_header
from ianvs.exam.paradigms import GROUP, PARADIGMS
from ianvs.exam.scenarios.scenario_catalogue import ENTRY_POINTS, is_authors
from ianvs.plugins.loader import ENTRY_POINTS as ALGORITHMS
from ianvs.plugins.source import source_of
from ianvs.processes.interpreters.lock import lock_of
from ianvs.running.inspector import ParadigmFacts
from ianvs.running.planning.cases import with_prefixes
from ianvs.running.planning.named_files import content_digest, named_files
from ianvs.store.keys import digest

IDENTITY_VERSION = 4
"""Raised if a change of ianvs changes results, so that earlier results are not used in place of new ones."""

Plugin = tuple[str | None, str, str, Path]
"""The arguments of `source_of`: url, name, group, the folder whose modules belong to the job's authors."""

_REDEFINED = {"lexical_similarity": 2, "semantic_similarity": 2}  # version of built-in data: 1 had values from 0 to 100


def exam_identity(
    exam: TestEnvSpec, algorithm: AlgorithmSpec, paradigm: ParadigmFacts, dataset_fingerprint: str
) -> dict[str, object]:
    """Return what determines the rounds and test sets of `algorithm`."""
    scenario = exam.scenario
    options = {} if scenario is None else dict(scenario.options)
    if isinstance(file := options.get("file"), str):  # a file of a scenario counts by its content
        options["file"] = content_digest(Path(file))
    facts: dict[str, object] = {
        "version": IDENTITY_VERSION,
        "dataset": dataset_fingerprint,
        "scenario": None if scenario is None else {"name": scenario.name, **options},
        "using": list(exam.dataset.using),
        "incremental_rounds": exam.incremental_rounds,
        "splitting_method": algorithm.split.splitting_method if algorithm.split else "default",
        "as_one": paradigm.as_one,
    }
    if scenario is not None and is_authors(scenario):  # a change of a built-in one needs another IDENTITY_VERSION
        url = None if scenario.url is None else str(scenario.url)
        if source := source_of(url, scenario.name, ENTRY_POINTS):
            facts["scenario_source"] = source
    facts |= {task.name: True for task in exam.all_evaluation_tasks}
    if exam.prequential is not None:
        facts["prequential"] = {name: value for name, value in vars(exam.prequential).items() if name != "stream_cost"}
    written = [(task.name, task.url) for task in exam.evaluation_tasks]
    written += [(type_spec.name, type_spec.url)] if (type_spec := exam.dataset.data_type) else []
    facts |= {f"source of {name}": source_of(str(url), name) for name, url in written if url is not None}
    contract = exam.metrics[0].contract if exam.metrics else NATIVE  # all have that of the job
    if contract != NATIVE:
        facts |= _digestible(contract_named(contract).exam_identity(exam))
    return facts


def algorithm_identity(
    job: JobSpec, exam: TestEnvSpec, algorithm: AlgorithmSpec, paradigm: ParadigmFacts
) -> dict[str, object]:
    """Return what determines a result besides the exam, the hyperparameters and the seed."""
    spec, train_ratio = algorithm.paradigm, 1.0 if exam.gate is None else 0.8  # the rest is for `model_eval`
    if algorithm.split is not None:
        train_ratio = algorithm.split.train_ratio
    model, cache = algorithm.initial_model, job.workspace / "cache"
    facts: dict[str, object] = {
        "version": IDENTITY_VERSION,
        "paradigm": {"name": spec.name, "options": dict(spec.options)},
        "modules": {module.type: module.name for module in algorithm.modules},
        "source": algorithm_source(job, algorithm),
        "train_ratio": train_ratio,
        "model_eval": None if paradigm.reference or exam.gate is None else _digest_value(exam.gate),
        "initial_model": content_digest(model, cache) if isinstance(model, Path) else model,  # else its name
        "threads": job.threads,
    }
    hyperparameters = {name for module in algorithm.modules for name in (*module.constants, *dict(module.grid))}
    if hyperparameters and (files := named_files(job, algorithm)):
        facts["weights"] = files
    if "weights" in hyperparameters and (pictures := published_pictures(algorithm)):
        facts["pictures"] = pictures
    if not paradigm.reference and exam.budget is not None and exam.budget.passes is not None:
        facts["passes"] = exam.budget.passes  # learners know this part of the budget
    cost = 1 if exam.prequential is None or paradigm.reference else exam.prequential.cost(algorithm.stream_cost)
    if cost != 1:
        facts["stream_cost"] = cost
    if job.sandboxed:
        facts["sealing"] = "strict"
    if job.generation.engine == "server":
        facts["generation"] = {"engine": "server", "version": job.generation.version}  # on any machine
    contract = contract_named(algorithm.contract)
    if contract.adapter is not None:
        facts["adapter"] = source_of(contract.adapter, "adapted", exactly=True)
    if algorithm.python is not None:
        facts["interpreter"] = lock_of(algorithm).identity
    if contract.name != NATIVE:
        facts |= {"contract": contract.name, **_digestible(contract.algorithm_identity(algorithm))}
    return facts


def published_pictures(algorithm: AlgorithmSpec) -> dict[str, object]:
    """Return {network and weights: published facts of their input images}, which complete a learner's options."""
    options: dict[str, object] = {}
    for module in algorithm.modules:
        values = {**{name: (value,) for name, value in module.constants.items()}, **dict(module.grid)}
        for network, weights in product(values.get("network", ()), values.get("weights", ())):
            if isinstance(network, str) and isinstance(weights, str):
                from ianvs.authoring.preprocessing import published  # loads torch

                options[f"{network}, {weights}"] = published(network, weights, True in values.get("download", ()))
    return {pair: values_published for pair, values_published in options.items() if values_published}


def algorithm_source(job: JobSpec, algorithm: AlgorithmSpec) -> dict[str, str]:
    """Return {file: digest} of the author's source files."""
    digests: dict[str, str] = {}
    for prefix, plugin in plugin_files_of(job, algorithm):
        digests |= {prefix + file: content for file, content in source_of(*plugin).items()}
    return digests


def plugin_files_of(job: JobSpec, algorithm: AlgorithmSpec) -> Iterator[tuple[str, Plugin]]:
    """Yield its modules, and a paradigm and a contract that are not built in, with a prefix for file names."""
    home = job.working_directory or job.file.parent
    for prefix, module in with_prefixes(algorithm.modules, "/"):
        yield prefix, (module.url, module.name, ALGORITHMS, home)
    spec = algorithm.paradigm
    if spec.url is not None or spec.name not in PARADIGMS:
        yield "paradigm/", (spec.url, spec.name, GROUP, home)
    point = installed(CONTRACTS).get(algorithm.contract)
    if point is not None and not is_ours(point):
        yield "contract/", (None, algorithm.contract, CONTRACTS, home)


def metric_key(metric: MetricSpec, score: MetricSpec | None = None) -> str:
    """Return the name under which a metric's values are stored; another definition of the same name has another key.

    score: the score that it is computed from, if the metric's values are stored.
    """
    facts: dict[str, object] = {"version": IDENTITY_VERSION, "name": metric.name, "options": dict(metric.options)}
    if score is not None:
        facts["of"] = metric_key(score)
    if metric.url is None and metric.name in _REDEFINED:
        facts["definition"] = _REDEFINED[metric.name]
    url = foreign_module(metric.name) if metric.url is None else str(metric.url)
    if url is not None:
        facts["source"] = source_of(url, metric.name)
    if metric.dataset_columns:
        columns = metric.dataset_columns if metric.url is not None else metric_header(metric).columns
        facts |= {name: metric.dataset_columns[name] for name in columns if name in metric.dataset_columns}
    safe = "".join(letter if letter.isalnum() else "_" for letter in metric.name)
    return f"{safe}-{digest(facts)[:10]}"


def _digestible(facts: Mapping[str, object]) -> dict[str, object]:
    """Return facts of a contract with metrics replaced by their source and files by their content."""
    return {name: _digest_value(value) for name, value in facts.items()}


def _digest_value(value: object) -> object:
    if isinstance(value, MetricSpec):
        return metric_key(value)
    if isinstance(value, GateSpec):
        return _digestible({name: getattr(value, name) for name in ("metric", "threshold", "operator", "mode")})
    if isinstance(value, Mapping):
        return _digestible(value)
    if isinstance(value, list | tuple):
        return [_digest_value(part) for part in value]
    return content_digest(value) if isinstance(value, Path) else value
