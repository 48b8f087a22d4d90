"""Networks by name, as `nn.Sequential`: all but the last module are the features, the last is the linear head."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ianvs.authoring.backbones import is_library, library_model, split_head, torchvision_names
from ianvs.base.errors import PluginError, closest, require_known

OWN = ("mlp", "linear", "resnet", "vit")
TORCHVISION = ("resnet18", "resnet34", "resnet50", "resnet101")

Fill = Callable[[nn.Module, str, nn.Linear], None]
"""Loads weights into a network of a library: (the network, the name of its head, the new head)."""


def linear(input_shape: Sequence[int], num_classes: int) -> nn.Sequential:
    """Return (N, *input_shape) -> (N, num_classes): a single linear layer, multinomial logistic regression."""
    return mlp(input_shape, num_classes, hidden=())


def mlp(
    input_shape: Sequence[int],
    num_classes: int,
    hidden: Sequence[int] = (256,),
    dropout: float = 0.0,
    batch_norm: bool = False,
) -> nn.Sequential:
    """Return (N, *input_shape) -> (N, num_classes): linear layers with ReLU between them.

    Args:
        input_shape: Shape of a sample.
        num_classes: Number of outputs.
        hidden: Units of each hidden layer.
        dropout: Share of units that is dropped after each ReLU.
        batch_norm: Whether to normalise before each ReLU, instead of the layer's bias.
    """
    sizes = [int(torch.Size(input_shape).numel()), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, bias=not batch_norm)]
        layers += [nn.BatchNorm1d(outputs)] if batch_norm else []
        layers += [nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


def resnet(
    input_shape: Sequence[int], num_classes: int, widths: Sequence[int] = (32, 64, 128), blocks: int = 1
) -> nn.Sequential:
    """Return (N, C, H, W) -> (N, num_classes): a residual network (He et al. 2016) for small images.

    A 3x3 stem, then basic blocks. The first block of every width but the first halves height and width. Two blocks of
    64, 128, 256 and 512 channels are the ResNet-18 used on CIFAR.

    Args:
        input_shape: (C, H, W).
        num_classes: Number of outputs.
        widths: Channels of each stage.
        blocks: Basic blocks of each width.
    """
    from torchvision.models.resnet import BasicBlock

    _require_pictures("resnet", input_shape)
    layers: list[nn.Module] = [
        nn.Conv2d(input_shape[0], widths[0], kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(inplace=True),
    ]
    inputs = widths[0]
    for index, outputs in enumerate(width for width in widths for _ in range(blocks)):
        stride = 2 if index and index % blocks == 0 else 1
        shortcut = None
        if stride != 1 or inputs != outputs:
            shortcut = nn.Sequential(*_shortcut(inputs, outputs, stride), nn.BatchNorm2d(outputs))
        layers.append(BasicBlock(inputs, outputs, stride, shortcut))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, num_classes))


def _shortcut(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    """Return a 1x1 convolution of every `stride`-th pixel.

    With fewer than 8 channels the pixels are selected first: the backward pass of a strided convolution corrupts
    memory there (torch 2.13 and 2.15, channels_last, a CPU with AVX2 but without AVX-512).
    """
    if stride == 1 or inputs >= 8:
        return [nn.Conv2d(inputs, outputs, 1, stride, bias=False)]
    return [nn.MaxPool2d(1, stride), nn.Conv2d(inputs, outputs, 1, bias=False)]


def torchvision_resnet(name: str, input_shape: Sequence[int], num_classes: int) -> nn.Sequential:
    """Return torchvision's residual network (N, C, H, W) -> (N, num_classes) for large images, with random weights."""
    from torchvision.models import get_model

    _require_pictures(name, input_shape)
    network = get_model(name, weights=None, num_classes=num_classes)
    if input_shape[0] != 3:
        network.conv1 = nn.Conv2d(input_shape[0], 64, kernel_size=7, stride=2, padding=3, bias=False)
    *body, head = network.children()
    return nn.Sequential(*body, nn.Flatten(), head)


def library_network(
    name: str, input_shape: Sequence[int], num_classes: int, fill: Fill | None, download: bool
) -> nn.Sequential:
    """Return a network (N, 1 or 3, H, W) -> (N, num_classes) of torchvision, timm or Hugging Face with a new head."""
    _require_pictures(name, input_shape)
    if input_shape[0] not in (1, 3):
        raise PluginError(
            f"network '{name}' takes images of 1 or 3 channels, but these have {input_shape[0]}.",
            code="refused-arguments",
        )
    model = library_model(name, (input_shape[1], input_shape[2]), download, trained=fill is not None)
    body, place, features = split_head(model, name)
    head = nn.Linear(features, num_classes)
    if fill is not None:
        fill(model, place, head)
    return nn.Sequential(body, head)


