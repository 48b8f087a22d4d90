"""Validated models -> the specs that the rest of the package works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.config.effects import ACTED_ON
from ianvs.config.models import AlgorithmFile, JobFile, TestEnvFile
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, Grid, Module
from ianvs.config.models.job import Engine, Rank
from ianvs.config.models.samples import FORMS, legacy_form
from ianvs.config.models.testenv import FileDataset, Metric, ModelEval, NamedDataset
from ianvs.config.spec import (
    AlgorithmSpec,
    BudgetSpec,
    DatasetSpec,
    EngineSpec,
    GateSpec,
    MetricSpec,
    ModuleSpec,
    RankSpec,
    ScenarioSpec,
    SourceSpec,
    SplitSpec,
    TestEnvSpec,
)
from ianvs.config.strict_yaml import Document, Steps
from ianvs.errors import Place

__all__ = ["algorithm_spec", "engine_spec", "testenv_spec", "rank_spec"]


def engine_spec(job: JobFile, document: Document, wanted: str | None) -> EngineSpec:
    """The engine of the file, or `wanted`, which has options and a file only where the job's file names it too."""
    path: Steps = ("benchmarkingjob", "engine")
    engine = job.engine if isinstance(job.engine, Engine) else Engine(name=job.engine)
    if wanted not in (None, engine.name):
        return EngineSpec(wanted)
    place = document.value_place(path if isinstance(job.engine, str) else (*path, "name"))
    places = {option: document.key_place((*path, option)) for option in engine.options}
    return EngineSpec(engine.name, engine.url, engine.options, place, places)


def rank_spec(job: JobFile, document: Document) -> RankSpec:
    rank: Rank = job.rank
    columns = [(index, name, order) for index, entry in enumerate(rank.sort_by) for name, order in entry.items()]
    selected = rank.selected_dataitem
    start: Steps = ("benchmarkingjob", "rank", "sort_by")
    return RankSpec(
        sort_by=tuple((name, order == "descend") for _, name, order in columns),
        visualization_mode=rank.visualization.mode,
        visualization_method=rank.visualization.method,
        paradigms=tuple(selected.paradigms),
        modules=tuple(selected.modules),
        hyperparameters=tuple(selected.hyperparameters),
        metrics=tuple(selected.metrics),
        save_mode=rank.save_mode,
        places={name: document.key_place((*start, index, name)) for index, name, _ in columns},
    )


def testenv_spec(testenv: TestEnvFile, document: Document, name: str) -> TestEnvSpec:
    top: Steps = ("testenv",)
    return TestEnvSpec(
        file=document.file,
        dataset=_dataset(testenv, document),
        metrics=tuple(_metrics(testenv, document)),
        scenario=_scenario(testenv, document),
        incremental_rounds=testenv.incremental_rounds,
        gate=_gate(testenv.model_eval, document) if testenv.model_eval else None,
        name=name,
        budget=BudgetSpec(**testenv.budget.model_dump()) if testenv.budget else None,
        linear_probe=testenv.linear_probe,
        place=document.key_place(top),
        places=_places(document, top, testenv.model_fields_set),
    )


def algorithm_spec(
    algorithm: AlgorithmFile,
    document: Document,
    name: str,
    place: Place,
    constants: Mapping[int, Sequence[Document]],
) -> AlgorithmSpec:
    """`place` is where the job names the algorithm; `constants` are the files of constants by index of the module."""
    top: Steps = ("algorithm",)
    setting = algorithm.incremental_learning_data_setting
    split = SplitSpec(setting.train_ratio, setting.splitting_method) if setting else None
    return AlgorithmSpec(
        name=name,
        file=document.file,
        paradigm=algorithm.paradigm_type,
        modules=tuple(
            _module(module, document, (*top, "modules", index), constants.get(index, ()))
            for index, module in enumerate(algorithm.modules)
            if module.type in ACTED_ON
        ),
        split=split if algorithm.paradigm_type == "incrementallearning" else None,
        initial_model=algorithm.initial_model_url,
        place=place,
        places=_places(document, top, algorithm.model_fields_set),
    )


def _places(document: Document, path: Steps, keys: set[str]) -> dict[str, Place]:
    return {key: document.value_place((*path, key)) for key in keys}


def _dataset(testenv: TestEnvFile, document: Document) -> DatasetSpec:
    path: Steps = ("testenv", "dataset")
    dataset = testenv.dataset
    options = dataset.options if isinstance(dataset, NamedDataset) else {}
    places = _places(document, path, dataset.model_fields_set - options.keys())
    places |= {key: document.key_place((*path, key)) for key in options}
    if testenv.using:
        places["using"] = document.value_place(("testenv", "using"))
    files = isinstance(dataset, FileDataset)
    return DatasetSpec(
        name=None if isinstance(dataset, FileDataset) else dataset.name,
        train=tuple(_sources(dataset, "train", document)) if isinstance(dataset, FileDataset) else (),
        test=tuple(_sources(dataset, "test", document)) if isinstance(dataset, FileDataset) else (),
        root=dataset.root,
        download=not files and dataset.download,
        image_size=(dataset.image_size[0], dataset.image_size[1]) if dataset.image_size else None,
        classes=_classes(dataset.classes),
        label=dataset.label if isinstance(dataset, FileDataset) else None,
        domain=dataset.domain if isinstance(dataset, FileDataset) else None,
        using=tuple(dataset.using or testenv.using or ()),
        options=options,
        place=document.key_place(path),
        places=places,
    )


