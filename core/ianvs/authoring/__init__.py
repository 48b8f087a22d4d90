"""Base classes and functions for authors of PyTorch methods. Nothing else needs them."""

from ianvs.authoring.closed_form import ClosedFormLearner, RandomProjection
from ianvs.authoring.fisher import FISHERS, Anchor, fisher_diagonal, with_anchor
from ianvs.authoring.lora import FrozenBody, LowRank, add_lora
from ianvs.authoring.memory import (
    BiasedReservoirMemory,
    ClassBalancedMemory,
    HerdingMemory,
    PerRoundMemory,
    ReservoirMemory,
    herding,
)
from ianvs.authoring.networks import SmallViT, body_and_head, flat_parameters, linear, mlp, resnet, token_network
from ianvs.authoring.projection import agem_projection, flat_gradients, gem_projection, set_flat_gradients
from ianvs.authoring.replay_learner import ExemplarLearner, ReplayLearner, distillation_loss
from ianvs.authoring.round_data import Batch, Joined, RoundData, own_classes_mask, some_of_each
from ianvs.authoring.torch_learner import TorchLearner
from ianvs.authoring.transformer import Transformer, transformer_of

__all__ = [
    "FISHERS",
    "Anchor",
    "Batch",
    "BiasedReservoirMemory",
    "ClassBalancedMemory",
    "ExemplarLearner",
    "HerdingMemory",
    "ClosedFormLearner",
    "FrozenBody",
    "Joined",
    "LowRank",
    "PerRoundMemory",
    "RandomProjection",
    "ReplayLearner",
    "ReservoirMemory",
    "RoundData",
    "SmallViT",
    "TorchLearner",
    "Transformer",
    "add_lora",
    "agem_projection",
    "body_and_head",
    "distillation_loss",
    "fisher_diagonal",
    "flat_gradients",
    "flat_parameters",
    "gem_projection",
    "herding",
    "linear",
    "mlp",
    "own_classes_mask",
    "resnet",
    "set_flat_gradients",
    "some_of_each",
    "token_network",
    "transformer_of",
    "with_anchor",
]
