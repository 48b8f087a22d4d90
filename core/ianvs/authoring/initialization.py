"""First weights by the name of their rule."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from ianvs.base.errors import require_known

__all__ = ["INITIALIZATIONS", "initialize"]

INITIALIZATIONS = ("default", "xavier", "kaiming")


def initialize(network: nn.Module, name: str) -> None:
    """Draw the weights of linear layers and convolutions anew by a rule, in place; biases become 0.

    'xavier': uniform with variance 2 / (inputs + outputs) (Glorot & Bengio 2010, eq. 16). 'kaiming': normal with
    variance 2 / inputs (He et al. 2015, eq. 10). 'default' leaves torch's.
    """
    require_known("initialization", name, INITIALIZATIONS)
    if name == "default":
        return
    rules: dict[str, Callable[[Tensor], Tensor]] = {
        "xavier": nn.init.xavier_uniform_,
        "kaiming": nn.init.kaiming_normal_,
    }
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            rules[name](module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
