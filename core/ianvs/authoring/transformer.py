"""Vision transformers of timm, torchvision, Hugging Face and our own, taken apart: tokens, blocks, features."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from ianvs.authoring.backbones import HeadlessNetwork, to_three_channels
from ianvs.authoring.networks import DEPTH, body_and_head
from ianvs.authoring.transformer_block import Adapter, Block, Prefix
from ianvs.base.errors import PluginError, require_known

Prefixes = Mapping[int, Prefix] | None
Adapters = Mapping[int, Adapter] | None
# By how package and class begin: the layout of blocks; in the module with the tokens, blocks, final norm, positions.
FAMILIES = {
    "ianvs.SmallViT": ("ianvs", "blocks", f"blocks.{DEPTH}", "position"),
    "timm.VisionTransformer": ("timm", "blocks", "norm", "pos_embed"),
    "torchvision.VisionTransformer": ("torchvision", "encoder.layers", "encoder.ln", "encoder.pos_embedding"),
    "transformers.ViTFor": ("vit", "layers", "layernorm", "embeddings.position_embeddings"),
    "transformers.DeiTFor": ("vit", "layers", "layernorm", "embeddings.position_embeddings"),
    "transformers.Dinov2": ("dinov2", "encoder.layer", "layernorm", "embeddings.position_embeddings"),
    "transformers.CLIPVision": ("clip", "encoder.layers", "post_layernorm", "embeddings.position_embedding.weight"),
}


class Transformer(nn.Module):
    """(B, C, H, W) -> (B, F): a vision transformer without its head, whose modules it shares.

    Tokens have the width D. The first `special` of them, class token and registers, are no patches.

    Args:
        model: A network of timm, torchvision, Hugging Face or our own.
        features: "cls": the first token. "mean": of the patches. None: as its library does. All after the final norm.

    Raises:
        PluginError: The network is no vision transformer.
    """

    def __init__(self, model: nn.Module, features: str | None = None) -> None:
        super().__init__()
        if features is not None:
            require_known("pooling", features, ("cls", "mean"))
        name = f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"
        family = next((candidate for start, candidate in FAMILIES.items() if name.startswith(start)), None)
        if family is None or name.endswith("Distilled"):
            raise PluginError(
                'this method works on the tokens of a vision transformer. Set network to "vit", vit_b_16, '
                "timm/vit_..., or hf/ and a ViT, DeiT, DINOv2 or CLIP.",
                code="refused-arguments",
            )
        self.model, self.features = model, features
        self._layout, blocks, self._norm, self._positions = family
        root = self._root
        layers = [layer for layer in attrgetter(blocks)(root) if not isinstance(layer, nn.LayerNorm)]
        self.blocks = tuple(Block(layer, self._layout) for layer in layers)
        self.width: int = self.blocks[0].norm.normalized_shape[0]
        registers = getattr(getattr(root, "config", None), "num_register_tokens", 0)
        registers += hasattr(getattr(root, "embeddings", None), "distillation_token")
        self.special: int = getattr(root, "num_prefix_tokens", 1 + registers)

    @property
    def _root(self) -> Any:
        """The module that has the tokens: `model`, or a part of one of Hugging Face."""
        return next((part for part in self.model.modules() if hasattr(part, "embeddings")), self.model)

    def tokens(self, x: Tensor) -> Tensor:
        """Return (B, T, D) of prepared images (B, C, H, W): the input of the first block.

        Grey images become three channels.
        """
        root = self._root
        if self._layout == "ianvs":
            return root.tokens(x)  # type: ignore[no-any-return]
        x = to_three_channels(x)
        if self._layout == "timm":
            return root.norm_pre(root.patch_drop(root._pos_embed(root.patch_embed(x))))  # type: ignore[no-any-return]
        if self._layout == "torchvision":
            tokens = torch.cat([root.class_token.expand(len(x), -1, -1), root._process_input(x)], 1)
            return root.encoder.dropout(tokens + root.encoder.pos_embedding)  # type: ignore[no-any-return]
        return (root.pre_layrnorm if self._layout == "clip" else nn.Identity())(root.embeddings(x))  # type: ignore[no-any-return]

    def class_position(self) -> Tensor:
        """Return (1, 1, D) the position of the class token, 0 where it has none."""
        first: Tensor = attrgetter(self._positions)(self._root).reshape(1, -1, self.width)[:, :1]
        return 0 * first if getattr(self._root, "no_embed_class", not self.special) else first

    def encode(self, tokens: Tensor, prefixes: Prefixes = None, adapters: Adapters = None) -> Tensor:
        """Return (B, T, D) from tokens (B, T, D): the output of all blocks, after the final norm.

        Args:
            tokens: (B, T, D).
            prefixes: By a block's index (0 is the first), keys and values (B or 1, L, D) that precede its own. They are
                not projected (prefix tuning, as in DualPrompt and CODA-Prompt).
            adapters: By a block's index, a function whose output is added to the block's output. Its input is that of
                the block's second half: parallel to the MLP (AdaptFormer, Chen et al. 2022, eq. 3).
        """
        prefixes, adapters = prefixes or {}, adapters or {}
        if wrong := [index for index in (*prefixes, *adapters) if not 0 <= index < len(self.blocks)]:
            raise PluginError(
                f"this transformer has the blocks 0 to {len(self.blocks) - 1}; there is no {wrong[0]}.",
                code="refused-arguments",
            )
        for index, block in enumerate(self.blocks):
            tokens = block(tokens, prefixes.get(index), adapters.get(index))
        return attrgetter(self._norm)(self._root)(tokens)  # type: ignore[no-any-return]

    def attention_inputs(self, tokens: Tensor) -> Iterator[Tensor]:
        """Iterate over the blocks: (B, T, D) the input of each block's projections to queries, keys and values."""
        for block in self.blocks:
            yield block.norm(tokens)
            tokens = block(tokens)

    def pooled(self, encoded: Tensor) -> Tensor:
        """Return (B, F): the features, from what `encode` returned for tokens in the order of `tokens`."""
        root, first, mean = self._root, encoded[:, 0], encoded[:, self.special :].mean(1)
        if self._layout == "timm":
            pool = {None: root.pool, "cls": lambda _: first, "mean": lambda _: mean}[self.features]
            return root.head_drop(root.fc_norm(pool(encoded)))  # type: ignore[no-any-return]
        if self.features is not None:
            return mean if self.features == "mean" else first
        if self._layout == "torchvision":
            return root.heads(first)  # type: ignore[no-any-return]
        is_classifier = self._layout == "dinov2" and hasattr(self.model, "classifier")
        return torch.cat([first, mean], 1) if is_classifier else first

    def forward(self, x: Tensor, prefixes: Prefixes = None, adapters: Adapters = None) -> Tensor:
        """Return (B, F) of prepared images (B, C, H, W)."""
        return self.pooled(self.encode(self.tokens(x), prefixes, adapters))


def transformer_of(network: nn.Module, features: str | None = None) -> tuple[Transformer, nn.Linear]:
    """Return the transformer of a network, which shares its modules, and the head.

    The head is a new one if the features have another size than its input.

    Raises:
        PluginError: The network is no vision transformer.
    """
    body, head = body_and_head(network)
    inner = body[0] if len(body) == 1 else body
    if not isinstance(inner, Transformer):
        inner = Transformer(inner.model if isinstance(inner, HeadlessNetwork) else inner, features)
    narrower = features is not None and head.in_features != inner.width
    return inner, nn.Linear(inner.width, head.out_features) if narrower else head