def _classes(given: list[str] | dict[str, list[str]] | None) -> tuple[str, ...] | dict[str, tuple[str, ...]] | None:
    if isinstance(given, dict):
        return {domain: tuple(names) for domain, names in given.items()}
    return tuple(given) if given else None


def _sources(dataset: FileDataset, part: str, document: Document) -> Iterator[SourceSpec]:
    for ending, form in FORMS.items():
        key = f"{part}_{ending}"
        value: Path | list[Path] | dict[str, Path] | None = getattr(dataset, key)
        start: Steps = ("testenv", "dataset", key)
        found: list[tuple[Steps, str | None, Path]] = []
        if isinstance(value, dict):
            found = [((*start, domain), domain, path) for domain, path in value.items()]
        elif isinstance(value, list):
            found = [((*start, index), None, path) for index, path in enumerate(value)]
        elif value is not None:
            found = [(start, None, value)]
        for where, domain, path in found:
            yield SourceSpec(path, form or str(legacy_form(path)), domain, document.value_place(where))


def _metrics(testenv: TestEnvFile, document: Document) -> Iterator[MetricSpec]:
    start: Steps = ("testenv", "metrics")
    groups = testenv.metrics.items() if isinstance(testenv.metrics, dict) else [(None, testenv.metrics)]
    for group, metrics in groups:
        for index, metric in enumerate(metrics):
            path = (*start, index) if group is None else (*start, group, index)
            yield _metric(metric, document, path)


def _metric(metric: str | Metric, document: Document, path: Steps) -> MetricSpec:
    if isinstance(metric, str):
        return MetricSpec(metric, place=document.value_place(path))
    return MetricSpec(metric.name, metric.url, metric.of, metric.options, document.value_place((*path, "name")))


def _scenario(testenv: TestEnvFile, document: Document) -> ScenarioSpec | None:
    path: Steps = ("testenv", "scenario")
    scenario = testenv.scenario
    if scenario is None:
        return None
    if isinstance(scenario, str):
        return ScenarioSpec(scenario, place=document.value_place(path), places={"name": document.value_place(path)})
    places = {key: document.key_place((*path, key)) for key in scenario.options}
    name = document.value_place((*path, "name"))
    options = dict(scenario.options)
    if scenario.file is not None:
        options["file"] = str(scenario.file)
        places["file"] = document.value_place((*path, "file"))
    return ScenarioSpec(scenario.name, options, scenario.url, name, places | {"name": name})


def _gate(model_eval: ModelEval, document: Document) -> GateSpec:
    path: Steps = ("testenv", "model_eval")
    metric = model_eval.model_metric
    name = document.value_place((*path, "model_metric", "name"))
    return GateSpec(
        metric=MetricSpec(metric.name, metric.url, place=name),
        threshold=model_eval.threshold,
        operator=model_eval.operator,
        mode=model_eval.mode,
        place=document.key_place(path),
    )


def _module(module: Module, document: Document, path: Steps, constants: Sequence[Document]) -> ModuleSpec:
    places: dict[str, Place] = {}
    value_places: dict[str, tuple[Place, ...]] = {}
    merged: dict[str, Any] = {}
    for file in constants:  # later files win
        merged |= file.data
        places |= {name: file.key_place((name,)) for name in file.data}
        value_places |= {name: (file.value_place((name,)),) for name in file.data}
    grid = []
    for where, name, values in _grids(module):
        if name != OTHER_HYPERPARAMETERS:
            grid.append((name, tuple(values.values)))
            listed: Steps = (*path, "hyperparameters", *where)
            places[name] = document.key_place(listed)
            value_places[name] = tuple(
                document.value_place((*listed, "values", index)) for index in range(len(values.values))
            )
    places["name"] = document.value_place((*path, "name"))
    places["url"] = document.value_place((*path, "url"))
    return ModuleSpec(
        type=module.type,
        name=module.name,
        url=module.url,
        grid=tuple(grid),
        constants=merged,
        place=document.value_place(path),
        places=places,
        value_places=value_places,
    )


def _grids(module: Module) -> Iterator[tuple[Steps, str, Grid]]:
    listed = module.hyperparameters or []
    if isinstance(listed, dict):
        yield from (((name,), name, grid) for name, grid in listed.items())
    else:
        yield from (((index, name), name, grid) for index, entry in enumerate(listed) for name, grid in entry.items())
