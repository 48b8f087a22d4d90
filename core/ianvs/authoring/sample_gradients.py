"""Squared gradients of single samples, layer by layer, from one backward pass for a whole batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.functional import layer_norm, unfold

NUMBERS = 2**22  # size of a convolution's patches in memory, 16 MiB: more is slower

Squares = Callable[[nn.Module, Tensor, Tensor, Tensor], Mapping[str, Tensor]]
"""(layer, its input (B, ...), gradient of its output (B, ...), weights (B,)) -> for each of its parameters, the
weighted sum over samples of the squared gradient."""

_Call = tuple[Tensor, GradientEdge]
"""One pass of a batch through a layer: its input, and the edge of its output in the autograd graph."""


class LayerSquares:
    """sum_n w_n (d loss_n / d theta)^2 for networks whose parameters all belong to supported layers.

    The gradient of a linear layer's weight for one sample is the outer product of its input and the gradient of
    its output (Goodfellow 2015, arXiv 1510.01799), so that the sum of squares is one matrix product: no
    sample's gradient is ever formed. A convolution is a linear layer over patches.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._places: dict[nn.Module, dict[str, slice]] = {}
        self.supported = True
        begin = 0
        for name, parameter in network.named_parameters():
            if not parameter.requires_grad:
                continue
            owner, _, leaf = name.rpartition(".")
            layer = network.get_submodule(owner)
            self.supported &= _is_supported(layer)
            self._places.setdefault(layer, {})[leaf] = slice(begin, begin + parameter.numel())
            begin += parameter.numel()
        self.size = begin

    def add(self, x: Tensor, losses: Callable[[Tensor], Iterator[tuple[Tensor, Tensor]]], total: Tensor) -> bool:
        """Add to total (P,), in the order of `named_parameters`, for a batch x (B, ...) in evaluation mode.

        losses: from the network's outputs (B, C), pairs of a scalar, the sum of the samples' losses, and of their
        weights (B,). Returns whether it succeeded: not if a layer is used twice or not at all, or has its samples
        in another than the first dimension; total is then unchanged.
        """
        with torch.enable_grad():
            with self._watched() as calls:
                outputs = self._network(x)
            if any(len(seen) != 1 or len(seen[0][0]) != len(x) for seen in calls.values()):
                return False
            layers = list(calls)
            edges = [calls[layer][0][1] for layer in layers]
            for loss, weights in losses(outputs):
                gradients = torch.autograd.grad(loss, edges, retain_graph=True)
                for layer, gradient in zip(layers, gradients, strict=True):
                    squares = _LAYERS[type(layer)](layer, calls[layer][0][0], gradient, weights)
                    for leaf, place in self._places[layer].items():
                        total[place] += squares[leaf].reshape(-1)
        return True

    @contextmanager
    def _watched(self) -> Iterator[dict[nn.Module, list[_Call]]]:
        calls: dict[nn.Module, list[_Call]] = {layer: [] for layer in self._places}

        def note(layer: nn.Module, given: Sequence[Tensor], answer: Tensor) -> None:
            # The edge, not the tensor: an in-place activation changes the tensor's values.
            calls[layer].append((given[0].detach(), get_gradient_edge(answer)))

        with ExitStack() as stack:
            for layer in self._places:
                stack.callback(layer.register_forward_hook(note).remove)
            yield calls


def _is_supported(layer: nn.Module) -> bool:
    # The exact type: a subclass may compute something else.
    if type(layer) is nn.Conv2d:
        return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    if type(layer) in (nn.BatchNorm1d, nn.BatchNorm2d):
        return bool(layer.track_running_stats)
    return type(layer) in _LAYERS


def _linear(layer: nn.Module, given: Tensor, gradient: Tensor, weights: Tensor) -> Mapping[str, Tensor]:
    if given.dim() == 2:
        squares = gradient.square() * weights[:, None]
        return {"weight": squares.T @ given.square(), "bias": squares.sum(0)}
    given, gradient = given.flatten(1, -2), gradient.flatten(1, -2)  # (B, T, inputs), (B, T, outputs)
    return _of_products(gradient.transpose(1, 2)[:, None], given.transpose(1, 2)[:, None], weights)


def _convolution(layer: nn.Module, given: Tensor, gradient: Tensor, weights: Tensor) -> Mapping[str, Tensor]:
    assert isinstance(layer, nn.Conv2d)
    size, groups = len(given), layer.groups
    each = given[0].numel() * layer.weight[0, 0].numel() + layer.weight.numel()
    step = max(1, NUMBERS // each)
    sums: dict[str, Tensor] = {}
    for part in (slice(begin, begin + step) for begin in range(0, size, step)):
        patches = unfold(given[part], layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
        patches = patches.reshape(len(patches), groups, -1, patches.shape[2])  # (B, groups, inputs, places)
        outward = gradient[part].reshape(len(patches), groups, -1, patches.shape[3])  # (B, groups, outputs, places)
        for leaf, squares in _of_products(outward, patches, weights[part]).items():
            sums[leaf] = sums[leaf] + squares if leaf in sums else squares
    return sums


def _of_products(outward: Tensor, inward: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """Sum squares of a weight's (G O, I) gradients, the products of (B, G, O, T) and (B, G, I, T) summed over T."""
    products = torch.matmul(outward, inward.transpose(2, 3)).flatten(1)
    return {"weight": weights @ products.square_(), "bias": weights @ outward.sum(3).square_().flatten(1)}


def _batch_norm(layer: nn.Module, given: Tensor, gradient: Tensor, weights: Tensor) -> Mapping[str, Tensor]:
    assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
    assert layer.running_mean is not None and layer.running_var is not None
    shape = [1, -1] + [1] * (given.dim() - 2)
    spread = (layer.running_var + layer.eps).sqrt()
    normal = (given - layer.running_mean.view(shape)) / spread.view(shape)
    return _of_scales(normal, gradient, weights, tuple(range(2, given.dim())))


def _layer_norm(layer: nn.Module, given: Tensor, gradient: Tensor, weights: Tensor) -> Mapping[str, Tensor]:
    assert isinstance(layer, nn.LayerNorm)
    normal = layer_norm(given, layer.normalized_shape, eps=layer.eps)
    return _of_scales(normal, gradient, weights, tuple(range(1, given.dim() - len(layer.normalized_shape))))


def _of_scales(normal: Tensor, gradient: Tensor, weights: Tensor, over: tuple[int, ...]) -> dict[str, Tensor]:
    weight, bias = normal * gradient, gradient
    if over:
        weight, bias = weight.sum(over), bias.sum(over)
    return {"weight": torch.tensordot(weights, weight.square(), 1), "bias": torch.tensordot(weights, bias.square(), 1)}


_LAYERS: dict[type[nn.Module], Squares] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.LayerNorm: _layer_norm,
}
