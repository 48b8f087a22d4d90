"""Networks that predict a class for every pixel, and store the activations of their stages."""

from importlib import import_module

import torch
from torch import nn
from torch.nn.functional import interpolate

from ianvs.authoring.weight_files import find_weights, read_weights
from ianvs.base.errors import PluginError
from ianvs.testalgorithms.nets import ErfNet
from ianvs.testalgorithms.nets.erfnet import SHAPES, shape_of
from ianvs.testalgorithms.nets.erfnet_blocks import Downsampler

DEEPLAB = ("deeplabv3_resnet50", "deeplabv3_resnet101")
NETWORKS = (*SHAPES, *DEEPLAB)


class DenseNetwork(nn.Module):
    """(B, 3, H, W) -> (B, C, H, W) logits. stages: outputs of the encoder's stages of the last pass, (B, D, h, w)."""

    def __init__(self, model, stages, classifier):
        super().__init__()
        self.model = model
        self.places = [name for name, module in model.named_modules() if any(module is stage for stage in stages)]
        self.classifier_place = next(name for name, module in model.named_modules() if module is classifier)
        self.stages = []
        for name in self.places:
            model.get_submodule(name).register_forward_hook(self._keep)  # of a copy it is the copy's own

    def _keep(self, module, given, output):
        self.stages.append(output)

    def forward(self, x):
        self.stages = []
        logits = self.model(x)
        logits = logits["out"] if isinstance(logits, dict) else logits
        return logits if logits.shape[2:] == x.shape[2:] else interpolate(logits, x.shape[2:], mode="bilinear")

    @torch.no_grad()
    def start_from_background(self, new, background):
        """Initialise outputs of `new` classes with the background's weights, and let all share its probability (MiB,
        eq. 10).
        """
        layer = self.model.get_submodule(self.classifier_place)
        rows = layer.weight.transpose(0, 1) if isinstance(layer, nn.ConvTranspose2d) else layer.weight
        rows[new] = rows[background].clone()
        if layer.bias is not None:
            layer.bias[[background, *new]] = layer.bias[background] - torch.log(torch.tensor(float(len(new) + 1)))


def build(name, classes, weights=None):
    """Return a network with randomly drawn weights.

    Weights: a file of the weights of DeepLab's backbone in torchvision.
    """
    if name in SHAPES:
        if weights is not None:
            raise PluginError(
                f"encoder_weights are of DeepLab's ResNet; network '{name}' takes none.", code="conflicting-keys"
            )
        net = ErfNet([classes], shape_of(name))
        ends = [index - 1 for index, layer in enumerate(net.encoder) if isinstance(layer, Downsampler) and index]
        return DenseNetwork(
            net, [net.encoder[index] for index in (*ends, len(net.encoder) - 1)], net.decoders[0].classifier
        )
    model = getattr(import_module("torchvision.models.segmentation"), name)(
        weights=None, weights_backbone=None, num_classes=classes
    )
    if weights is not None:
        if (file := find_weights(weights)) is None:
            raise PluginError(f"there is no file of encoder_weights '{weights}'.", code="refused-arguments")
        model.backbone.load_state_dict(read_weights(file), strict=False)
    stages = [getattr(model.backbone, f"layer{number}") for number in (1, 2, 3, 4)]
    return DenseNetwork(model, stages, model.classifier[-1])
