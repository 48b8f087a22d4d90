"""A base class that owns the training loop, so that a method is only what makes it different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.authoring import networks, optimizers
from core.authoring.randomness import seeded
from core.authoring.rounds import Batch, RoundData, output_mask, resident
from core.errors import PluginError
from core.plugins.contract import TestData, TrainData
from core.seeding import stream_seed

__all__ = ["TorchLearner"]


class TorchLearner:
    """Trains a classifier on what each round brings; by itself, plain fine-tuning.

    The head has an output for every class of the exam from the start. Outputs of classes that were not yet taught are
    masked (-inf), in training and in testing; when all classes are seen, or none, nothing is masked.

    A method overrides some of: `loss`, `extend`, `before_round`, `after_round`; `state` and `restore` if it keeps
    something between rounds; `prepare`, `build_network` for other inputs or networks.

    network: "mlp" with `hidden` units per hidden layer, or "resnet" with `widths` channels per block.
    optimizer: "sgd" or "adam", a new one in each round. epochs: passes over a round's data. batch_size: samples.
    amp: bfloat16 autocast. channels_last: memory layout of convolutional networks, faster and with other last bits.
    """

    network: nn.Module  # exists from the first train(), predict() or load() on

    def __init__(
        self,
        *,
        network: str = "mlp",
        hidden: int | Sequence[int] = 256,
        widths: Sequence[int] = (32, 64, 128),
        learning_rate: float = 0.05,
        epochs: int = 20,
        batch_size: int = 32,
        optimizer: str = "sgd",
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        amp: bool = False,
        channels_last: bool = True,
    ) -> None:
        self.architecture = network
        self.hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        self.widths = tuple(widths)
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.amp = amp
        self.channels_last = channels_last
        self._shape: tuple[tuple[int, ...], int] | None = None  # (sample, classes) that the network is built for
        self._layout = torch.contiguous_format

    # What a method may override.

    def build_network(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """A new network on the CPU: (N, *input_shape) -> (N, num_classes) logits."""
        return networks.build_network(
            self.architecture, input_shape, num_classes, hidden=self.hidden, widths=self.widths
        )

    def prepare(self, x: Tensor) -> Tensor:
        """Raw samples (B, ...) to the network's input; uint8 pictures become numbers from -1 to 1."""
        layout = self._layout if x.dim() == 4 else torch.preserve_format
        if x.dtype == torch.uint8:
            return x.to(torch.float32, memory_format=layout).div_(127.5).sub_(1.0)
        return x.to(torch.float32, memory_format=layout)

    def before_round(self, data: RoundData) -> None:
        """Called before the first step of a round."""

    def extend(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The samples of a step, from those (B, ...), (B,) that the round's order brings; ready for the network."""
        return x, y

    def loss(self, batch: Batch) -> Tensor:
        """The scalar that a step goes down; by itself, the mean cross-entropy."""
        return cross_entropy(batch.logits, batch.y)

    def after_round(self, data: RoundData) -> None:
        """Called after the last step of a round, before anything is scored."""

    def state(self) -> dict[str, Any]:
        """What the method needs to go on besides the network: tensors, numbers, text, and lists or dicts of these."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""

    # What the benchmark calls.

    def train(
        self,
        train_data: TrainData,
        valid_data: TrainData | None = None,
        *,
        num_classes: int,
        round: int = 1,
        classes_seen: Sequence[int] = (),
        device: str = "cpu",
        seed: int = 0,
        progress: Callable[[float], Any] | None = None,
        **context: Any,
    ) -> None:
        """Learn from one round. `valid_data` is not used; `progress` is told the share of epochs done."""
        x, y = train_data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        place = torch.device(device)
        if resident(x, place):
            x, y = x.to(place), y.to(place)
        seen = tuple(int(c) for c in classes_seen)
        data = RoundData(x, y, round, seed, seen, place, self.prepare, output_mask(seen, num_classes, place))
        with seeded(stream_seed(seed, round, "noise"), place):  # dropout, and whatever else a network draws
            self.before_round(data)
            self._fit(data, progress)
            self.after_round(data)

    def predict(
        self,
        data: TestData,
        *,
        num_classes: int,
        classes_seen: Sequence[int] = (),
        device: str = "cpu",
        seed: int = 0,
        **context: Any,
    ) -> NDArray[np.int64]:
        """(N,) the most probable of the classes seen so far; of all classes if the model is untrained."""
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        place = torch.device(device)
        mask = output_mask(tuple(classes_seen), num_classes, place)
        self.network.eval()
        with torch.inference_mode():
            labels = [self.logits(self.prepare(part.to(place)), mask).argmax(1) for part in torch.split(x, 1024)]
            return torch.cat(labels).cpu().numpy()

    def save(self, path: Path) -> Path:
        """Write everything that a continuation needs to `path` with ".pt" added."""
        target = Path(path).with_name(Path(path).name + ".pt")
        weights = None if self._shape is None else self.network.state_dict()
        torch.save({"shape": self._shape, "network": weights, "method": self.state()}, target)
        return target

    def load(self, path: Path) -> None:
        """Bring back what `save` wrote, bit for bit, on the CPU: the next train() or predict() moves it."""
        path = Path(path)
        target = path if path.is_file() else path.with_name(path.name + ".pt")
        saved = torch.load(target, map_location="cpu", weights_only=True)
        self.reset()
        if saved["shape"] is not None:
            with seeded(0):  # its first weights are overwritten; the draws shall not show
                self._build(*saved["shape"])
            self.network.load_state_dict(saved["network"])
        self.restore(saved["method"])

    # For methods to use.

    def logits(self, x: Tensor, mask: Tensor | None = None, network: nn.Module | None = None) -> Tensor:
        """(B, num_classes) float32 logits of prepared samples, with `mask` added; of `network`, if it is another."""
        network = self.network if network is None else network
        if self.amp:
            with torch.autocast(x.device.type, torch.bfloat16):
                outputs: Tensor = network(x)
            outputs = outputs.float()
        else:
            outputs = network(x)
        return outputs if mask is None else outputs + mask

    def reset(self) -> None:
        """Forget the network: the next call that needs one starts from the first weights again."""
        self._shape = None

    # The loop.

    def _fit(self, data: RoundData, progress: Callable[[float], Any] | None) -> None:
        network = self.network.train()
        optimizer = optimizers.build_optimizer(
            self.optimizer,
            network.parameters(),
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        trainable = [p for group in optimizer.param_groups for p in group["params"]]
        order = data.generator("order")
        for epoch in range(self.epochs):
            for own_x, own_y in data.shuffled(self.batch_size, order):
                x, y = self.extend(own_x, own_y)
                for parameter in trainable:  # what optimizer.zero_grad() does, without its 7 microseconds
                    parameter.grad = None
                self.loss(Batch(x, y, self.logits(x, data.mask))).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if progress is not None:
                progress((epoch + 1) / self.epochs)
        if not all(bool(p.isfinite().all()) for p in network.parameters()):
            raise PluginError(
                f"the weights became infinite or nan in round {data.round}. A smaller learning_rate "
                f"(now {self.learning_rate:g}) or a weaker penalty keeps them finite."
            )

    def _ready(self, x: Tensor, num_classes: int, device: str, seed: int) -> None:
        if self._shape is None:
            with seeded(stream_seed(seed, 0, "init")):
                self._build(tuple(x.shape[1:]), num_classes)
        self.network.to(device)

    def _build(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        network = self.build_network(input_shape, num_classes)
        convolutional = any(p.dim() == 4 for p in network.parameters())
        self._layout = torch.channels_last if convolutional and self.channels_last else torch.contiguous_format
        self.network = network.to(memory_format=self._layout) if convolutional else network
        self._shape = (tuple(input_shape), num_classes)
