"""A small vision transformer for small pictures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ianvs.base.errors import PluginError

__all__ = ["SmallViT", "small_vit", "token_network"]

WIDTH, DEPTH, HEADS, PATCHES = 96, 4, 4, 8  # 0.5 million parameters


class SmallViT(nn.Module):
    """(N, C, H, W) -> (N, D): a vision transformer (Dosovitskiy et al. 2021) without its head, small enough for a CPU.

    Patches of side `patch` become tokens, a class token stands before them, and what it says in the end are the
    features. Blocks normalise first, as theirs do. A prompt method gives `encode` further tokens.
    """

    def __init__(self, channels: int, size: tuple[int, int], patch: tuple[int, int]) -> None:
        super().__init__()
        grid = (size[0] // patch[0], size[1] // patch[1])
        self.patches = nn.Conv2d(channels, WIDTH, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.position = nn.Parameter(torch.empty(1, 1 + grid[0] * grid[1], WIDTH).normal_(std=0.02))
        shape = (WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu")  # no dropout
        blocks = (nn.TransformerEncoderLayer(*shape, batch_first=True, norm_first=True) for _ in range(DEPTH))
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(WIDTH))

    def tokens(self, x: Tensor) -> Tensor:
        """(N, 1 + patches, D) of pictures (N, C, H, W): the class token and the patches, with their positions."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        return torch.cat([self.class_token.expand(len(x), -1, -1), patches], 1) + self.position

    def encode(self, tokens: Tensor) -> Tensor:
        """(N, T, D) of tokens (N, T, D): what all blocks make of them."""
        encoded: Tensor = self.blocks(tokens)
        return encoded

    def attentions(self) -> list[nn.MultiheadAttention]:
        """The attention of each block, from the first to the last."""
        return [block.self_attn for block in self.blocks if isinstance(block, nn.TransformerEncoderLayer)]

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(self.tokens(x))[:, 0]


def small_vit(input_shape: Sequence[int], num_classes: int) -> nn.Sequential:
    """(N, C, H, W) -> (N, num_classes): a `SmallViT` of about 8 x 8 patches, of 2 pixels at least, and a head."""
    channels, height, width = input_shape
    patch = (max(min(2, height), height // PATCHES), max(min(2, width), width // PATCHES))
    return nn.Sequential(SmallViT(channels, (height, width), patch), nn.Linear(WIDTH, num_classes))


def token_network(network: nn.Module) -> tuple[SmallViT, nn.Linear]:
    """The transformer and the head of a network called "vit". Raises PluginError for any other."""
    parts = list(network) if isinstance(network, nn.Sequential) else []
    if len(parts) != 2 or not isinstance(parts[0], SmallViT) or not isinstance(parts[1], nn.Linear):
        raise PluginError('this method works on the tokens of a transformer. Set network to "vit".')
    return parts[0], parts[1]
