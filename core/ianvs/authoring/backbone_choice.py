"""The pretrained network that a learner uses: its weights, its image size, and which part of it is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ianvs.authoring.backbones import library_weights
from ianvs.authoring.lora import FrozenBody, add_lora, fixed_names
from ianvs.authoring.networks import body_and_head
from ianvs.authoring.preprocessing import INTERPOLATIONS, published
from ianvs.authoring.weight_files import digest_of_tensors, find_weights, fit
from ianvs.base.errors import PluginError, first_line, require_known


@dataclass
class BackboneChoice:
    """Options of TorchLearner for a pretrained network (docs/methods.md#pretrained-networks).

    Attributes:
        weights: As in TorchLearner.
        download: As in TorchLearner.
        frozen: As in TorchLearner.
        lora_rank: As in TorchLearner.
        lora_alpha: 2 * lora_rank by default.
        picture_size: Side, or [height, width], in pixels.
        interpolation: As in TorchLearner.
        crop: Share of the resized sides that is kept around the centre; "none": images are squeezed into picture_size.
        scale: As in TorchLearner.
        pooling: "cls" or "mean" of a transformer; None: as the network does.
    """

    weights: str | None = None
    download: bool = False
    frozen: bool = False
    lora_rank: int | None = None
    lora_alpha: float | None = None
    picture_size: int | Sequence[int] | None = None
    interpolation: str | None = None
    crop: float | str | None = None
    scale: str | Mapping[str, Any] | None = None
    pooling: str | None = None
    note: str = field(default="", init=False)  # a warning if `scale` is not that of the weights
    _digest: str = field(default="", init=False, repr=False)
    # Addresses of the tensors that weights were loaded into.
    _filled: frozenset[int] = field(default=frozenset(), init=False, repr=False)

    def __post_init__(self) -> None:
        size = self.picture_size
        sides = [size, size] if isinstance(size, int) else list(size or (1, 1))
        if len(sides) != 2 or any(not isinstance(side, int) or side < 1 for side in sides):
            raise PluginError(
                f"picture_size is a side or [height, width] in pixels; it can't be {size}.", code="out-of-range"
            )
        self._size = None if size is None else (sides[0], sides[1])
        self.scale = "symmetric" if self.scale == "half" else self.scale  # two names of one rule
        require_known("interpolation", self.interpolation or "bilinear", INTERPOLATIONS)
        crop = self.crop
        if crop not in (None, "none") and not (isinstance(crop, int | float) and 0 < crop <= 1):
            raise PluginError(
                f"crop is a share of the sides, above 0 and up to 1, or none; it can't be {crop}.", code="out-of-range"
            )
        if self.lora_rank is not None and self.lora_rank < 1:
            raise PluginError(f"lora_rank is 1 or more; it can't be {self.lora_rank}.", code="out-of-range")

    # Images.

    def completed(self, name: str) -> BackboneChoice:
        """Fill in what is published for images with the weights of the network `name`."""
        published_options = {} if self.weights is None else published(name, self.weights, self.download)
        new = replace(self, **{key: value for key, value in published_options.items() if getattr(self, key) is None})
        if published_options and new.scale != published_options["scale"]:
            new.note = f"scale is {new.scale}, but the weights were trained with {published_options['scale']}"
        return new

    def seen(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the network's input, (C, H, W) or (D,)."""
        return (shape[0], *self._size) if self._size is not None and len(shape) == 3 else tuple(shape)

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of the network's input; None for those of the samples."""
        return self._size

    def resized_pixels(self, x: Tensor) -> Tensor:
        """Images (B, C, H, W) of any type, resized and cropped; uint8 ones are rounded to uint8, as PIL does."""
        if self._size is None or x.dim() != 4:
            return x
        if x.dtype != torch.uint8:
            return self.resized(x, None)
        return self.resized(x.to(torch.float32), 255).round_().to(torch.uint8)

    def resized(self, x: Tensor, top: float | None) -> Tensor:
        """Resize and crop images (B, C, H, W) float32 as PIL does, with antialiasing; other samples are unchanged.

        top: the largest pixel value, at which bicubic interpolation is clipped; None: no clipping.
        """
        share, size = (self.crop if isinstance(self.crop, int | float) else None), self._size
        if size is None or x.dim() != 4:
            return x
        large, sides = list(size), list(x.shape[2:])
        if share is not None:  # the aspect ratio is kept
            large = [int(side / share + 1e-6) for side in size]
            ratio = max(large[0] / sides[0], large[1] / sides[1])
            large = [max(large[i], int(sides[i] * ratio + 1e-6)) for i in (0, 1)]
        if large != sides:  # for enlarged images, antialias only selects PIL's cubic kernel
            x = interpolate(x, large, mode=self.interpolation or "bilinear", antialias=True)
            x = x.clamp_(0, top) if top is not None and self.interpolation == "bicubic" else x
        y, z = (round((large[i] - size[i]) / 2) for i in (0, 1))
        return x[..., y : y + size[0], z : z + size[1]]

    # Checks before anything is trained.

    def check(self, name: str) -> None:
        """Reject missing weights. Nothing is downloaded, and the weights are not kept in memory."""
        if self.weights is not None and not self.download and find_weights(self.weights) is None:
            library_weights(name, self.weights, download=False)

    def check_size(self, network: nn.Module, name: str, shape: Sequence[int]) -> None:
        """Reject images (C, H, W) that `network`, on the meta device, can't process."""
        seen = self.seen(shape)
        try:
            network(torch.empty(2, *seen, device="meta"))
        except (RuntimeError, AssertionError, ValueError) as error:
            raise PluginError(
                f"network '{name}' can't process images of {seen[1]}x{seen[2]} pixels ({first_line(error)}). "
                "Set `picture_size` to the side that it was made for, often 224.",
                code="refused-arguments",
            ) from error

    # The network.

    def fill(
        self, name: str, model: nn.Module, place: str, head: nn.Linear, initial: Mapping[str, Tensor] | None
    ) -> str:
        """Load the weights into `model`, except for its head, then the matching tensors of an `initial` model.

        The head of the initial model goes into `head` if it has as many classes.

        Returns:
            A sentence on what did not fit.
        """
        messages: list[str] = []
        if self.weights is not None:
            state = library_weights(name, self.weights, self.download)
            incompatibilities, filled = fit(model, state, f"weights '{self.weights}'", without=place)
            self._filled = frozenset(value.data_ptr() for value in filled)
            messages.append(incompatibilities)
        if initial is not None:
            incompatibilities, _ = fit(model, initial, "the initial model", without=place)
            self._filled = frozenset()  # an initial model need not exist when a case is resumed
            messages.append(incompatibilities)
            given = {kind: initial[f"{place}.{kind}"] for kind in ("weight", "bias") if f"{place}.{kind}" in initial}
            if {kind: value.shape for kind, value in given.items()} == {k: v.shape for k, v in head.named_parameters()}:
                head.load_state_dict(given)
            else:
                messages.append(f"of the initial model the head '{place}' is not used")
        return "; ".join(filter(None, messages))

    def applied(self, network: nn.Module) -> nn.Module:
        """`network` with its body frozen and trainable low-rank updates, if these options are set."""
        if not self.frozen and self.lora_rank is None:
            return network
        body, head = body_and_head(network)
        frozen = FrozenBody(body)
        if self.lora_rank is not None:
            add_lora(frozen, self.lora_rank, self.lora_alpha)
        return nn.Sequential(frozen, head)

    def fixed(self, network: nn.Module) -> frozenset[str]:
        """Return names of tensors that a case need not store: those that equal the file of pretrained weights."""
        state = network.state_dict() if self._filled else {}
        names = frozenset(
            name for name in fixed_names(network) if name in state and state[name].data_ptr() in self._filled
        )
        self._filled = frozenset()
        self._digest = digest_of_tensors({name: state[name] for name in names}) if names else ""
        return names

    def described(self, name: str) -> dict[str, Any]:
        """Identify the frozen part, for `require`."""
        return {"network": name, "weights": self.weights, "digest": self._digest}

    def require(self, frozen: dict[str, Any] | None, name: str) -> None:
        """Reject a saved state whose frozen part differs from that of the network just built."""
        if (frozen or {}).get("digest", "") != self._digest:
            was = (
                f"'{frozen['network']}' with weights '{frozen['weights']}'" if frozen else "a network saved as a whole"
            )
            raise PluginError(
                f"this was saved beside {was}, whose frozen part is not that of '{name}' with weights "
                f"'{self.weights}'. Use the same network and the same file of weights.",
                code="refused-arguments",
            )
