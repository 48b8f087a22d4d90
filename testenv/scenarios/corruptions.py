"""Common corruptions of images in five severities, after Hendrycks & Dietterich 2019 (arXiv 1903.12261).

The parameters are those of ImageNet-C; for images with fewer than 64 pixels on the shorter side, those of CIFAR-10-C.
Fog is a field with the spectrum of the paper's plasma fractal. Randomness in an image is drawn by (seed, task, content
of the image), so it does not depend on the batch.
"""

import io
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.seeding import generator

SEVERITIES = (1, 2, 3, 4, 5)
_SMALL = 64  # pixels of the shorter side; CIFAR's parameters are used below it

Picture = NDArray[np.float64]  # (height, width, channels) in [0, 1]
Random = np.random.Generator


@dataclass(frozen=True)
class Corruption:
    """One corruption by name. severity: 1 to 5. task: counts from 1; every task draws noise of its own."""

    name: str
    severity: int
    seed: int
    task: int

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the corrupted images.

        X: (N, height, width, channels), uint8 or floating point in [0, 1], as is the result.
        """
        kind = _KINDS[self.name]
        strength = (kind.small if min(x.shape[1:3]) < _SMALL else kind.large)[self.severity - 1]
        whole = x.dtype.kind in "iu"
        corrupted = np.empty_like(x)
        for i, picture in enumerate(x):
            content = zlib.crc32(np.ascontiguousarray(picture).tobytes())
            rng = generator(self.seed, self.task, f"{self.name} {content}")
            clean = picture.astype(np.float64) / (255 if whole else 1)
            result = np.clip(kind.corrupt(clean, strength, rng), 0, 1)
            corrupted[i] = np.rint(result * 255) if whole else result
        return corrupted


def gaussian_noise(x: Picture, deviation: float, rng: Random) -> Picture:
    """Add normal noise, as of a sensor in low light."""
    return np.asarray(x + rng.normal(scale=deviation, size=x.shape))


def shot_noise(x: Picture, photons: float, rng: Random) -> Picture:
    """Apply Poisson noise, as of discrete light; `photons` arrive at a white pixel."""
    return np.asarray(rng.poisson(x * photons) / photons)


def impulse_noise(x: Picture, share: float, rng: Random) -> Picture:
    """Apply salt and pepper noise: a share of the values is 0 or 1, half of it each."""
    hit = rng.random(x.shape) < share
    return np.where(hit, rng.integers(0, 2, x.shape), x)


def gaussian_blur(x: Picture, sigma: float, rng: Random) -> Picture:
    """Convolve each channel with a Gaussian of `sigma` pixels."""
    from scipy.ndimage import gaussian_filter

    blurred: Picture = gaussian_filter(x, sigma=(sigma, sigma, 0), mode="nearest")
    return blurred


def fog(x: Picture, strength: tuple[float, float], rng: Random) -> Picture:
    """Add a cloud of fractal noise, then scale so that the maximum is unchanged.

    strength: (thickness, factor by which the amplitude falls from one octave to the next: less is rougher).
    """
    thick, decay = strength
    cloud = _cloud(x.shape[:2], 1 + np.log2(decay), rng)[..., None]
    brightest = x.max()
    return np.asarray((x + thick * cloud) * brightest / (brightest + thick))


def brightness(x: Picture, more: float, rng: Random) -> Picture:
    """Add `more` to the value of HSV; hue and saturation are unchanged."""
    value = x.max(axis=2, keepdims=True)
    brighter = np.clip(value + more, 0, 1)
    scale = np.divide(brighter, value, out=np.zeros_like(value), where=value > 0)
    return np.asarray(np.where(value > 0, x * scale, brighter))


def contrast(x: Picture, share: float, rng: Random) -> Picture:
    """Keep a share of the distance to each channel's mean."""
    mean = x.mean(axis=(0, 1), keepdims=True)
    return np.asarray(mean + (x - mean) * share)


def pixelate(x: Picture, scale: float, rng: Random) -> Picture:
    """Reduce to fewer pixels, each the mean of its area."""
    from PIL import Image

    height, width = x.shape[:2]
    fewer = (max(1, int(width * scale)), max(1, int(height * scale)))

    def coarse(values: Picture) -> Picture:
        plane = Image.fromarray(values.astype(np.float32)).resize(fewer, Image.Resampling.BOX)
        return np.asarray(plane.resize((width, height), Image.Resampling.BOX), dtype=np.float64)

    return _by_channel(coarse, x)


def jpeg_compression(x: Picture, quality: float, rng: Random) -> Picture:
    """Compress as jpeg: three channels together as colours, others channel by channel."""
    from PIL import Image

    def through(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
        file = io.BytesIO()
        Image.fromarray(values).save(file, "JPEG", quality=int(quality))
        return np.asarray(Image.open(file))

    values = np.rint(x * 255).astype(np.uint8)
    return (through(values) if x.shape[2] == 3 else _by_channel(through, values)) / 255


def _by_channel(change: Callable[[NDArray[Any]], NDArray[Any]], x: NDArray[Any]) -> NDArray[Any]:
    return np.stack([change(x[..., channel]) for channel in range(x.shape[2])], axis=2)


def _cloud(shape: tuple[int, ...], exponent: float, rng: Random) -> Picture:
    """Return noise (height, width) in [0, 1] whose amplitudes are proportional to frequency ** -exponent."""
    down, across = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :]
    frequency = np.hypot(down, across)
    frequency[0, 0] = np.inf  # no constant part
    field = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape)) * frequency**-exponent, s=shape)
    low, high = field.min(), field.max()
    return np.asarray((field - low) / (high - low) if high > low else np.zeros(shape))


@dataclass(frozen=True)
class _Kind:
    corrupt: Callable[[Picture, Any, Random], Picture]
    small: tuple[Any, ...]  # by severity, from CIFAR-10-C
    large: tuple[Any, ...]  # from ImageNet-C


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        kind.corrupt.__name__: kind
        for kind in (
            _Kind(gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10), (0.08, 0.12, 0.18, 0.26, 0.38)),
            _Kind(shot_noise, (500, 250, 100, 75, 50), (60, 25, 12, 5, 3)),
            _Kind(impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07), (0.03, 0.06, 0.09, 0.17, 0.27)),
            _Kind(gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1), (1, 2, 3, 4, 6)),
            _Kind(
                fog,
                ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
                ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
            ),
            _Kind(brightness, (0.05, 0.1, 0.15, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5)),
            _Kind(contrast, (0.75, 0.5, 0.4, 0.3, 0.15), (0.4, 0.3, 0.2, 0.1, 0.05)),
            _Kind(pixelate, (0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25)),
            _Kind(jpeg_compression, (80, 65, 58, 50, 40), (25, 18, 15, 10, 7)),
        )
    }
)

CORRUPTIONS: tuple[str, ...] = tuple(_KINDS)
"""The names of all corruptions."""
