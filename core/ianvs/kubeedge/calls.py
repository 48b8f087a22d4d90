"""Calls methods of plugins: which keywords they receive, the effect of BACKEND_TYPE, and the origin of errors."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter
from pathlib import Path
from typing import Any, TypeVar

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import PluginError, code_of
from ianvs.plugins.loader import cause

T = TypeVar("T")

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(function: Callable[..., object]) -> list[Parameter] | None:
    """Return the parameters of a function; None if Python does not know them, as for some functions in C."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def accepts(function: Callable[..., object], keyword: str) -> bool:
    """Return whether a function names this keyword, or has any ** parameter."""
    parameters = _parameters(function)
    return parameters is None or any(
        p.kind is Parameter.VAR_KEYWORD or (p.name == keyword and p.kind is not Parameter.POSITIONAL_ONLY)
        for p in parameters
    )


def positionals(function: Callable[..., object]) -> int:
    """Return the number of positional arguments that a function accepts; with *, any number."""
    parameters = _parameters(function)
    if parameters is None or any(p.kind is Parameter.VAR_POSITIONAL for p in parameters):
        return 1 << 30
    return sum(p.kind in _BY_PLACE for p in parameters)


def offer(function: Callable[..., T], *args: object, **keywords: object) -> T:
    """Call with `args`, and with those of `keywords` that the function accepts."""
    return function(*args, **{name: value for name, value in keywords.items() if accepts(function, name)})


def _by_name(function: Callable[..., T], name: str, value: object, **keywords: object) -> T:
    """Call `offer` with a required keyword: it becomes the first argument of a function that names it differently."""
    parameters = _parameters(function) or []
    places = [p for p in parameters if p.kind in _BY_PLACE]
    named = any(p.name == name and p.kind is not Parameter.POSITIONAL_ONLY for p in parameters)
    if named or not places or places[0].name in keywords:
        return function(**{name: value}, **{key: given for key, given in keywords.items() if accepts(function, key)})
    return offer(function, value, **keywords)


def _backend() -> str:
    """Return the present BACKEND_TYPE: "torch", "keras", or "" for any other."""
    backend = os.environ.get("BACKEND_TYPE", "").lower()
    return {"torch": "torch", "keras": "keras", "tensorflow": "keras"}.get(backend, "")


class Estimator:
    """A model as called by paradigms with a backend: incremental, lifelong, and the edge of joint inference."""

    def __init__(self, instance: Any) -> None:
        self.instance = instance

    def train(self, data: object, **keywords: object) -> object:
        """Call `fit` if there is one, else `train`."""
        method = self.instance.fit if hasattr(self.instance, "fit") else self.instance.train
        if _backend() == "keras":
            return method(train_data=data, valid_data=keywords.get("valid_data"))
        return _by_name(method, "train_data", data, **keywords)

    def load(self, url: str, *, hub: bool = False) -> None:
        """Load the model, unless it has no method `load` or there is no such path.

        Hub: the url is a name, not a path.
        """
        if not hasattr(self.instance, "load") or not url or not (hub or Path(url).exists()):
            return
        if _backend() == "torch":
            self.instance.load()
        else:
            _by_name(self.instance.load, "model_url", url)

    def predict(self, x: object, method: str = "predict", **keywords: object) -> Any:
        """Call `predict`, or another method, with x."""
        function = getattr(self.instance, method)
        if _backend():
            return _by_name(function, "data", x, **keywords)
        return offer(function, x, **keywords)

    def evaluate(self, data: object, **keywords: object) -> object:
        if _backend() == "keras":
            return offer(self.instance.evaluate, data, **keywords)
        return _by_name(self.instance.evaluate, "data", data, **keywords)


class PlaceError(PluginError):
    """An error of a plugin with its context: "round 2: client 1: basemodel 'Net' (net.py), train: net.py:12: ..."."""

    def __init__(self, places: tuple[str, ...], message: str, code: ErrorCode = "failed-plugin") -> None:
        super().__init__(places, message, code=code)
        self.places, self.text = places, message

    def __str__(self) -> str:
        return ": ".join([*self.places, self.text])


@contextmanager
def errors_in(place: str, file: Path | str | None = None) -> Iterator[None]:
    """Context manager: add a place to exceptions. file: the plugin's, whose line is named.

    Exit() counts as an error.
    """
    try:
        yield
    except PlaceError as error:
        raise PlaceError((place, *error.places), error.text, error.code) from error.__cause__
    except PluginError as error:
        raise PlaceError((place,), str(error), code_of(error, "failed-plugin")) from error
    except Exception as error:
        raise PlaceError((place,), cause(error, Path(file) if file else None)) from error
    except SystemExit as error:
        raise PlaceError((place,), f"the plugin called exit({'' if error.code is None else error.code})") from error
