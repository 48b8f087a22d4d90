"""Continual pre-training: learning features without labels, and adapting them to a task that has labels."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ianvs.authoring.networks import body_and_head

MASKED_SHARE = 0.25  # share of the inputs that denoising sets to 0
PROBE_WEIGHT_DECAY = 1e-4  # makes the optimum unique if the classes are separable


def new_decoder(network: nn.Module, input_shape: tuple[int, ...]) -> nn.Linear:
    """Return a decoder from the network's features (N, D) to its flattened input (N, prod(input_shape))."""
    _, head = body_and_head(network)
    return nn.Linear(head.in_features, int(torch.Size(input_shape).numel()))


def denoising_loss(network: nn.Module, decoder: nn.Module, x: Tensor) -> Tensor:
    """Return mean (decoder(features(x~)) - x)^2 / var(x): a denoising autoencoder (Vincent et al. 2008).

    x~ is x with a quarter of its numbers set to 0, drawn by torch's default generator. The squared error is in units of
    the batch's variance: 1 is no better than the mean, on any scale of the data.

    Args:
        network: The network.
        decoder: From features to x.
        x: (B, ...) prepared samples.
    """
    body, _ = body_and_head(network)
    masked = x * (torch.rand_like(x) >= MASKED_SHARE)
    rebuilt: Tensor = decoder(body(masked))
    return (rebuilt - x.flatten(1)).square().mean() / x.var().clamp_min(1e-8)


def fit_probe(head: nn.Linear, features: Tensor, y: Tensor, mask: Tensor | None = None) -> None:
    """Train `head` to the optimum of multinomial logistic regression on fixed features: full-batch L-BFGS from 0.

    Nothing is random and there is no learning rate to choose, so that only the representations are
    compared. features: (N, D) float32. y: (N,). mask: (C,) added to logits.
    """
    with torch.enable_grad():
        scale = features.std(0).clamp_min(1e-3)  # standardise the features for L-BFGS; reverted below
        shift = features.mean(0) if head.bias is not None else torch.zeros_like(scale)
        inputs = (features - shift) / scale
        weight = torch.zeros_like(head.weight, requires_grad=True)
        bias = torch.zeros(len(weight), device=weight.device, requires_grad=head.bias is not None)
        trained = [p for p in (weight, bias) if p.requires_grad]
        solver = torch.optim.LBFGS(trained, max_iter=200, history_size=20, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            solver.zero_grad()
            logits = inputs @ weight.T + bias
            penalty = PROBE_WEIGHT_DECAY / 2 * weight.square().sum()
            loss = cross_entropy(logits if mask is None else logits + mask, y) + penalty
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        solver.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        head.weight.copy_(weight / scale)
        if head.bias is not None:
            head.bias.copy_(bias - (weight / scale) @ shift)
