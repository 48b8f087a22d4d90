"""Vision transformers of timm, torchvision, Hugging Face and our own, taken apart: tokens, blocks, features."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ianvs.authoring.backbones import Body, coloured
from ianvs.authoring.networks import SmallViT, body_and_head
from ianvs.authoring.transformer_block import REMEDY, Adapter, Block, Prefix
from ianvs.base.errors import PluginError, require_known

POOLS = ("cls", "mean")
HUGGING_FACE = (
    "ViTForImageClassification",
    "DeiTForImageClassification",
    "Dinov2Model",
    "Dinov2ForImageClassification",
    "Dinov2WithRegistersModel",
    "Dinov2WithRegistersForImageClassification",
    "CLIPVisionModel",
)


class Transformer(nn.Module):
    """(B, C, H, W) -> (B, F): a library's vision transformer without its head, whose modules it shares.

    width: D of its tokens. special: how many tokens stand before the patches, the class token and registers.
    features: "cls", the first token; "mean", of the patches; None: as its library does. All of it after the final norm.
    """

    width: int
    special: int

    def __init__(self, model: nn.Module, layers: nn.Module, features: str | None = None) -> None:
        super().__init__()
        if features is not None:
            require_known("features", features, POOLS)
        self.model, self.features = model, features
        self.blocks = tuple(Block(layer) for layer in layers.children())

    def tokens(self, x: Tensor) -> Tensor:
        """(B, T, D) of prepared pictures (B, C, H, W): what the first block gets. Grey ones become three channels."""
        raise NotImplementedError

    def norm(self, x: Tensor) -> Tensor:
        """The final norm of tokens (B, T, D)."""
        raise NotImplementedError

    def library_pooled(self, encoded: Tensor) -> Tensor:
        """(B, F): what the library takes as features."""
        return encoded[:, 0]

    def encode(
        self,
        tokens: Tensor,
        prefixes: Mapping[int, Prefix] | None = None,
        adapters: Mapping[int, Adapter] | None = None,
    ) -> Tensor:
        """(B, T, D) from tokens (B, T, D): the output of all blocks, after the final norm.

        prefixes: by a block's index (0 is the first), keys and values (B or 1, L, D) that stand before its own. They
        are not projected (prefix tuning, as in DualPrompt and CODA-Prompt). adapters: by a block's index, what is
        added to its output, of what enters its second half: parallel to the MLP (AdaptFormer, Chen et al. 2022, eq. 3).
        """
        prefixes, adapters = prefixes or {}, adapters or {}
        if wrong := [index for index in (*prefixes, *adapters) if not 0 <= index < len(self.blocks)]:
            raise PluginError(f"this transformer has the blocks 0 to {len(self.blocks) - 1}; there is no {wrong[0]}.")
        for index, block in enumerate(self.blocks):
            tokens = block(tokens, prefixes.get(index), adapters.get(index))
        return self.norm(tokens)

    def attention_inputs(self, tokens: Tensor) -> Iterator[Tensor]:
        """(B, T, D) for each block: what its projections to queries, keys and values are given."""
        for block in self.blocks:
            yield block.attention_input(tokens)
            tokens = block(tokens)

    def pooled(self, encoded: Tensor) -> Tensor:
        """(B, F): the features, of what `encode` returned for tokens in the order of `tokens`."""
        if self.features is None:
            return self.library_pooled(encoded)
        return encoded[:, 0] if self.features == "cls" else encoded[:, self.special :].mean(1)

    def forward(
        self,
        x: Tensor,
        prefixes: Mapping[int, Prefix] | None = None,
        adapters: Mapping[int, Adapter] | None = None,
    ) -> Tensor:
        return self.pooled(self.encode(self.tokens(x), prefixes, adapters))


class _Own(Transformer):
    def __init__(self, model: Any, features: str | None) -> None:
        super().__init__(model, model.blocks[:-1], features)
        self.width, self.special = model.class_token.shape[-1], 1

    def tokens(self, x: Tensor) -> Tensor:
        return self.model.tokens(x)  # type: ignore[operator,no-any-return]

    def norm(self, x: Tensor) -> Tensor:
        return self.model.blocks[-1](x)  # type: ignore[index,operator,no-any-return]


class _Timm(Transformer):
    def __init__(self, model: Any, features: str | None) -> None:
        super().__init__(model, model.blocks, features)
        self.width, self.special = model.embed_dim, model.num_prefix_tokens

    def tokens(self, x: Tensor) -> Tensor:
        model: Any = self.model
        return model.norm_pre(model.patch_drop(model._pos_embed(model.patch_embed(coloured(x)))))  # type: ignore[no-any-return]

    def norm(self, x: Tensor) -> Tensor:
        return self.model.norm(x)  # type: ignore[operator,no-any-return]

    def library_pooled(self, encoded: Tensor) -> Tensor:
        return self.model.forward_head(encoded, pre_logits=True)  # type: ignore[operator,no-any-return]


class _Torchvision(Transformer):
    def __init__(self, model: Any, features: str | None) -> None:
        super().__init__(model, model.encoder.layers, features)
        self.width, self.special = model.hidden_dim, 1

    def tokens(self, x: Tensor) -> Tensor:
        model: Any = self.model
        patches = model._process_input(coloured(x))
        tokens = torch.cat([model.class_token.expand(len(x), -1, -1), patches], 1)
        return model.encoder.dropout(tokens + model.encoder.pos_embedding)  # type: ignore[no-any-return]

    def norm(self, x: Tensor) -> Tensor:
        return self.model.encoder.ln(x)  # type: ignore[union-attr,operator,no-any-return]

    def library_pooled(self, encoded: Tensor) -> Tensor:
        return self.model.heads(encoded[:, 0])  # type: ignore[operator,no-any-return]


class _HuggingFace(Transformer):
    def __init__(self, model: Any, features: str | None) -> None:
        root = next(part for part in model.modules() if hasattr(part, "embeddings"))
        encoder = getattr(root, "encoder", root)
        super().__init__(model, getattr(encoder, "layer" if hasattr(encoder, "layer") else "layers"), features)
        self.width = root.config.hidden_size
        more = getattr(root.config, "num_register_tokens", 0) + hasattr(root.embeddings, "distillation_token")
        self.special = 1 + more
        self._path = next(name for name, part in model.named_modules() if part is root)

    def tokens(self, x: Tensor) -> Tensor:
        root: Any = self.model.get_submodule(self._path)
        tokens = root.embeddings(coloured(x))
        return root.pre_layrnorm(tokens) if hasattr(root, "pre_layrnorm") else tokens  # type: ignore[no-any-return]

    def norm(self, x: Tensor) -> Tensor:
        root: Any = self.model.get_submodule(self._path)
        return (root.post_layernorm if hasattr(root, "post_layernorm") else root.layernorm)(x)  # type: ignore[no-any-return]

    def library_pooled(self, encoded: Tensor) -> Tensor:
        first = encoded[:, 0]
        if type(self.model).__name__.startswith("Dinov2") and hasattr(self.model, "classifier"):
            return torch.cat([first, encoded[:, self.special :].mean(1)], 1)  # what its linear classifier is given
        return first


def transformer_of(network: nn.Module, features: str | None = None) -> tuple[Transformer, nn.Linear]:
    """The transformer, which shares the modules of `network`, and the head. Raises PluginError for other networks."""
    body, head = body_and_head(network)
    inner = body[0] if len(body) == 1 else body
    if isinstance(inner, Transformer):
        return inner, head
    if isinstance(inner, SmallViT):
        return _Own(inner, features), head
    model = inner.model if isinstance(inner, Body) else None
    home, _, name = f"{type(model).__module__}.{type(model).__name__}".partition(".")
    if name.endswith(".VisionTransformer") and home in ("timm", "torchvision"):
        return {"timm": _Timm, "torchvision": _Torchvision}[home](model, features), head
    if name.rpartition(".")[2] in HUGGING_FACE:
        return _HuggingFace(model, features), head
    raise PluginError(f"this method works on the tokens of a vision transformer. {REMEDY}")