def build_network(
    name: str,
    input_shape: Sequence[int],
    num_classes: int,
    *,
    hidden: Sequence[int] = (256,),
    widths: Sequence[int] = (32, 64, 128),
    blocks: int = 1,
    dropout: float = 0.0,
    batch_norm: bool = False,
    fill: Fill | None = None,
    download: bool = False,
) -> nn.Sequential:
    """Return the network of this name.

    Args:
        name: As in TorchLearner.
        input_shape: Shape of a sample.
        num_classes: Number of outputs.
        hidden: For "mlp".
        widths: For "resnet".
        blocks: For "resnet".
        dropout: For "mlp".
        batch_norm: For "mlp".
        fill: Loads weights into the network, which is then built as they were trained.
        download: Whether a library may download the description of a network.
    """
    match name:
        case "mlp":
            network = mlp(input_shape, num_classes, hidden, dropout, batch_norm)
        case "linear":
            network = linear(input_shape, num_classes)
        case "resnet":
            network = resnet(input_shape, num_classes, widths, blocks)
        case "vit":
            _require_pictures(name, input_shape)
            network = small_vit(input_shape, num_classes)
        case _ if name in TORCHVISION and fill is None:
            return torchvision_resnet(name, input_shape, num_classes)
        case _ if is_library(name):
            return library_network(name, input_shape, num_classes, fill, download)
        case _:
            choices = [*OWN, *TORCHVISION]
            hint = closest(name, [*choices, *torchvision_names()])
            raise PluginError(
                f"network '{name}' is not known.{hint} There are: {', '.join(choices)}, torchvision's others "
                "(vit_b_16, convnext_tiny, ...), timm/NAME, hf/NAME, or the folder of a Hugging Face model with its "
                "config.json; for another one, override build_network() in the algorithm's class.",
                code="invalid-choice",
            )
    if fill is not None:
        *_, (place, head) = network.named_children()
        fill(network, place, head)  # type: ignore[arg-type]
    return network


def body_and_head(network: nn.Module) -> tuple[nn.Sequential, nn.Linear]:
    """Return the modules that compute the features (N, D), and the linear head; not copies."""
    if not isinstance(network, nn.Sequential) or not isinstance(network[-1], nn.Linear):
        raise PluginError(
            f"the features of a {type(network).__name__} can't be found. Let build_network() return an nn.Sequential "
            "whose last module is the linear head and whose other modules compute the features.",
            code="refused-arguments",
        )
    return network[:-1], network[-1]


def _require_pictures(name: str, input_shape: Sequence[int]) -> None:
    if len(input_shape) != 3:
        raise PluginError(
            f"network '{name}' needs images (channels, height, width), but a sample has shape {tuple(input_shape)}. "
            "Use network 'mlp' for feature vectors.",
            code="refused-arguments",
        )


def flat_parameters(network: nn.Module) -> Tensor:
    """Return (P,) all trainable parameters in one vector, in the order of `network.parameters()`; differentiable."""
    return torch.cat([p.reshape(-1) for p in network.parameters() if p.requires_grad])


def initialize(network: nn.Module, name: str) -> None:
    """Redraw the weights of linear layers and convolutions by a rule, in place; biases become 0.

    'xavier': uniform with variance 2 / (inputs + outputs) (Glorot & Bengio 2010, eq. 16). 'kaiming': normal with
    variance 2 / inputs (He et al. 2015, eq. 10). 'default' leaves torch's.
    """
    xavier, kaiming = nn.init.xavier_uniform_, nn.init.kaiming_normal_
    rules: dict[str, Callable[[Tensor], Tensor] | None] = {"default": None, "xavier": xavier, "kaiming": kaiming}
    require_known("initialization", name, rules)
    if (draw := rules[name]) is None:
        return
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            draw(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


WIDTH, DEPTH, HEADS, PATCHES = 96, 4, 4, 8  # 0.5 million parameters


class SmallViT(nn.Module):
    """(N, C, H, W) -> (N, D): a vision transformer (Dosovitskiy et al. 2021) without its head, small enough for a CPU.

    Patches of side `patch` become tokens after a class token, whose final value is the features. Blocks normalise
    first, as in the paper. A prompt method passes further tokens to `encode`.
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
        """Return (N, 1 + patches, D) of images (N, C, H, W): the class token and the patches, with their positions."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        return torch.cat([self.class_token.expand(len(x), -1, -1), patches], 1) + self.position

    def encode(self, tokens: Tensor) -> Tensor:
        """Return (N, T, D) from tokens (N, T, D): the output of all blocks."""
        encoded: Tensor = self.blocks(tokens)
        return encoded

    def attentions(self) -> list[nn.MultiheadAttention]:
        """Return the attention of each block, from the first to the last."""
        return [block.self_attn for block in self.blocks if isinstance(block, nn.TransformerEncoderLayer)]

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, D) of images (N, C, H, W)."""
        return self.encode(self.tokens(x))[:, 0]


def small_vit(input_shape: Sequence[int], num_classes: int) -> nn.Sequential:
    """Return (N, C, H, W) -> (N, num_classes): a `SmallViT` of 8 x 8 patches, at least 2 pixels wide, and a head."""
    channels, height, width = input_shape
    patch = (max(min(2, height), height // PATCHES), max(min(2, width), width // PATCHES))
    return nn.Sequential(SmallViT(channels, (height, width), patch), nn.Linear(WIDTH, num_classes))


def token_network(network: nn.Module) -> tuple[SmallViT, nn.Linear]:
    """Return the transformer and the head of a network called "vit".

    Raises:
        PluginError: The network is another one.
    """
    parts = list(network) if isinstance(network, nn.Sequential) else []
    if len(parts) != 2 or not isinstance(parts[0], SmallViT) or not isinstance(parts[1], nn.Linear):
        raise PluginError(
            'this method works on the tokens of a transformer. Set network to "vit".', code="refused-arguments"
        )
    return parts[0], parts[1]
