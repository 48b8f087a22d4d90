"""Start of a new domain in MDIL-SS (Garg et al., WACV 2022): its first weights, the trained parameters, the learning
rates.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ianvs.testalgorithms.nets import ErfNet


def poly_lr(base: float, epoch: int, epochs: int, power: float = 0.9) -> float:
    """Learning rate of `epoch` = 1..epochs: base (1 - (epoch - 1) / epochs)^power (Chen et al. 2018)."""
    return float(base * (1.0 - (epoch - 1) / epochs) ** power)


def initialise_domain(network: ErfNet, new: int, source: int, *, copy_running_statistics: bool = False) -> None:
    """Initialise domain `new` from `source`, the last learned one; its class outputs are not changed.

    Copied are adapters, the encoder's affine batch normalisation, and the decoder with its running statistics, all but
    the convolution to classes, since these differ. Running statistics of the encoder's batch normalisations are not
    copied, as in the authors' code: until they are trained, both branches of the encoder agree in training mode and not
    in evaluation. copy_running_statistics=True copies them too. A network without adapters only has decoders.
    """
    for learnt, fresh in zip(network.domain_modules(source), network.domain_modules(new), strict=True):
        if fresh is network.decoders[new]:
            names: tuple[str, ...] = ("classifier.weight", "classifier.bias")
        else:
            names = () if copy_running_statistics else ("running_mean", "running_var", "num_batches_tracked")
        target = fresh.state_dict()
        with torch.no_grad():
            for name, value in learnt.state_dict().items():
                if not name.endswith(names):
                    target[name].copy_(value)


def trainable_groups(network: ErfNet, domain: int, lr_shared: float, lr_new: float) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser for `domain`: W_s at `lr_shared`, W_t of `domain` at `lr_new`.

    Freezes every other domain (requires_grad), and what gets no learning rate: lr_shared=0 is "W_s does not learn".
    The paper's rates are 5e-6 and 5e-4 from the second domain on, 5e-4 for both in the first.
    """
    network.requires_grad_(False)
    groups = []
    for name, parameters, rate in (
        ("shared", list(network.shared_parameters()), lr_shared),
        ("domain", list(network.domain_parameters(domain)), lr_new),
    ):
        if rate > 0.0:
            for parameter in parameters:
                parameter.requires_grad_(True)
            groups.append({"name": name, "params": parameters, "lr": rate, "initial_lr": rate})
    return groups


def frozen_copy(network: ErfNet, *, training: bool = False) -> ErfNet:
    """Return the teacher: the network as it is now, without gradients, in evaluation mode.

    training=True leaves its dropout and its batch statistics on, as the authors' code does in the third step.
    """
    return copy.deepcopy(network).requires_grad_(False).train(training)


@contextmanager
def training_mode(network: ErfNet, domain: int, *, old_statistics_drift: bool = False) -> Iterator[None]:
    """Put `network` into training mode for `domain`, with the branches of all other domains in evaluation mode.

    Distillation runs old branches on images of the new domain. Their batch normalisations then use the statistics of
    their own domain and keep them; dropout, which lies in the shared part, is active in every branch.
    old_statistics_drift=True leaves the whole network in training mode, as in the authors' code: old branches are
    normalised by the new domain's batches and forget their own statistics.

    Afterwards the network is in evaluation mode.
    """
    network.train()
    if not old_statistics_drift:
        for other in range(len(network.decoders)):
            if other != domain:
                for module in network.domain_modules(other):
                    module.eval()
    try:
        yield
    finally:
        network.eval()
