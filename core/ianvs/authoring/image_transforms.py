"""Random changes of training images, by torchvision's v2 transforms: one class for each key of `augment`.

A new transform is one more subclass of ImageTransform in this file, or in the file of a method.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import torch
from torch import Tensor

from ianvs.authoring.randomness import seeded
from ianvs.base.errors import PluginError, require_known

Size = tuple[int, int]
BatchFunction = Callable[[Tensor], Tensor]


def _v2() -> Any:
    try:
        return import_module("torchvision.transforms.v2")
    except ImportError:
        raise PluginError(
            "`augment` as a mapping needs torchvision: pip install torchvision.", code="unloadable-plugin"
        ) from None


def _pair(value: Any, name: str) -> tuple[float, float]:
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if len(numbers) != 2 or not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        raise ValueError(f"{name} is a pair of numbers, [min, max]; it can't be {value!r}")
    return float(numbers[0]), float(numbers[1])


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"it is a probability, 0 to 1; it can't be {value!r}")
    return float(value)


class ImageTransform(ABC):
    """One key of `augment`.

    Attributes:
        key: The key in a mapping.
        order: Position in the chain. YAML mappings have no order, so the chain has this one.
        resizes: Whether the result has the size of the network's input, whatever the stored size is.
    """

    key: ClassVar[str]
    order: ClassVar[int]
    resizes: ClassVar[bool] = False

    def __init__(self, value: Any) -> None:
        self.value = value

    @abstractmethod
    def build(self, size: Size) -> BatchFunction:
        """Return a function of images (B, C, H, W), uint8 or numbers in 0 to 1, for a network's input of `size`.

        The function draws from torch's default generator of the CPU.

        Raises:
            ValueError: A value is wrong.
            TypeError: A value has the wrong type.
        """


def each(transform: BatchFunction) -> BatchFunction:
    """Apply a v2 transform to every image of a batch, since it draws its parameters once a call."""
    return lambda x: torch.stack([transform(image) for image in x])


class RandomResizedCrop(ImageTransform):
    """[min, max] share of the area, resized to the input's size; or a mapping {scale, ratio, interpolation}."""

    key, order, resizes = "random_resized_crop", 0, True

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's RandomResizedCrop."""
        options = self.value if isinstance(self.value, Mapping) else {"scale": self.value}
        for name in options:
            require_known("option of augment's random_resized_crop", name, ("scale", "ratio", "interpolation"))
        kernel = options.get("interpolation", "bilinear")
        require_known("interpolation", kernel, ("bilinear", "bicubic"))
        scale = _pair(options.get("scale", (0.08, 1.0)), "scale")
        if not 0 < scale[0] <= scale[1]:
            raise ValueError(f"scale has two shares of the area, above 0 and rising; it can't be {list(scale)}")
        ratio = _pair(options.get("ratio", (3 / 4, 4 / 3)), "ratio")
        v2 = _v2()
        kernels = {"bilinear": v2.InterpolationMode.BILINEAR, "bicubic": v2.InterpolationMode.BICUBIC}
        return each(v2.RandomResizedCrop(size, scale, ratio, kernels[kernel], antialias=True))


class PadCrop(ImageTransform):
    """Black pixels that are added on each side before a crop of the original size (He et al. 2016, 4.2)."""

    key, order = "pad_crop", 1

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's RandomCrop with padding."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise ValueError(f"it is a number of pixels, 0 or more; it can't be {self.value!r}")
        width = self.value

        def shift(x: Tensor) -> Tensor:
            place = x.device
            top, left = torch.randint(2 * width + 1, (2, len(x), 1)).to(place)
            rows = (top + torch.arange(x.shape[2], device=place))[:, :, None]
            columns = (left + torch.arange(x.shape[3], device=place))[:, None, :]
            padded = torch.nn.functional.pad(x, (width,) * 4).permute(0, 2, 3, 1)
            return padded[torch.arange(len(x), device=place)[:, None, None], rows, columns].permute(0, 3, 1, 2)

        return shift


class Flip(ImageTransform):
    """Probability of a mirror image, left to right."""

    key, order = "flip", 2

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's RandomHorizontalFlip."""
        probability = _probability(self.value)

        def flip(x: Tensor) -> Tensor:
            mirrored = (torch.rand(len(x)) < probability).to(x.device)
            return torch.where(mirrored[:, None, None, None], x.flip(-1), x)

        return flip


