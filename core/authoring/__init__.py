"""What an author of a PyTorch method may build on. Nothing else in core needs it."""

from core.authoring.buffers import BiasedReservoirMemory, ClassBalancedMemory
from core.authoring.distillation import distillation_loss
from core.authoring.fisher import Anchor, fisher_diagonal, with_anchor
from core.authoring.learner import TorchLearner
from core.authoring.memory import PerRoundMemory, ReservoirMemory
from core.authoring.networks import body_and_head, flat_parameters, linear, mlp, resnet
from core.authoring.projection import agem_projection, flat_gradients, gem_projection, set_flat_gradients
from core.authoring.rounds import Batch, Joined, RoundData

__all__ = [
    "Anchor",
    "Batch",
    "BiasedReservoirMemory",
    "ClassBalancedMemory",
    "Joined",
    "PerRoundMemory",
    "ReservoirMemory",
    "RoundData",
    "TorchLearner",
    "agem_projection",
    "body_and_head",
    "distillation_loss",
    "fisher_diagonal",
    "flat_gradients",
    "flat_parameters",
    "gem_projection",
    "linear",
    "mlp",
    "resnet",
    "set_flat_gradients",
    "with_anchor",
]
