"""What an author of a PyTorch method may build on. Nothing else in core needs it."""

from core.authoring.distillation import distillation_loss
from core.authoring.fisher import Anchor, fisher_diagonal
from core.authoring.learner import TorchLearner
from core.authoring.memory import ReservoirMemory
from core.authoring.networks import flat_parameters, mlp, resnet
from core.authoring.rounds import Batch, Joined, RoundData

__all__ = [
    "Anchor",
    "Batch",
    "Joined",
    "ReservoirMemory",
    "RoundData",
    "TorchLearner",
    "distillation_loss",
    "fisher_diagonal",
    "flat_parameters",
    "mlp",
    "resnet",
]