class Rotate(ImageTransform):
    """Degrees: a number for an angle of up to as many on either side, or [min, max]."""

    key, order = "rotate", 3

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's RandomRotation."""
        v2 = _v2()
        degrees = self.value if isinstance(self.value, int | float) else _pair(self.value, "rotate")
        return each(v2.RandomRotation(degrees, interpolation=v2.InterpolationMode.BILINEAR))


class Jitter(ImageTransform):
    """Brightness, as of ColorJitter; or a mapping {brightness, contrast, saturation, hue}."""

    key, order = "jitter", 4

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's ColorJitter."""
        options = self.value if isinstance(self.value, Mapping) else {"brightness": self.value}
        for name in options:
            require_known("option of augment's jitter", name, ("brightness", "contrast", "saturation", "hue"))
        return each(_v2().ColorJitter(**options))


class Auto(ImageTransform):
    """A published policy: cifar10, imagenet, svhn (AutoAugment), rand, trivial or augmix."""

    key, order = "auto", 5

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's transform of this policy."""
        v2 = _v2()
        policies = {policy.value: policy for policy in v2.AutoAugmentPolicy}
        others = {"rand": v2.RandAugment, "trivial": v2.TrivialAugmentWide, "augmix": v2.AugMix}
        require_known("policy of augment's auto", self.value, (*policies, *others))
        return each(v2.AutoAugment(policies[self.value]) if self.value in policies else others[self.value]())


class Erase(ImageTransform):
    """Probability that a random rectangle becomes black (Zhong et al. 2020)."""

    key, order = "erase", 6

    def build(self, size: Size) -> BatchFunction:
        """Return torchvision's RandomErasing."""
        return each(_v2().RandomErasing(_probability(self.value)))


class ImageAugmentation:
    """The transforms of a mapping such as `{random_resized_crop: [0.05, 1], flip: 0.5}`, in their fixed order.

    Args:
        options: Values by the keys of ImageTransform's subclasses.

    Raises:
        PluginError: For a key or a value that no transform takes.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        kinds = {kind.key: kind for kind in ImageTransform.__subclasses__()}
        for key in options:
            require_known("augment", key, kinds)
        chosen = [kinds[key](value) for key, value in options.items() if value is not None]
        self._transforms = sorted(chosen, key=lambda transform: transform.order)
        self.resizes = any(transform.resizes for transform in chosen)
        self._built: dict[Size, list[BatchFunction]] = {}
        self._functions((32, 32))  # wrong values are refused before anything runs

    def __call__(self, x: Tensor, generator: torch.Generator, size: Sequence[int] | None = None) -> Tensor:
        """Augment images.

        Args:
            x: (B, C, H, W), uint8 or numbers in 0 to 1, on any device.
            generator: Draws the seed of this call.
            size: Height and width of the network's input; None for those of `x`.
        """
        if x.dim() != 4:
            raise PluginError(
                f"augment needs images (channels, height, width), but a sample has shape {tuple(x.shape[1:])}. "
                "Use augment 'none' for feature vectors.",
                code="refused-arguments",
            )
        height, width = size or x.shape[2:]
        functions = self._functions((int(height), int(width)))
        with seeded(int(torch.randint(2**62, (1,), generator=generator)), x.device):
            for function in functions:
                x = function(x)
        return x

    def _functions(self, size: Size) -> list[BatchFunction]:
        if size not in self._built:
            built = []
            for transform in self._transforms:
                try:
                    built.append(transform.build(size))
                except (TypeError, ValueError) as error:
                    raise PluginError(f"augment's {transform.key}: {error}.", code="refused-arguments") from error
            self._built[size] = built
        return self._built[size]


def draw_crop(x: Tensor, y: Tensor, scale: Sequence[float], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw a random resized crop of each image and of its mask, of the same size as before.

    Args:
        x: (B, C, H, W) images.
        y: (B, H, W) masks, whose values are not mixed.
        scale: Smallest and largest share of the area.
        generator: Draws the seed of this call.
    """
    v2, size = _v2(), [x.shape[2], x.shape[3]]
    draw, exact = import_module("torchvision.transforms").RandomResizedCrop.get_params, v2.InterpolationMode.NEAREST
    images, masks = [], []
    with seeded(int(torch.randint(2**62, (1,), generator=generator)), x.device):
        for image, mask in zip(x, y[:, None], strict=True):
            box = draw(image, list(scale), [3 / 4, 4 / 3])  # top, left, height, width
            images.append(v2.functional.resized_crop(image, *box, size=size, antialias=True))
            masks.append(v2.functional.resized_crop(mask, *box, size=size, interpolation=exact)[0])
    return torch.stack(images), torch.stack(masks)
