"""TorchLearner for numbers, one for each sample, and methods that do not ask what a loss is."""

from torch.nn.functional import mse_loss

from ianvs.authoring import TorchLearner
from ianvs.base.errors import PluginError
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.der.basemodel import DER
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.label_sets import LabelSetReplay


class NumberLearner(TorchLearner):
    """Trains a network of one output on the squared error; by default, plain fine-tuning. In the hooks, y is (N, 1)."""

    memory = ()  # it keeps no samples

    def build_network(self, input_shape, num_classes):
        return super().build_network(input_shape, 1)

    def check_exam(self, *, kind, shape, num_classes):
        if kind != "regression":
            raise PluginError(
                f"{type(self).__name__} estimates numbers, but this exam is one of {kind}.", code="refused-arguments"
            )

    def tensors(self, data):
        x, y = data.tensors("cpu")
        if y.dim() != 1:
            raise PluginError(
                f"{type(self).__name__} estimates one number for each sample, not {y.shape[1]}.",
                code="refused-arguments",
            )
        return x, y[:, None]

    def loss(self, batch):
        return mse_loss(batch.outputs, batch.y)

    def predict(self, data, **context):
        return self.answer_logits(data, **context)[:, 0].cpu().numpy()


class NumberReplay(NumberLearner, LabelSetReplay):
    """Each step's samples are joined by as many old ones, or `replay_batch`, from a reservoir of `capacity`."""

    labels = "numbers"


class NumberAGEM(AGEM, NumberLearner):
    """A-GEM, whose gradients are of the squared error."""


class NumberDER(DER, NumberLearner):
    """Dark experience replay: the memory holds what the network said, a number as well."""

    def loss_of_samples(self, batch):
        return NumberLearner.loss(self, batch)


class NumberJoint(Joint, NumberLearner):
    """Trains a fresh model on all numbers so far: the upper bound."""
