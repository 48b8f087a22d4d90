"""Calls a plugin as the contract says, whatever subset of it the author has written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.data.labels import IGNORED
from ianvs.errors import ExamRuleError, PluginError
from ianvs.plugins.contract import CONTEXT
from ianvs.plugins.loader import Loaded
from ianvs.plugins.signature import named_arguments
from ianvs.scenarios.exam import Rules
from ianvs.scoring.replies import checked_replies

__all__ = ["LearnerCalls"]

LONGEST_REMARK = 500  # characters


class LearnerCalls:
    """One instance of a plugin, and the only place that calls it."""

    def __init__(
        self,
        loaded: Loaded,
        hyperparameters: Mapping[str, Any],
        rules: Rules | None = None,
        initial_model: Path | str | None = None,
    ) -> None:
        """rules: of the exam, which errors name; None where there is no exam. initial_model: what load() is given."""
        self._loaded, self._hyperparameters, self._rules = loaded, hyperparameters, rules
        self._initial_model = initial_model
        with loaded.active() as build:
            self.plugin = build(**hyperparameters)
        self.name = type(self.plugin).__name__
        if initial_model is not None:
            self.load(initial_model)

    def fresh(self) -> LearnerCalls:
        """Another instance of the same class, as this one was before the first round."""
        return LearnerCalls(self._loaded, self._hyperparameters, self._rules, self._initial_model)

    def copy_at(self, model: Path) -> LearnerCalls:
        """Another instance of the same class, with what save() wrote at `model`."""
        return LearnerCalls(self._loaded, self._hyperparameters, self._rules, model)

    @property
    def sees_past_rounds(self) -> bool:
        """Whether the class declares itself a reference that is given all rounds so far."""
        return bool(getattr(self.plugin, "sees_past_rounds", False))

    @property
    def basemodel(self) -> str:
        """What the plugin calls the network that it trains; "" where it says nothing."""
        named = getattr(self.plugin, "basemodel", "")  # of some it is the network itself
        return named if isinstance(named, str) else ""

    @property
    def remark(self) -> str:
        """What the plugin says of how it went, in one line."""
        return " ".join(str(getattr(self.plugin, "remark", "") or "").split())[:LONGEST_REMARK]

    def train(self, data: Any, valid: Any, context: Mapping[str, Any]) -> None:
        self._call("train", (data,), {"valid_data": valid, **context})

    def predict(self, data: Any, context: Mapping[str, Any], classes: int | None) -> NDArray[Any]:
        """Predictions of all samples of `data`, checked: one each, and class indices where labels are classes."""
        found = self._call("predict", (data,), context)
        return self._checked(found, len(data), classes)

    def predict_replies(self, data: Any, context: Mapping[str, Any]) -> list[list[str | None]]:
        """[n] the replies to conversation n, one for each turn of the user, None where it is missing; checked."""
        turns = [len(one["user"]) for one in data.x]  # now: the plugin may change what it is handed
        return checked_replies(self._call("predict", (data,), context), turns, f"{self.name}.predict()")

    def features(self, data: Any, context: Mapping[str, Any]) -> NDArray[np.float32]:
        """(N, D) what the plugin's features() says of all samples of `data`, checked."""
        if not callable(getattr(self.plugin, "features", None)):
            raise PluginError(
                f"`linear_probe: true` asks for the features behind {self.name}'s answers, and it has no method "
                "features(data, **context) that returns an (N, D) array."
            )
        found = self._call("features", (data,), context)
        if hasattr(found, "detach"):
            found = found.detach().cpu().numpy()
        array = np.asarray(found, dtype=np.float32)
        if array.ndim != 2 or len(array) != len(data):
            raise PluginError(f"{self.name}.features() returned shape {array.shape}: return (N, D), N = {len(data)}.")
        if not np.isfinite(array).all():
            raise PluginError(f"{self.name}.features() returned numbers that are infinite or nan.")
        return array

    def predict_pictures(
        self, data: Any, context: Mapping[str, Any], classes: int, shape: tuple[int, int]
    ) -> NDArray[np.uint8] | Any:
        """Label pictures of all samples, (N, height, width) uint8, checked; a tensor stays one and where it lies.

        They hold class indices, or 255 where "ignore" is predicted. shape: (height, width) of the true ones.
        """
        found = self._call("predict", (data,), context)
        return self._checked_pictures(found, (len(data), *shape), classes)

    def save(self, path: Path) -> str:
        """Let the plugin write its model at `path`; the name, relative to path's folder, that load() is to get."""
        with self._loaded.active():
            written = self.plugin.save(path)
        if not isinstance(written, (str, Path)):
            return path.name
        written = Path(written)
        return written.relative_to(path.parent).as_posix() if written.is_relative_to(path.parent) else path.name

    def load(self, path: Path | str) -> None:
        with self._loaded.active():
            self.plugin.load(path)

    def _call(self, method: str, arguments: tuple[Any, ...], offered: Mapping[str, Any]) -> Any:
        function = getattr(self.plugin, method)
        given = named_arguments(function, offered)
        try:
            with self._loaded.active():
                return function(*arguments, **given)
        except (TypeError, KeyError) as error:
            hidden = [name for name in CONTEXT if name not in offered and f"'{name}'" in str(error)]
            missing = isinstance(error, KeyError) or "required" in str(error)
            if hidden and missing:
                raise ExamRuleError(self._hidden(hidden[0], method)) from error
            raise

    def _hidden(self, name: str, method: str) -> str:
        asks = f"{self.name}.{method}() asks for '{name}'"
        rules = self._rules
        if rules is None or name not in ("task", "task_classes"):
            return f"{asks}, which the rules of this exam do not show."
        when = "in testing" if method == "predict" else "in training"
        if rules.task_in_training and rules.task_in_testing:
            return f"{asks}, but the answers of {rules.scenario} are not chosen among the classes of a task."
        return f"{asks}, but {rules.scenario} hides the identity of the task {when}."

    def _checked(self, found: Any, expected: int, classes: int | None) -> NDArray[Any]:
        where = f"{self.name}.predict()"
        if found is None:
            raise PluginError(f"{where} returned nothing: return one prediction for each of the {expected} samples.")
        if hasattr(found, "detach"):  # a tensor, perhaps on an accelerator
            found = found.detach().cpu().numpy()
        array = np.asarray(found)
        if array.ndim == 0 or len(array) != expected:
            shape = f"shape {array.shape}" if array.ndim else type(found).__name__
            raise PluginError(f"{where} returned {shape} for {expected} samples: return one prediction for each.")
        if classes is None:
            return array
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 2:
            raise PluginError(f"{where} returned scores {array.shape}: return class indices, scores.argmax(axis=1).")
        if array.dtype.kind not in "iub":
            whole = array.dtype.kind == "f" and bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))
            if not whole:
                raise PluginError(
                    f"{where} returned {array.dtype} values such as {array.flat[0]!r}: return class indices, 0 to "
                    f"{classes - 1}."
                )
        array = array.astype(np.int64)
        if array.size and (array.min() < 0 or array.max() >= classes):
            wrong = array.min() if array.min() < 0 else array.max()
            raise PluginError(f"{where} returned class index {wrong}; the exam has classes 0 to {classes - 1}.")
        return array.astype(np.min_scalar_type(classes - 1) if classes > 1 else np.uint8)

    def _checked_pictures(self, found: Any, shape: tuple[int, ...], classes: int) -> NDArray[np.uint8] | Any:
        where = f"{self.name}.predict()"
        wanted = f"class indices of shape {shape}, one for each pixel: 0 to {classes - 1}, or {IGNORED} for none"
        if found is None:
            raise PluginError(f"{where} returned nothing. Return {wanted}.")
        try:
            array = found.detach() if hasattr(found, "detach") else np.asarray(found)
        except ValueError as error:
            raise PluginError(f"{where} returned pictures of different shapes ({error}). Return {wanted}.") from None
        kind = str(array.dtype).removeprefix("torch.")
        if array.ndim == 4 and array.shape[2:] == shape[1:]:
            raise PluginError(f"{where} returned scores {tuple(array.shape)}: return class indices, scores.argmax(1).")
        if tuple(array.shape) != shape or not kind.startswith(("uint", "int", "bool")):
            raise PluginError(f"{where} returned {kind} of shape {tuple(array.shape)}. Return {wanted}.")
        if shape[0] and (int(array.min()) < 0 or int(array.max()) >= classes):
            wrong = array[(array < 0) | ((array >= classes) & (array != IGNORED))]
            if len(wrong):
                raise PluginError(f"{where} returned class index {int(wrong[0])}. Return {wanted}.")
        if isinstance(array, np.ndarray):
            return array.astype(np.uint8, copy=False)
        import torch

        return array.to(torch.uint8)
