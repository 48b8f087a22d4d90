"""A block of a vision transformer of timm, torchvision, Hugging Face or our own, taken apart."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from ianvs.base.errors import PluginError

Prefix = tuple[Tensor, Tensor]
"""Keys and values (B or 1, L, D) that stand before those of an attention."""
Adapter = Callable[[Tensor], Tensor]
"""(B, T, D) -> (B, T, D), of the tokens that enter a block's second half, before its norm."""
Which = Literal["query", "key", "value", "output", "mlp_in", "mlp_out"]

REMEDY = 'Set network to "vit", vit_b_16, timm/vit_..., or hf/ and a ViT, DeiT, DINOv2 or CLIP.'


@dataclass(frozen=True)
class Layout:
    """Paths of the parts of a block: x + after_attention(attention(norm 1(x))), then x + after_mlp(mlp(norm 2(x))).

    qkv: one module with packed projections, or three. attention: its output projection and its number of heads.
    ends: the first and the last linear layer of the MLP.
    """

    norms: list[str]
    qkv: list[str]
    attention: list[str]
    after_attention: list[str]
    mlp: list[str]
    after_mlp: list[str]
    ends: list[str]

    def fits(self, layer: nn.Module) -> bool:
        """Whether `layer` has all these parts."""
        try:
            return all(attrgetter(path)(layer) is not None for paths in vars(self).values() for path in paths)
        except AttributeError:
            return False


LAYOUTS = [
    Layout(*(paths.split() for paths in row.split("|")))
    for row in (
        # timm
        "norm1 norm2|attn.qkv|attn.proj attn.num_heads|attn.proj_drop ls1 drop_path1|mlp|ls2 drop_path2|"
        "mlp.fc1 mlp.fc2",
        # torchvision
        "ln_1 ln_2|self_attention|self_attention.out_proj self_attention.num_heads|dropout|mlp||mlp.0 mlp.3",
        # torch's nn.TransformerEncoderLayer, which is ours
        "norm1 norm2|self_attn|self_attn.out_proj self_attn.num_heads|dropout1|linear1 activation dropout linear2|"
        "dropout2|linear1 linear2",
        # Hugging Face: ViT and DeiT, DINOv2, CLIP
        "layernorm_before layernorm_after|attention.q_proj attention.k_proj attention.v_proj|"
        "attention.o_proj attention.num_attention_heads|dropout|mlp|dropout|mlp.fc1 mlp.fc2",
        "norm1 norm2|attention.q_proj attention.k_proj attention.v_proj|attention.o_proj attention.num_attention_heads|"
        "layer_scale1 drop_path|mlp|layer_scale2 drop_path|mlp.fc1 mlp.fc2",
        "layer_norm1 layer_norm2|self_attn.q_proj self_attn.k_proj self_attn.v_proj|"
        "self_attn.out_proj self_attn.num_heads||mlp||mlp.fc1 mlp.fc2",
    )
]


class Block:
    """A block of a transformer; it holds the library's module `layer`, and no parameters besides."""

    def __init__(self, layer: nn.Module) -> None:
        found = next((layout for layout in LAYOUTS if layout.fits(layer)), None)
        attention: Any = getattr(layer, "attn", None)  # of timm, which has others than the usual one
        usual = type(attention).__name__ == "Attention" and getattr(attention, "gate", None) is None
        if found is None or (attention is not None and not usual):
            raise PluginError(f"the parts of a block {type(layer).__name__} are not known. {REMEDY}")
        self.layer, self.layout = layer, found

    def part(self, path: str) -> Any:
        """A module of the block, or a function, by its path in the library's."""
        return attrgetter(path)(self.layer)

    def weights(self, which: Which) -> tuple[nn.Module, str, slice | None]:
        """(module, name of its parameter, rows of it that are this weight, None for all): what LoRA parametrises.

        "query", "key", "value" and "output" are of the attention, "mlp_in" and "mlp_out" of the MLP.
        """
        ends = {"output": self.layout.attention[0], "mlp_in": self.layout.ends[0], "mlp_out": self.layout.ends[1]}
        if which in ends:
            return self.part(ends[which]), "weight", None
        index = ("query", "key", "value").index(which)
        if len(self.layout.qkv) == 3:
            return self.part(self.layout.qkv[index]), "weight", None
        packed = self.part(self.layout.qkv[0])
        name = "in_proj_weight" if isinstance(packed, nn.MultiheadAttention) else "weight"
        size = getattr(packed, name).shape[0] // 3
        return packed, name, slice(index * size, (index + 1) * size)

    def attention_input(self, x: Tensor) -> Tensor:
        """(B, T, D) what the projections to queries, keys and values are given, for tokens x (B, T, D)."""
        normed: Tensor = self.part(self.layout.norms[0])(x)
        return normed

    def __call__(self, x: Tensor, prefix: Prefix | None = None, adapter: Adapter | None = None) -> Tensor:
        """(B, T, D) of tokens (B, T, D). Without a prefix and an adapter it is the library's own forward pass."""
        if prefix is None and adapter is None:
            found = self.layer(x, None) if len(self.layout.qkv) == 3 else self.layer(x)
            return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]
        middle = x + self._attention(self.attention_input(x), prefix)
        y: Tensor = self.part(self.layout.norms[1])(middle)
        for path in (*self.layout.mlp, *self.layout.after_mlp):
            y = self.part(path)(y)
        return middle + y if adapter is None else middle + y + adapter(middle)

    def _attention(self, h: Tensor, prefix: Prefix | None) -> Tensor:
        output, heads = self.part(self.layout.attention[0]), self.part(self.layout.attention[1])

        def split(x: Tensor) -> Tensor:
            return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)

        q, k, v = map(split, self._projected(h))
        if hasattr(attention := getattr(self.layer, "attn", None), "q_norm"):  # timm's, mostly the identity
            q, k = attention.q_norm(q), attention.k_norm(k)
        if prefix is not None:
            keys, values = (split(part.to(k.dtype).expand(len(h), -1, -1)) for part in prefix)
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y: Tensor = output(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        for path in self.layout.after_attention:
            y = self.part(path)(y)
        return y

    def _projected(self, h: Tensor) -> tuple[Tensor, ...]:
        parts = [self.part(name) for name in self.layout.qkv]
        if len(parts) == 3:
            return tuple(projection(h) for projection in parts)
        (packed,) = parts
        if isinstance(packed, nn.MultiheadAttention):
            return linear(h, packed.in_proj_weight, packed.in_proj_bias).chunk(3, -1)
        return packed(h).chunk(3, -1)  # type: ignore[no-any-return]
