"""Building blocks of ERFNet (Romera et al. 2018) and of its form for many domains (Garg et al. 2022).

Shared parts and those of one domain are separate modules: a block holds convolutions, a *unit* the batch normalisation
and the adapters of one domain for one block. So a domain can be frozen, copied or put into evaluation mode as a whole.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch normalisation as in the authors' code: eps 1e-3, momentum 0.1, affine."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.1)


class DownUnit(nn.Module):
    """One domain's part of a `Downsampler`: batch normalisation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = batch_norm(channels)


class Downsampler(nn.Module):
    """(B, inputs, H, W) -> (B, outputs, H/2, W/2): strided convolution and max pooling side by side."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs - inputs, kernel_size=3, stride=2, padding=1)

    def forward(self, x: Tensor, unit: DownUnit) -> Tensor:
        normed: Tensor = unit.norm(torch.cat((self.conv(x), max_pool2d(x, 2)), dim=1))
        return normed.relu_()


class ResidualUnit(nn.Module):
    """One domain's part of a `Residual`: two batch normalisations and, on request, two parallel 1x1 adapters."""

    def __init__(self, channels: int, adapters: bool) -> None:
        super().__init__()
        self.adapter_1 = nn.Conv2d(channels, channels, kernel_size=1) if adapters else None
        self.norm_1 = batch_norm(channels)
        self.adapter_2 = nn.Conv2d(channels, channels, kernel_size=1) if adapters else None
        self.norm_2 = batch_norm(channels)

    def first(self, shared: Tensor, x: Tensor) -> Tensor:
        """Return BN_t(shared + A_t(x)): the adapter has the same input as the shared convolutions."""
        return self.norm_1(shared if self.adapter_1 is None else shared + self.adapter_1(x))  # type: ignore[no-any-return]

    def second(self, shared: Tensor, x: Tensor) -> Tensor:
        """Return the same as `first`, for the dilated half of the block."""
        return self.norm_2(shared if self.adapter_2 is None else shared + self.adapter_2(x))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """(B, C, H, W) -> the same shape: ERFNet's factorised residual block, non-bottleneck-1D.

    `vertical` convolutions are 3 high and 1 wide, `horizontal` 1 high and 3 wide; the second pair is dilated.
    dropout: probability with which a channel of the residual is dropped (Tompson et al. 2015).
    """

    def __init__(self, channels: int, dropout: float = 0.0, dilation: int = 1) -> None:
        super().__init__()
        d = dilation
        self.vertical_1 = nn.Conv2d(channels, channels, (3, 1), padding=(1, 0))
        self.horizontal_1 = nn.Conv2d(channels, channels, (1, 3), padding=(0, 1))
        self.vertical_2 = nn.Conv2d(channels, channels, (3, 1), padding=(d, 0), dilation=(d, 1))
        self.horizontal_2 = nn.Conv2d(channels, channels, (1, 3), padding=(0, d), dilation=(1, d))
        self.dropout = nn.Dropout2d(dropout) if dropout > 0.0 else nn.Identity()

    def forward(self, x: Tensor, unit: ResidualUnit) -> Tensor:
        first = unit.first(self.horizontal_1(self.vertical_1(x).relu_()), x).relu_()
        second = unit.second(self.horizontal_2(self.vertical_2(first).relu_()), first)
        return torch.add(self.dropout(second), x).relu_()


class OwnResidual(nn.Module):
    """A `Residual` with a unit of its own, without adapters: a decoder belongs to one domain as a whole."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = Residual(channels)
        self.unit = ResidualUnit(channels, adapters=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x, self.unit)
        return y


class Upsampler(nn.Module):
    """(B, inputs, H, W) -> (B, outputs, 2H, 2W)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(inputs, outputs, kernel_size=3, stride=2, padding=1, output_padding=1)
        self.norm = batch_norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.conv(x))
        return normed.relu_()


class Decoder(nn.Module):
    """(B, channels[2], H/8, W/8) -> (B, classes, H, W) logits. `classifier` is what depends on the classes."""

    def __init__(self, channels: tuple[int, int, int], blocks: int, classes: int) -> None:
        super().__init__()
        narrow, middle, wide = channels
        layers: list[nn.Module] = []
        for inputs, outputs in ((wide, middle), (middle, narrow)):
            layers += [Upsampler(inputs, outputs), *(OwnResidual(outputs) for _ in range(blocks))]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.ConvTranspose2d(narrow, classes, kernel_size=2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.layers(x))
        return logits
