"""Compatibility for examples on a new machine without a GPU; Python imports this file at start.

Calls of torch that name a GPU compute on the CPU, `make_grid` accepts `range` as before torchvision 0.15, and a missing
language model is replaced by the tiny one at IANVS_TINY_MODEL.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import ianvs_language_metrics
import ianvs_random_weights
import ianvs_training_evidence


class _Afterwards(importlib.abc.MetaPathFinder):
    """Changes a module after it has been imported, by any code; costs nothing if it is not imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        changes = _CHANGES.get(fullname, ())  # kept: some code only checks whether the module exists
        spec = importlib.machinery.PathFinder.find_spec(fullname, path) if changes else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for change in changes:
                    change(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _without_card(torch: Any) -> None:
    if torch.cuda.is_available():
        return
    for kind in (torch.Tensor, torch.nn.Module):
        kind.cuda = lambda self, *_, **__: self
        kind.to = _moved(kind.to, (str, torch.device))
    for name in ("synchronize", "set_device", "ipc_collect"):
        setattr(torch.cuda, name, lambda *_: None)


def _moved(to: Callable[..., Any], names: tuple[type, ...]) -> Callable[..., Any]:
    def converted(value: object) -> object:
        return "cpu" if isinstance(value, names) and str(value).startswith("cuda") else value

    def moved(self: object, *places: object, **named: object) -> Any:
        return to(self, *map(converted, places), **{key: converted(value) for key, value in named.items()})

    return moved


def _takes_range(utils: Any) -> None:
    def make_grid(*given: Any, range: Any = None, **named: Any) -> Any:
        return grid(*given, **({} if range is None else {"value_range": range}), **named)

    grid, utils.make_grid = utils.make_grid, make_grid


def _speaks(auto: Any) -> None:
    def load(name: str, *given: Any, whole: Callable[..., Any], tiny: Callable[..., Any], **named: Any) -> Any:
        is_there = os.path.isdir(name)  # noqa: PTH112
        return (whole if is_there else tiny)(name if is_there else os.environ["IANVS_TINY_MODEL"], *given, **named)

    for name in _LANGUAGE if "IANVS_TINY_MODEL" in os.environ else ():
        if (kind := getattr(auto, name, None)) is not None:
            whole = kind.from_pretrained
            tiny = whole if name != "AutoModelForSeq2SeqLM" else auto.AutoModelForCausalLM.from_pretrained
            kind.from_pretrained = staticmethod(functools.partial(load, whole=whole, tiny=tiny))


_LANGUAGE = ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification", "AutoTokenizer")


def _repeats(completions: Any) -> None:
    def create(_: Any, *, messages: Sequence[Any], model: str, stream: bool = False, **__: Any) -> Any:
        message = {"role": "assistant", "content": str(messages[-1]["content"])}
        about = {"id": "tiny", "created": 0, "model": model}
        choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": message}
        kind = "chat.completion.chunk" if stream else "chat.completion"
        answer = (completions.ChatCompletionChunk if stream else completions.ChatCompletion).model_validate(
            {**about, "object": kind, "choices": [choice]}
        )
        return iter([answer]) if stream else answer

    completions.Completions.create = create


_OWN: dict[str, Callable[[Any], None]] = {
    "torch": _without_card,
    "torchvision.utils": _takes_range,
    "transformers.models.auto.modeling_auto": _speaks,
    "transformers.models.auto.tokenization_auto": _speaks,
    "openai.resources.chat.completions.completions": _repeats,
}
_CHANGES: dict[str, list[Callable[[Any], None]]] = {}
for _changes in (
    _OWN,
    ianvs_random_weights.CHANGES,
    ianvs_training_evidence.CHANGES,
    ianvs_language_metrics.CHANGES,
):
    for _name, _change in _changes.items():
        _CHANGES.setdefault(_name, []).append(_change)
sys.meta_path.insert(0, _Afterwards())
