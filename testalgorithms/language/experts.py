"""MoELoRA: low-rank adapters as a mixture of experts, in the form that `peft` trains, saves and loads."""

from functools import partial
from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch import Tensor, nn


class MoELoraLinear(Linear):
    """A linear layer W with E experts of rank r / E, each of them a LoRA, and a router that weighs them per token.

    y = W x + s sum_e p_e(x) B_e A_e dropout(x), p(x) = softmax(R x), s = alpha / r; every expert is computed (dense).

    The experts are stacked in one A (r, in) and one B (out, r), so that the sum is B (p repeated r / E times * A x):
    the same numbers as E separate products.
    """

    def __init__(self, base_layer: nn.Module, adapter_name: str, *, experts: int, **kwargs: Any) -> None:
        self.__dict__["experts"] = experts  # update_layer, which nn.Module's constructor calls, needs it
        super().__init__(base_layer, adapter_name, **kwargs)
        self.experts = experts

    def update_layer(self, adapter_name: str, r: int, *args: Any, **kwargs: Any) -> None:
        if r % self.experts:
            raise ValueError(f"a rank of {r} can't be shared out to {self.experts} experts.")
        if "lora_router" not in self._modules:
            self.lora_router = nn.ModuleDict()
        self.lora_router[adapter_name] = nn.Linear(int(self.in_features or 0), self.experts, bias=False)
        super().update_layer(adapter_name, r, *args, **kwargs)

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result: Tensor = self.base_layer(x, *args, **kwargs)
        if self.disable_adapters:
            return result
        for name in self.active_adapters:
            if name in self.lora_A:
                A, B = self.lora_A[name], self.lora_B[name]
                given = x.to(next(A.parameters()).dtype)
                weights = torch.softmax(self.lora_router[name](given), dim=-1)
                shares = weights.repeat_interleave(self.r[name] // self.experts, dim=-1)
                added = B(shares * A(self.lora_dropout[name](given))) * self.scaling[name]
                result = result + added.to(result.dtype)
        return result

    def merge(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError("what experts add depends on the input, so it can't be merged into the weights.")


def with_experts(config: LoraConfig, experts: int) -> LoraConfig:
    """Return the same adapter with MoELoRA in every linear layer that it targets; also what `PeftModel.from_pretrained`
    needs.

    Uses peft's way for layer types of one's own, https://huggingface.co/docs/peft/developer_guides/custom_models.
    """
    layers: Any = {nn.Linear: partial(MoELoraLinear, experts=experts)}
    config._register_custom_module(layers)
    return config
