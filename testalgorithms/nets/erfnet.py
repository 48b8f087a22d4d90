"""ERFNet for one domain or many: a shared encoder, small units per domain inside it, a decoder per domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.nets.erfnet_blocks import Decoder, Downsampler, DownUnit, Residual, ResidualUnit

STRIDE = 8  # of the encoder: three downsamplers, whatever the shape


@dataclass(frozen=True)
class ErfNetShape:
    """Width and depth. The defaults are those of Romera et al. 2018.

    channels: after each of the three downsamplers, rising. blocks: residual blocks after the second downsampler.
    dilations: one residual block for each, after the third. decoder_blocks: residual blocks after each upsampler.
    dropout: probability of channel dropout in `blocks` and in the dilated blocks.
    """

    channels: tuple[int, int, int] = (16, 64, 128)
    blocks: int = 5
    dilations: tuple[int, ...] = (2, 4, 8, 16, 2, 4, 8, 16)
    decoder_blocks: int = 2
    dropout: tuple[float, float] = (0.03, 0.3)

    def __post_init__(self) -> None:
        if len(self.channels) != 3 or not 3 < self.channels[0] < self.channels[1] < self.channels[2]:
            raise PluginError(
                f"ERFNet's channels are {self.channels}, but they must be three rising numbers above 3: a downsampler "
                "joins its input's channels with new ones. The paper has (16, 64, 128).",
                code="out-of-range",
            )
        if len(self.dropout) != 2 or not all(0.0 <= p < 1.0 for p in self.dropout):
            raise PluginError(
                f"ERFNet's dropout is {self.dropout}, but it must be two probabilities below 1.", code="out-of-range"
            )
        if self.blocks < 0 or self.decoder_blocks < 0 or any(d < 1 for d in self.dilations):
            raise PluginError(
                "ERFNet's numbers of blocks can't be negative, and a dilation is at least 1.", code="out-of-range"
            )


SHAPES = MappingProxyType(
    {
        "erfnet": ErfNetShape(),
        "erfnet_narrow": ErfNetShape(
            (16, 32, 64), blocks=2, dilations=(2, 4, 8), decoder_blocks=1, dropout=(0.03, 0.1)
        ),
    }
)


def shape_of(name: str, **changes: Sequence[float] | int | None) -> ErfNetShape:
    """Return the shape called `name`, with those of its fields changed that are not None."""
    require_known("network", name, SHAPES)
    given = {
        key: value if isinstance(value, int) else tuple(value) for key, value in changes.items() if value is not None
    }
    return ErfNetShape(**{**vars(SHAPES[name]), **given})


class ErfNet(nn.Module):
    """network(x, domain): (B, 3, H, W) images in 0..1 -> (B, classes[domain], H, W) logits.

    Where 8 does not divide H and W, the last row and column are repeated up to the next multiple, and cut off again
    from what the network answers.

    adapters=False: ERFNet (Romera et al. 2018). Several domains share the whole encoder, each has a decoder.
    adapters=True: the network of MDIL-SS (Garg et al., WACV 2022). Domains share the encoder's
    convolutions W_s; each has parallel adapters and batch normalisations of its own in every block, and a decoder, W_t.

    classes: number of output channels for each domain; where labels have an "ignore" class, it is the last of them.

    encoder[i] are the shared convolutions of block i; units[t][i] are what domain t has there; decoders[t].
    """

    def __init__(self, classes: Sequence[int], shape: ErfNetShape | None = None, *, adapters: bool = False) -> None:
        super().__init__()
        self.shape = shape = ErfNetShape() if shape is None else shape
        self.adapters = adapters
        early, late = shape.dropout
        narrow, middle, wide = shape.channels
        self.encoder = nn.ModuleList(
            [
                Downsampler(3, narrow),
                Downsampler(narrow, middle),
                *(Residual(middle, early) for _ in range(shape.blocks)),
                Downsampler(middle, wide),
                *(Residual(wide, late, dilation) for dilation in shape.dilations),
            ]
        )
        self.units = nn.ModuleList([] if adapters else [self._new_units()])
        self.decoders = nn.ModuleList()
        for count in classes:
            self.add_domain(count)

    @property
    def classes(self) -> tuple[int, ...]:
        """Output channels of each domain, in the order of the domains."""
        return tuple(decoder.classifier.out_channels for decoder in self.decoders)  # type: ignore[union-attr, misc]

    def add_domain(self, classes: int) -> int:
        """Add a domain with new weights on the network's device. Returns its index.

        The optimiser does not know the new tensors: build it afterwards.
        """
        if classes < 1:
            raise PluginError(f"a domain needs at least one class, not {classes}.", code="out-of-range")
        if self.adapters:
            self.units.append(self._like_encoder(self._new_units()))
        self.decoders.append(
            self._like_encoder(Decoder(self.shape.channels, self.shape.decoder_blocks, classes)).train(self.training)
        )
        return len(self.decoders) - 1

    def forward(self, x: Tensor, domain: int = 0) -> Tensor:
        logits: Tensor = self._module_of(self.decoders, domain)(self.encode(x, domain))
        return logits if logits.shape[2:] == x.shape[2:] else logits[:, :, : x.shape[2], : x.shape[3]]

    def encode(self, x: Tensor, domain: int = 0) -> Tensor:
        """Return (B, 3, H, W) -> (B, channels[2], H/8, W/8) features, rounded up, by the branch of `domain`."""
        x = _padded(x)
        units = self._module_of(self.units, domain if self.adapters else 0)
        for layer, unit in zip(self.encoder, units, strict=True):
            x = layer(x, unit)
        return x

    def domain_modules(self, domain: int) -> list[nn.Module]:
        """Return all modules that only `domain` uses (W_t): its units in the encoder, if it has any, and its
        decoder.
        """
        modules = [self._module_of(self.units, domain)] if self.adapters else []
        return [*modules, self._module_of(self.decoders, domain)]

    def domain_parameters(self, domain: int) -> Iterator[nn.Parameter]:
        """Yield parameters of W_t."""
        for module in self.domain_modules(domain):
            yield from module.parameters()

    def shared_parameters(self) -> Iterator[nn.Parameter]:
        """Yield parameters of W_s, those that every domain uses."""
        yield from self.encoder.parameters()
        if not self.adapters:
            yield from self.units.parameters()

    def _module_of(self, modules: nn.ModuleList, domain: int) -> Any:
        if not 0 <= domain < len(modules):
            raise PluginError(
                f"the network was asked for domain {domain}, but it has {len(modules)}, counted from 0. "
                "add_domain() makes another one.",
                code="refused-arguments",
            )
        return modules[domain]

    def _new_units(self) -> nn.ModuleList:
        units = [
            DownUnit(layer.conv.in_channels + layer.conv.out_channels)
            if isinstance(layer, Downsampler)
            else ResidualUnit(layer.vertical_1.out_channels, self.adapters)  # type: ignore[union-attr, arg-type]
            for layer in self.encoder
        ]
        return nn.ModuleList(units).train(self.training)

    def _like_encoder(self, module: nn.Module) -> nn.Module:
        """Return `module` with the device, precision and memory layout of the shared convolutions."""
        like = next(self.encoder.parameters())
        module = module.to(like.device, like.dtype)
        channels_last = like.is_contiguous(memory_format=torch.channels_last) and not like.is_contiguous()
        return module.to(memory_format=torch.channels_last) if channels_last else module


def _padded(x: Tensor) -> Tensor:
    """Return (B, C, H, W) with the last row and column repeated, so that STRIDE divides H and W; `x` itself where it
    does.
    """
    below, right = -x.shape[2] % STRIDE, -x.shape[3] % STRIDE
    if not below and not right:
        return x
    channels_last = x.is_contiguous(memory_format=torch.channels_last)
    wider = nn.functional.pad(x, (0, right, 0, below), mode="replicate")
    return wider.contiguous(memory_format=torch.channels_last) if channels_last else wider
