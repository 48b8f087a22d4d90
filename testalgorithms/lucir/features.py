"""Features of which only the direction matters."""

import torch
from torch import nn
from torch.nn.functional import normalize

PASSED = (nn.Dropout, nn.Flatten, nn.AdaptiveAvgPool2d)


class UnitLength(nn.Module):
    """f / |f| times a scale that is learned."""

    def __init__(self, scale: float):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, f):
        return self.scale * normalize(f, dim=1)


class OpenBlock(nn.Module):
    """A residual block of torchvision without the ReLU behind its sum."""

    def __init__(self, block: nn.Module):
        super().__init__()
        self.block = block

    def forward(self, x):
        b = self.block
        f = b.bn2(b.conv2(b.relu(b.bn1(b.conv1(x)))))
        f = b.bn3(b.conv3(b.relu(f))) if hasattr(b, "bn3") else f
        return f + (x if b.downsample is None else b.downsample(x))


def without_last_relu(body: nn.Sequential) -> nn.Sequential:
    """Return the same modules; the ReLU that its features come from, or that of the last residual block, is left out.

    A body that ends otherwise, such as a transformer or one of timm or Hugging Face, stays as it is.
    """
    *before, last = body
    if isinstance(last, PASSED) and before:
        return nn.Sequential(*without_last_relu(nn.Sequential(*before)), last)
    if isinstance(last, nn.ReLU):
        return nn.Sequential(*before)
    if isinstance(last, nn.Sequential):
        return nn.Sequential(*before, without_last_relu(last))
    # By name: torchvision takes a second to import, and a perceptron does not need it.
    residual = type(last).__module__ == "torchvision.models.resnet" and hasattr(last, "downsample")
    return nn.Sequential(*before, OpenBlock(last)) if residual else body
