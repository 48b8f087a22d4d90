"""A base class that owns the training loop, so that a method is only what makes it different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.authoring import networks
from core.authoring.augmentation import find_augmentation
from core.authoring.loop import Schedule, fit
from core.authoring.pretraining import denoising_loss, fit_probe, new_decoder
from core.authoring.randomness import seeded
from core.authoring.rounds import Batch, RoundData, TaskMasks, output_mask, resident
from core.errors import PluginError, closest
from core.plugins.contract import TestData, TrainData
from core.seeding import stream_seed

__all__ = ["TorchLearner"]

ADAPTATIONS = ("probe", "finetune")


class TorchLearner:
    """Trains a classifier on what each round brings; by itself, plain fine-tuning.

    The head has an output for every class of the exam from the start. Outputs of classes that were not yet taught are
    masked (-inf), in training and in testing; when all classes are seen, or none, nothing is masked. Where an exam has
    answers chosen among the classes of a task, all others are masked. A label of -1 is withheld: `loss` skips it.

    A method overrides some of: `loss`, `extend`, `lesson`, `before_round`, `adjust_gradients`, `after_round`; `state`
    and `restore` if it keeps something between rounds; `prepare`, `build_network` for other inputs or networks.

    network: "mlp" with `hidden` units per hidden layer, "linear", "resnet" with `widths` channels per block, or one of
    torchvision's: "resnet18", "resnet34", "resnet50", "resnet101". optimizer: "sgd" or "adam", a new one in each round.
    epochs: passes over a round's data, fewer where the exam allows fewer. batch_size: samples. step_every: epochs after
    which the learning rate is multiplied by `step_gamma`, from `learning_rate` again in each round. augment: "none" or
    "crop_flip". adaptation: what a copy does with a downstream task after pre-training: "probe" fits a new head on
    frozen features, "finetune" trains everything under a new head.
    amp: bfloat16 autocast. channels_last: memory layout of convolutional networks, faster and with other last bits.
    """

    reference = "core.authoring:TorchLearner"  # trains the same network plainly, for reference runs
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
        step_every: int | None = None,
        step_gamma: float = 0.1,
        augment: str = "none",
        adaptation: str = "probe",
        amp: bool = False,
        channels_last: bool = True,
    ) -> None:
        if adaptation not in ADAPTATIONS:
            hint = closest(adaptation, ADAPTATIONS)
            raise PluginError(f"adaptation '{adaptation}' is not known.{hint} There are: {', '.join(ADAPTATIONS)}.")
        self.architecture = network
        self.hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        self.widths = tuple(widths)
        self.batch_size = batch_size
        self.schedule = Schedule(
            learning_rate, epochs, batch_size, optimizer, momentum, weight_decay, step_every, step_gamma
        )
        self.augment = find_augmentation(augment)
        self.adaptation = adaptation
        self.amp = amp
        self.channels_last = channels_last
        self._shape: tuple[tuple[int, ...], int] | None = None  # (sample, classes) that the network is built for
        self._layout = torch.contiguous_format
        self._decoder: nn.Linear | None = None  # of pre-training
        self._tasks = TaskMasks()

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

    def lesson(self, data: RoundData) -> RoundData:
        """What the loop goes over in a round; by itself, the data that the round brings."""
        return data

    def extend(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The samples of a step, from those (B, ...), (B,) that the round's order brings; ready for the network."""
        return x, y

    def loss(self, batch: Batch) -> Tensor:
        """The scalar that a step goes down; by itself, the mean cross-entropy of the samples that have a label.

        A loss without a gradient, as that of a batch without any label, takes no step. In pre-training it is the error
        of a denoising autoencoder.
        """
        if batch.pretraining and self._decoder is not None:
            return denoising_loss(self.network, self._decoder, batch.x)
        if batch.complete:
            return cross_entropy(batch.logits, batch.y)
        if not bool((batch.y >= 0).any()):
            return batch.logits.new_zeros(())
        return cross_entropy(batch.logits, batch.y, ignore_index=-1)

    def adjust_gradients(self, data: RoundData) -> None:
        """Called, if a method overrides it, between the backward pass and the step, to change `p.grad`."""

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
        task_classes: Sequence[int] | None = None,
        passes: int | None = None,
        pretraining: bool | None = None,
        device: str = "cpu",
        seed: int = 0,
        progress: Callable[[float], Any] | None = None,
        **context: Any,
    ) -> None:
        """Learn from one round. `valid_data` is not used; `progress` is told the share of epochs done.

        A reference that is given past rounds again and again is not held to a number of passes.
        """
        x, y = train_data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        place = torch.device(device)
        if resident(x, place):
            x, y = x.to(place), y.to(place)
        seen = tuple(int(c) for c in classes_seen)
        data = RoundData(
            x,
            y,
            round,
            seed,
            seen,
            place,
            self.prepare,
            output_mask(seen if task_classes is None else tuple(task_classes), num_classes, place),
            None if task_classes is None else self._tasks.teach(tuple(task_classes), num_classes, place),
            None if getattr(self, "sees_past_rounds", False) else passes,
            not bool((y < 0).any()),
            bool(pretraining),
        )
        with self._noise(data):
            self.network.train()
            if pretraining is False:
                self._adapt(data, progress)
                return
            self.before_round(data)
            self._fit(self.lesson(data), progress)
            self.after_round(data)

    def predict(
        self,
        data: TestData,
        *,
        num_classes: int,
        classes_seen: Sequence[int] = (),
        task_classes: Sequence[int] | None = None,
        device: str = "cpu",
        seed: int = 0,
        **context: Any,
    ) -> NDArray[np.int64]:
        """(N,) the most probable of the task's classes, where the exam gives them, or else of the classes seen so far;
        of all classes if the model is untrained."""
        allowed = tuple(classes_seen) if task_classes is None else tuple(task_classes)
        mask = output_mask(allowed, num_classes, torch.device(device))
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        labels: NDArray[np.int64] = self._each(x, lambda part: self.logits(part, mask).argmax(1)).cpu().numpy()
        return labels

    def features(
        self, data: TestData, *, num_classes: int, device: str = "cpu", seed: int = 0, **context: Any
    ) -> NDArray[np.float32]:
        """(N, D) what the head is given: the representation of each sample."""
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self._features(x).cpu().numpy()

    def save(self, path: Path) -> Path:
        """Write everything that a continuation needs to `path` with ".pt" added."""
        target = Path(path).with_name(Path(path).name + ".pt")
        weights = None if self._shape is None else self.network.state_dict()
        decoder = None if self._decoder is None else self._decoder.state_dict()
        kept = {"shape": self._shape, "network": weights, "decoder": decoder, "tasks": self._tasks.allowed}
        torch.save({**kept, "method": self.state()}, target)
        return target

    def load(self, path: Path) -> None:
        """Bring back what `save` wrote, bit for bit, on the CPU: the next train() or predict() moves it."""
        saved = self.read(path)
        self.reset()
        if saved["shape"] is not None:
            with seeded(0):  # its first weights are overwritten; the draws shall not show
                self._build(*saved["shape"])
                if saved["decoder"] is not None:
                    self._decoder = new_decoder(self.network, saved["shape"][0])
                    self._decoder.load_state_dict(saved["decoder"])
            self.network.load_state_dict(saved["network"])
        self._tasks = TaskMasks(saved["tasks"])
        self.restore(saved["method"])

    # For methods to use.

    def read(self, path: Path) -> dict[str, Any]:
        """What `save` wrote when it was given `path`, or returned it."""
        path = Path(path)
        target = path if path.is_file() else path.with_name(path.name + ".pt")
        saved: dict[str, Any] = torch.load(target, map_location="cpu", weights_only=True)
        return saved

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

    def batch(self, data: RoundData, x: Tensor, y: Tensor) -> Batch:
        """Prepared samples x (B, ...) with labels y (B,), and what the network says about them."""
        outputs = self.logits(x)
        return Batch(x, y, data.masked(outputs, y), outputs, data.complete, data.pretraining)

    def gradient(self, data: RoundData, x: Tensor, y: Tensor) -> Tensor:
        """(P,) gradient of `loss` on raw samples x (B, ...) with labels y (B,), in the order of `flat_parameters`."""
        batch = self.batch(data, self.prepare(x.to(data.device)), y.to(data.device))
        trainable = [p for p in self.network.parameters() if p.requires_grad]
        parts = torch.autograd.grad(self.loss(batch), trainable, materialize_grads=True)  # some may have no part in it
        return torch.cat([part.reshape(-1) for part in parts])

    def reset(self) -> None:
        """Forget the network: the next call that needs one starts from the first weights again."""
        self._shape = None
        self._decoder = None

    def study(self, data: RoundData, progress: Callable[[float], Any] | None = None) -> None:
        """Go over `data` outside of train(), where a method learns at another time."""
        with self._noise(data):
            self.network.train()
            self._fit(data, progress)

    def start_again(self, data: RoundData) -> None:
        """A network with the first weights again, at once: for `lesson`, where each round is learned from scratch."""
        if self._shape is not None:
            with seeded(stream_seed(data.seed, 0, "init")):
                self._build(*self._shape)
            self.network.to(data.device).train()

    # The parts of a round.

    def _fit(self, data: RoundData, progress: Callable[[float], Any] | None, *, plainly: bool = False) -> None:
        """plainly: without what the method adds."""
        loss = partial(TorchLearner.loss, self) if plainly else self.loss
        adjusts = not plainly and type(self).adjust_gradients is not TorchLearner.adjust_gradients
        changes = data.generator("augmentation") if self.augment else None

        def loss_of(x: Tensor, y: Tensor) -> Tensor:
            if not plainly:
                x, y = self.extend(x, y)
            if self.augment is not None and changes is not None:
                x = self.augment(x, changes)
            return loss(self.batch(data, x, y))

        parameters = [*self.network.parameters(), *self._decoder_parameters(data)]
        fit(parameters, data, self.schedule, loss_of, self.adjust_gradients if adjusts else None, progress)

    def _noise(self, data: RoundData) -> AbstractContextManager[None]:
        """The random stream for dropout, and whatever else a network draws."""
        return seeded(stream_seed(data.seed, data.round, "noise"), data.device)

    def _decoder_parameters(self, data: RoundData) -> list[nn.Parameter]:
        if not data.pretraining:
            return []
        if self._decoder is None and self._shape is not None:
            with seeded(stream_seed(data.seed, 0, "decoder")):
                self._decoder = new_decoder(self.network, self._shape[0])
        return [] if self._decoder is None else list(self._decoder.to(data.device).parameters())

    def _adapt(self, data: RoundData, progress: Callable[[float], Any] | None) -> None:
        """Learn a downstream task, with a new head, as any other learner would."""
        data = data.labelled()
        _, head = networks.body_and_head(self.network)
        if self.adaptation == "probe":
            fit_probe(head, self._features(data.x).clone(), data.y.to(data.device), data.mask)
            return
        with seeded(stream_seed(data.seed, 0, "adaptation")):
            head.to("cpu").reset_parameters()
        head.to(data.device)
        self._fit(data, progress, plainly=True)

    def _features(self, x: Tensor) -> Tensor:
        body, _ = networks.body_and_head(self.network)
        return self._each(x, lambda part: self.logits(part, network=body))

    def _each(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """`function` of prepared samples, 1024 at a time, by the network as it is in testing."""
        place = next(self.network.parameters()).device
        self.network.eval()
        with torch.inference_mode():
            return torch.cat([function(self.prepare(part.to(place))) for part in torch.split(x, 1024)])

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
