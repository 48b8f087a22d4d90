"""A block of a vision transformer of timm, torchvision, Hugging Face or our own, taken apart."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from ianvs.base.errors import PluginError
from ianvs.base.former_names import former_names

Prefix = tuple[Tensor, Tensor]
"""Keys and values (B or 1, L, D) that stand before those of an attention."""
Adapter = Callable[[Tensor], Tensor]
"""(B, T, D) -> (B, T, D), of the tokens that enter a block's second half, before its norm."""

# Norms | projections, packed in one module or three | norms of queries and keys | output, number of heads | after
# attention | MLP | after it | first and last linear layer of it.
LAYOUTS = {
    "ianvs": "norm1 norm2|self_attn||self_attn.out_proj self_attn.num_heads|dropout1|"
    "linear1 activation dropout linear2|dropout2|linear1 linear2",
    "timm": "norm1 norm2|attn.qkv|attn.q_norm attn.k_norm|attn.proj attn.num_heads|attn.proj_drop ls1 drop_path1|"
    "mlp|ls2 drop_path2|mlp.fc1 mlp.fc2",
    "torchvision": "ln_1 ln_2|self_attention||self_attention.out_proj self_attention.num_heads|dropout|"
    "mlp||mlp.0 mlp.3",
    "vit": "layernorm_before layernorm_after|attention.q_proj attention.k_proj attention.v_proj||"
    "attention.o_proj attention.num_attention_heads|dropout|mlp|dropout|mlp.fc1 mlp.fc2",
    "dinov2": "norm1 norm2|attention.q_proj attention.k_proj attention.v_proj||"
    "attention.o_proj attention.num_attention_heads|layer_scale1 drop_path|mlp|layer_scale2 drop_path|mlp.fc1 mlp.fc2",
    "clip": "layer_norm1 layer_norm2|self_attn.q_proj self_attn.k_proj self_attn.v_proj||"
    "self_attn.out_proj self_attn.num_heads||mlp||mlp.fc1 mlp.fc2",
}


@former_names(weights="weight_location", normed="query_key_norms", ends="mlp_linears")
class Block:
    """A block of a transformer: x + attention(norm(x)), then x + mlp(norm2(x)).

    It holds the library's module `layer` and parts of it, and no parameters besides.
    """

    def __init__(self, layer: nn.Module, layout: str) -> None:
        self.layer = layer
        # timm calls it `attn`. Some of its networks have an attention that can't be taken apart.
        attention: Any = getattr(layer, "attn", None)
        try:
            parts: Any = [[attrgetter(path)(layer) for path in row.split()] for row in LAYOUTS[layout].split("|")]
            unusual = attention and (type(attention).__name__ != "Attention" or getattr(attention, "gate", None))
        except AttributeError:
            unusual = True
        if unusual:
            raise PluginError(
                f"the parts of a block {type(layer).__name__} are not known. Take another transformer.",
                code="refused-arguments",
            )
        (self.norm, self.norm2), self.projections, self.query_key_norms, (self.output, self.heads) = parts[:4]
        self.after_attention, self.mlp, self.mlp_linears = parts[4], [*parts[5], *parts[6]], parts[7]

    def weight_location(
        self, which: Literal["query", "key", "value", "output", "mlp_in", "mlp_out"]
    ) -> tuple[nn.Module, str, slice | None]:
        """Return (module, name of its parameter, rows of it, None for all) of the weight `which`."""
        linears = {"output": self.output, "mlp_in": self.mlp_linears[0], "mlp_out": self.mlp_linears[1]}
        if which in linears:
            return linears[which], "weight", None
        index = ("query", "key", "value").index(which)
        if len(self.projections) == 3:
            return self.projections[index], "weight", None
        (packed,) = self.projections
        name = "in_proj_weight" if isinstance(packed, nn.MultiheadAttention) else "weight"
        size = getattr(packed, name).shape[0] // 3
        return packed, name, slice(index * size, (index + 1) * size)

    def __call__(self, x: Tensor, prefix: Prefix | None = None, adapter: Adapter | None = None) -> Tensor:
        """(B, T, D) tokens -> (B, T, D). Without prefix and adapter this is the library's own forward pass."""
        if prefix is None and adapter is None:
            output = self.layer(x, None) if len(self.projections) == 3 else self.layer(x)
            return output[0] if isinstance(output, tuple) else output  # type: ignore[no-any-return]
        x = x + self._attention(self.norm(x), prefix)
        y: Tensor = self.norm2(x)
        for part in self.mlp:
            y = part(y)
        return x + y if adapter is None else x + y + adapter(x)

    def _attention(self, h: Tensor, prefix: Prefix | None) -> Tensor:
        def split(x: Tensor) -> Tensor:
            return x.reshape(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

        first = self.projections[0]
        if len(self.projections) == 3:
            q, k, v = (split(projection(h)) for projection in self.projections)
        elif isinstance(first, nn.MultiheadAttention):
            q, k, v = map(split, linear(h, first.in_proj_weight, first.in_proj_bias).chunk(3, -1))
        else:
            q, k, v = map(split, first(h).chunk(3, -1))
        if self.query_key_norms:
            q, k = self.query_key_norms[0](q), self.query_key_norms[1](k)
        if prefix is not None:
            keys, values = (split(part.to(k.dtype).expand(len(h), -1, -1)) for part in prefix)
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y: Tensor = self.output(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        for part in self.after_attention:
            y = part(y)
        return y
