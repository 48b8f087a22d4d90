"""The scale of a network's input values."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError, closest

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}  # of most pretrained weights
NAMES = ("symmetric", "half", "unit", "imagenet", "first_round")  # "half" is an alias of "symmetric"


class Scaling:
    """Converts uint8 images to numbers by one of the rules in docs/methods.md#pretrained-networks.

    Floating-point samples are taken to be in 0 to 1; "symmetric" and "unit" leave them unchanged. "first_round" has a
    mean and a standard deviation for each channel, or each number of a feature vector; it is "unit" before that.
    """

    def __init__(self, scale: str | Mapping[str, Any] = "symmetric") -> None:
        if isinstance(scale, str) and scale not in NAMES:
            raise PluginError(
                f"scale '{scale}' is not known.{closest(scale, NAMES)} There are: {', '.join(NAMES)}, or "
                "{mean: [...], std: [...]} per channel in units of 0 to 1.",
                code="invalid-choice",
            )
        self.name = "given" if not isinstance(scale, str) else "symmetric" if scale == "half" else scale
        self.mean: Tensor | None = None
        self.std: Tensor | None = None
        numbers = IMAGENET if scale == "imagenet" else scale
        if isinstance(numbers, Mapping):
            self._take(numbers)

    def _take(self, numbers: Mapping[str, Any]) -> None:
        try:
            mean, std = (torch.tensor(numbers[name], dtype=torch.float32).reshape(-1) for name in ("mean", "std"))
        except (KeyError, TypeError, ValueError):
            mean, std = torch.zeros(0), torch.zeros(0)
        if set(numbers) != {"mean", "std"} or len(mean) != len(std) or not len(std) or bool((std <= 0).any()):
            raise PluginError(
                "scale takes as many numbers for `mean` as for `std`, one per channel, and each std above 0: "
                f"{{mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}}; found {dict(numbers)}.",
                code="refused-arguments",
            )
        self.mean, self.std = mean, std

    def learn(self, x: Tensor) -> None:
        """Take the mean and deviation of raw training samples x (N, ...), if they are needed and not yet known."""
        if self.name != "first_round" or self.mean is not None or not len(x):
            return
        over = (0, 2, 3) if x.dim() == 4 else (0,)
        count = x.numel() // (x.shape[1] if x.dim() == 4 else x[0].numel())
        total = torch.zeros(())
        squares = torch.zeros(())
        for part in torch.split(x, 1024):  # float64 sums are accurate enough in any order
            values = part.double() / (255 if x.dtype == torch.uint8 else 1)
            total, squares = total + values.sum(over).cpu(), squares + values.square().sum(over).cpu()
        mean = total / count
        self.mean = mean.float()
        self.std = (squares / count - mean.square()).clamp_min(0).sqrt().clamp_min(1e-3).float()

    def __call__(self, x: Tensor, pictures: bool) -> Tensor:
        """Scale x (B, ...) float32. If `pictures`, its values are from 0 to 255 and it is changed in place."""
        if self.name == "symmetric":
            return x.div_(127.5).sub_(1.0) if pictures else x
        if pictures:
            x = x.div_(255.0)
        if self.mean is None or self.std is None:
            return x
        shape = (1, -1, 1, 1) if x.dim() == 4 and self.mean.dim() == 1 else (1, *self.mean.shape)
        try:
            return (x - self.mean.to(x.device).view(shape)) / self.std.to(x.device).view(shape)
        except RuntimeError:
            raise PluginError(
                f"scale gives {self.mean.numel()} numbers, but a sample has shape {tuple(x.shape[1:])}. Give one "
                "number for each channel, or a single one.",
                code="refused-arguments",
            ) from None

    def state(self) -> dict[str, Tensor] | None:
        """Return the values learned from training data."""
        learned = self.name == "first_round" and self.mean is not None and self.std is not None
        return {"mean": self.mean, "std": self.std} if learned else None  # type: ignore[dict-item]

    def restore(self, state: Mapping[str, Tensor] | None) -> None:
        """Restore what `state` returned."""
        if self.name == "first_round":
            self.mean, self.std = (None, None) if state is None else (state["mean"], state["std"])
