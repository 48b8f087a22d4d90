"""The moving average of CIA, whose weight is recomputed at every step from the change of the gradient."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ianvs.base.errors import PluginError, require_known


def dynamic_ratio(moved: float, gradient: float, changed: float) -> float:
    """Return (1 + |g_t|) / (|theta_t - theta*_{t-1}| |g_t - g_{t-1}|), L1 norms (arXiv 2410.10868, the formula for
    beta_t).

    It minimises the loss of plasticity plus that of stability, with the second derivative taken from two successive
    gradients. Infinite where nothing moved or the gradient stayed the same.
    """
    below = moved * changed
    return (1.0 + gradient) / below if below > 0 else float("inf")


def dynamic_ratios(
    theta: Mapping[str, Tensor],
    average: Mapping[str, Tensor],
    gradient: Mapping[str, Tensor],
    previous: Mapping[str, Tensor],
    *,
    together: bool = False,
) -> dict[str, float]:
    """Return the `dynamic_ratio` of every tensor, or one for all of them: the norms then run over all tensors."""
    norms = torch.stack(
        [
            torch.stack([x.abs().sum() for x in (w - average[n], gradient[n], gradient[n] - previous[n])])
            for n, w in theta.items()
        ]
    ).double()
    if together:
        norms = norms.sum(0).expand(len(theta), 3)
    return {name: dynamic_ratio(*row) for name, row in zip(theta, norms.cpu().tolist(), strict=True)}


@dataclass
class DynamicAverage:
    """theta*_t = beta_t theta*_{t-1} + (1 - beta_t) theta_t, beside weights theta that train on as if it weren't there.

    formula_side: "old" makes scale * ratio the weight beta of the old average (the paper), "new" that of the new
    weights (the released codes). fallback: the same weight where scale * ratio is not between 0 and 1, or the step is
    the first. per_tensor: a ratio for each tensor, else one for all. average: where it starts; None is at the first
    step's weights, after the optimiser has moved them.
    betas: the sum over tensors and steps so far; count: how many that are; fallbacks: how many took the fallback.
    """

    formula_side: str = "old"
    scale: float = 1.0
    fallback: float = 0.99
    per_tensor: bool = True
    constant: float | None = None
    average: dict[str, Tensor] | None = None
    previous: dict[str, Tensor] | None = field(default=None, repr=False)
    betas: float = 0.0
    count: int = 0
    fallbacks: int = 0
    left: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_known("formula_side", self.formula_side, ("old", "new"))
        if not 0 < self.fallback < 1:
            raise PluginError(f"fallback is {self.fallback}; it is a weight between 0 and 1.", code="out-of-range")

    def step(self, theta: Mapping[str, Tensor], gradient: Mapping[str, Tensor]) -> dict[str, float]:
        """Update the average with the weights after a step of the optimiser and the gradient of that step.

        Return beta by tensor.
        """
        theta = {name: tensor.detach() for name, tensor in theta.items()}
        gradient = {name: tensor.detach().clone() for name, tensor in gradient.items()}
        begun = self.average is not None
        if self.average is None:
            self.average = {name: tensor.clone() for name, tensor in theta.items()}
        betas = self._betas(theta, self.average, gradient)
        for name, tensor in self.average.items():
            tensor.lerp_(theta[name], 1.0 - betas[name])
            self.left[name] = self.left.get(name, 1.0) * (betas[name] if begun else 1.0)
        self.previous = gradient
        self.betas += sum(betas.values())
        self.count += len(betas)
        return betas

    def _betas(
        self, theta: Mapping[str, Tensor], average: Mapping[str, Tensor], gradient: Mapping[str, Tensor]
    ) -> dict[str, float]:
        if self.constant is not None:
            return dict.fromkeys(theta, self.constant)
        used = dict.fromkeys(theta, self.fallback)
        missed = len(theta)
        if self.previous is not None:
            ratios = dynamic_ratios(theta, average, gradient, self.previous, together=not self.per_tensor)
            good = {name: self.scale * ratio for name, ratio in ratios.items() if 0 < self.scale * ratio < 1}
            used |= good
            missed -= len(good)
        self.fallbacks += missed
        return {name: weight if self.formula_side == "old" else 1.0 - weight for name, weight in used.items()}

    def record(self) -> dict[str, float | None]:
        """Mean beta (weight of the old) over tensors and steps, the share of them that used the fallback, and `left`.

        The latter is the share of all numbers in the tensors, each as `left` of its tensor says.
        """
        if not self.count or self.average is None:
            return {"mean_beta": None, "fallback_share": None, "left": None}
        sizes = {name: tensor.numel() for name, tensor in self.average.items()}
        left = sum(self.left[name] * size for name, size in sizes.items()) / sum(sizes.values())
        return {"mean_beta": self.betas / self.count, "fallback_share": self.fallbacks / self.count, "left": left}
