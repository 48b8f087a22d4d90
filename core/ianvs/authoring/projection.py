"""Projections of gradients (as flat vectors) that do not increase the loss on earlier samples."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ianvs.authoring.round_data import to_device


def agem_projection(gradient: Tensor, reference: Tensor) -> Tensor:
    """Return the vector nearest to g with a non-negative product with m (A-GEM; Chaudhry et al. 2019, eq. 11).

    g - (g.m / m.m) m if g.m < 0, otherwise g itself.

    Args:
        gradient: (P,) g.
        reference: (P,) m.
    """
    product = torch.dot(gradient, reference)
    if product.device.type == "cpu" and product >= 0:  # also where m is 0
        return gradient
    projected = gradient - (product / torch.dot(reference, reference)) * reference
    return torch.where(product >= 0, gradient, projected)  # a comparison on the host would wait for the GPU


def gem_projection(gradient: Tensor, references: Tensor, margin: float = 0.0) -> Tensor:
    """Return the vector nearest to g without a negative product with any g_k (GEM; Lopez-Paz & Ranzato 2017, eq. 8-11).

    g~ = g + G'v, where v solves min 1/2 v'GG'v + g'G'v over v >= margin, exactly, by an active-set method. With margin
    0, g~.g_k >= 0 for all k. If no g_k.g < 0, g itself is returned.

    Args:
        gradient: (P,) g.
        references: (K, P) G, a gradient g_k per row.
        margin: "memory strength" of the authors' code. It moves g~ further in the direction of the g_k.
    """
    from scipy.optimize import nnls

    G = references.double()
    products = G @ gradient.double()  # (K,)
    if products.device.type == "cpu" and not bool((products < 0).any()):
        return gradient
    gram = G @ G.T  # the last operation of size P; all that follows is of size K, on the host
    if products.device.type != "cpu":
        on_cpu = torch.cat([gram, products[None]]).cpu()  # a single wait for the GPU
        gram, products = on_cpu[:-1], on_cpu[-1]
        if not bool((products < 0).any()):
            return gradient
    linear = products + margin * gram.sum(1)
    # With u = v - margin >= 0 the dual is min |A u - b|^2, A = G', b = -(g + margin sum_k g_k): least squares without
    # negative values. A'A = gram and A'b = -linear are all that this needs; R'R = gram, R'd = -linear has K rows.
    values, vectors = torch.linalg.eigh(gram)
    positive = values > values[-1] * len(values) * 1e-14  # linearly dependent gradients are left out
    roots = values[positive].sqrt()
    R = roots[:, None] * vectors[:, positive].T
    d = -(vectors[:, positive].T @ linear) / roots
    u, _ = nnls(R.numpy(), d.numpy())
    v = torch.as_tensor(u, dtype=torch.float64) + margin
    return gradient + (to_device(v, G.device) @ G).to(gradient.dtype)


def flat_gradient(loss: Tensor, weights: Iterable[nn.Parameter]) -> Tensor:
    """Return (P,) the gradient of `loss`, 0 for weights that it does not depend on. `.grad` is not changed."""
    parts = torch.autograd.grad(loss, list(weights), materialize_grads=True)
    return torch.cat([part.reshape(-1) for part in parts])


def flat_gradients(parameters: Iterable[nn.Parameter]) -> Tensor:
    """Return (P,) gradients of the trainable parameters in the order of `flat_parameters`; 0 where there is none."""
    trainable = (p for p in parameters if p.requires_grad)
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in trainable])


def set_flat_gradients(parameters: Iterable[nn.Parameter], vector: Tensor) -> None:
    """Write a vector (P,) back to the gradients that `flat_gradients` reads."""
    trainable = [p for p in parameters if p.requires_grad]
    for parameter, part in zip(trainable, torch.split(vector, [p.numel() for p in trainable]), strict=True):
        parameter.grad = part.view_as(parameter).to(parameter.dtype)
