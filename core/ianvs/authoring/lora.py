"""Low-rank adaptation of frozen linear layers, and frozen bodies."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils import parametrize

from ianvs.base.errors import PluginError


class LowRank(nn.Module):
    """W + (alpha / r) B A (LoRA; Hu et al. 2022, eq. 3). W: (out, in) frozen, A: (r, in), B: (out, r), 0 at first.

    It parametrises any weight matrix, including the packed projections of torch's nn.MultiheadAttention
    (`in_proj_weight`), which torchvision's transformers use. peft instead wraps whole modules and renames their
    contents.

    Attributes:
        rows: The rows of W that are changed, such as the queries of packed projections. B has as many. None: all.
    """

    def __init__(self, weight: Tensor, rank: int, alpha: float, rows: slice | None = None) -> None:
        super().__init__()
        self.rows = rows
        outputs, inputs = weight[rows or slice(None)].shape
        self.A = nn.Parameter(torch.empty(rank, inputs, device=weight.device))
        self.B = nn.Parameter(torch.zeros(outputs, rank, device=weight.device))
        nn.init.kaiming_uniform_(self.A, a=sqrt(5))
        self.scale = alpha / rank

    def forward(self, weight: Tensor) -> Tensor:
        """Return the changed weight (out, in)."""
        change = self.scale * (self.B @ self.A)
        if self.rows is not None:
            start, stop, _ = self.rows.indices(len(weight))
            change = pad(change, (0, 0, start, len(weight) - stop))
        return weight + change

    @classmethod
    def at(
        cls, module: nn.Module, name: str, rank: int, alpha: float | None = None, rows: slice | None = None
    ) -> LowRank:
        """Parametrise a weight of a module, and freeze the original.

        Args:
            module: The module.
            name: The name of its weight.
            rank: r.
            alpha: The scale; None: 2 * rank.
            rows: See above.
        """
        weight = getattr(module, name)
        made = cls(weight, rank, 2.0 * rank if alpha is None else alpha, rows)
        parametrize.register_parametrization(module, name, made, unsafe=True)
        module.parametrizations[name].original.requires_grad_(False)  # type: ignore[index,union-attr]
        return made


class FrozenBody(nn.Module):
    """A body whose weights and running statistics are fixed: it is always in evaluation mode."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body.requires_grad_(False).eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of x."""
        output: Tensor = self.body(x)
        return output

    def train(self, mode: bool = True) -> FrozenBody:
        """Stay in evaluation mode."""
        super().train(False)
        return self


def add_lora(body: nn.Module, rank: int, alpha: float | None = None) -> int:
    """Add a trainable low-rank update to every matrix of the transformer blocks in a body.

    These are all 2-d weights of nn.Linear and nn.MultiheadAttention.

    Args:
        body: Changed in place.
        rank: The rank of each update.
        alpha: The scale; None: 2 * rank.

    Returns:
        The number of matrices.

    Raises:
        PluginError: There are none, as in a convolutional network.
    """
    if rank < 1:
        raise PluginError(f"lora_rank is 1 or more; it can't be {rank}.", code="out-of-range")
    layers = [
        (module, name)
        for module in body.modules()
        if isinstance(module, nn.Linear | nn.MultiheadAttention)
        for name, weight in module.named_parameters(recurse=False)
        if name in ("weight", "in_proj_weight") and weight.dim() == 2
    ]
    if not layers:
        raise PluginError(
            "lora_rank is for networks with linear layers, such as vision transformers; the body of this one has none. "
            "Use `frozen: true`, or another network.",
            code="refused-arguments",
        )
    for module, name in layers:
        LowRank.at(module, name, rank, alpha)
    return len(layers)


def fixed_names(network: nn.Module) -> frozenset[str]:
    """Return the names, in its state_dict, of all that training can't change: the frozen parts of a `FrozenBody`."""
    names: set[str] = set()
    for prefix, module in network.named_modules():
        if isinstance(module, FrozenBody):
            trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
            names |= {f"{prefix}.{name}" for name in module.state_dict() if name not in trained}
    return frozenset(names)
