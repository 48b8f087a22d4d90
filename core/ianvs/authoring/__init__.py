"""What an author of a PyTorch method may build on. Nothing else needs it."""

from ianvs.authoring.buffers import BiasedReservoirMemory, ClassBalancedMemory
from ianvs.authoring.closed_form import ClosedFormLearner, RandomProjection
from ianvs.authoring.distillation import distillation_loss
from ianvs.authoring.exemplar_learner import ExemplarLearner
from ianvs.authoring.fisher import FISHERS, Anchor, fisher_diagonal, with_anchor
from ianvs.authoring.herding import HerdingMemory, herding
from ianvs.authoring.lora import FrozenBody, add_lora
from ianvs.authoring.memory import PerRoundMemory, ReservoirMemory
from ianvs.authoring.networks import body_and_head, flat_parameters, linear, mlp, resnet
from ianvs.authoring.own_classes import own_classes_mask
from ianvs.authoring.projection import agem_projection, flat_gradients, gem_projection, set_flat_gradients
from ianvs.authoring.replay_learner import ReplayLearner
from ianvs.authoring.round_data import Batch, Joined, RoundData
from ianvs.authoring.small_vit import SmallViT, token_network
from ianvs.authoring.torch_learner import TorchLearner

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
    "PerRoundMemory",
    "RandomProjection",
    "ReplayLearner",
    "ReservoirMemory",
    "RoundData",
    "SmallViT",
    "TorchLearner",
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
    "token_network",
    "with_anchor",
]
