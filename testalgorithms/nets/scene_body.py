"""A small convolutional body for scenes of several objects, fast on a CPU."""

from torch import nn


def scene_body(channels, widths=(16, 32)):
    """(B, channels, H, W) -> (B, widths[1], H / 4, W / 4): five 3x3 convolutions, two of which halve the image.

    The receptive field is 39 x 39 pixels. widths: channels at 1/2 and at 1/4 of the resolution.
    """
    fine, coarse = widths
    return nn.Sequential(
        _convolution(channels, fine, stride=2),
        _convolution(fine, coarse, stride=2),
        _convolution(coarse, coarse),
        _convolution(coarse, coarse, dilation=2),
        _convolution(coarse, coarse),
    )


def _convolution(inputs, outputs, stride=1, dilation=1):
    layer = nn.Conv2d(inputs, outputs, 3, stride, padding=dilation, dilation=dilation, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
