"""A validated algorithm -> the spec that the rest of the package works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ianvs.config.effects import ACTED_ON
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, AlgorithmFile, Grid, Module
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, SplitSpec
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
