"""A validated algorithm -> the spec that the rest of the package works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, AlgorithmFile, Grid, Module
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ParadigmSpec, SplitSpec
from ianvs.config.strict_yaml import Document, Steps
from ianvs.errors import Place

__all__ = ["algorithm_spec"]


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
        paradigm=_paradigm(algorithm, document),
        modules=tuple(
            _module(module, document, (*top, "modules", index), constants.get(index, ()))
            for index, module in sorted(enumerate(algorithm.modules), key=lambda one: one[1].type != "basemodel")
        ),
        split=split,
        initial_model=algorithm.initial_model_url,
        place=place,
        places={key: document.key_place((*top, key)) for key in document.data["algorithm"]},
    )


def _paradigm(algorithm: AlgorithmFile, document: Document) -> ParadigmSpec:
    told, path = algorithm.paradigm_type, ("algorithm", "paradigm_type")
    places = {key: document.key_place(("algorithm", key)) for key in algorithm.options}
    if isinstance(told, str):
        return ParadigmSpec(told, None, algorithm.options, document.value_place(path), places)
    return ParadigmSpec(told.name, told.url, algorithm.options, document.value_place((*path, "name")), places)


def _places(document: Document, path: Steps, keys: set[str]) -> dict[str, Place]:
    return {key: document.value_place((*path, key)) for key in keys}


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
    places |= {key: document.value_place((*path, key)) for key in ("type", "name", "url")}
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
