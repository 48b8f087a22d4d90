"""A base class with the training loop, so that a method contains only what makes it different."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import networks
from ianvs.authoring.augmentation import find_augmentation
from ianvs.authoring.backbone_choice import BackboneChoice
from ianvs.authoring.image_transforms import ImageAugmentation
from ianvs.authoring.network_module import NetworkModule
from ianvs.authoring.optimizers import OptimizerMaker, build_optimizer
from ianvs.authoring.precision import chosen_precision
from ianvs.authoring.preprocessing import preprocess_options
from ianvs.authoring.pretraining import denoising_loss, fit_probe
from ianvs.authoring.projection import flat_gradient
from ianvs.authoring.randomness import seeded
from ianvs.authoring.round_data import Batch, RoundData, output_mask, own_classes_mask, resident, to_device
from ianvs.authoring.training_loop import Schedule, fit, loss_stagnated, require_finite
from ianvs.base.errors import PluginError, require_known
from ianvs.base.seeding import stream_seed
from ianvs.plugins.contract import TrainData
from ianvs.plugins.signature import leaves

ADAPTATIONS = ("probe", "finetune")
_UNSTABLE = "the training loss of a round did not fall: a smaller learning_rate may help"


class TorchLearner(NetworkModule):
    """Trains a classifier on the data of each round; by default, plain fine-tuning.

    The head has an output for every class of the exam from the start. Outputs of classes that were not yet taught are
    masked (-inf), in training and in testing; when all classes are seen, or none, nothing is masked. If an exam
    restricts predictions to the classes of a task, all others are masked. A label of -1 is hidden: `loss` skips it.

    docs/extending.md lists the hooks that a method may override, in the order in which they are called. docs/methods.md
    explains the options of pretrained networks: `weights` to `lora_alpha`.

    Args:
        network: "mlp", "linear", "resnet", "vit", a network of torchvision ("resnet18", ...), "timm/NAME" or "hf/NAME".
        hidden: Units of each hidden layer of "mlp".
        widths: Channels of each stage of "resnet".
        blocks: Blocks of each stage of "resnet".
        learning_rate: The rate at the start of each round.
        epochs: Passes over a round's data, fewer if the exam allows fewer.
        batch_size: Samples of a step.
        optimizer: "sgd", "adam" or "adamw".
        momentum: Of "sgd".
        weight_decay: Of the optimizer.
        step_every: Epochs after which the rate is multiplied by `step_gamma`.
        step_gamma: See `step_every` and `milestones`.
        milestones: Epochs, counted from 0, at which the rate is multiplied by `step_gamma`.
        decay: "none", or "cosine": the rate falls to 0 along half a cosine.
        warm_up: Share of the round's steps in which the rate rises linearly.
        iterations: Steps of a round, instead of `epochs`.
        keep_optimizer: Whether momentum and moments continue from the previous round.
        head_learning_rate: The rate of the last layer, if not `learning_rate`.
        clip_norm: Maximum norm of the gradient.
        clip_value: Maximum magnitude of each number of the gradient.
        nesterov: Of the momentum.
        updates_per_batch: Steps on each batch before the next one.
        first_round: Values of these options for round 1 alone, such as `{epochs: 200, learning_rate: 0.1}`.
        augment: "none", "crop" or "crop_flip" of prepared samples; or a mapping of torchvision's transforms of stored
            images, such as `{random_resized_crop: [0.05, 1], flip: 0.5}` (docs/methods.md).
        preprocess: `{resize: 256, crop: 224, interpolation: bicubic, scale: unit}`, instead of the single options.
        adaptation: How a copy adapts to a downstream task after pre-training. "probe": a new head on frozen features.
            "finetune": everything is trained under a new head.
        dropout: Share of units that is dropped after each hidden layer of "mlp".
        batch_norm: Whether "mlp" has batch normalisation.
        initialization: "default" (torch's), "xavier" or "kaiming" with biases of 0, for random weights.
        mask_unseen: Whether outputs of classes that were not taught yet are masked in training. Some papers don't.
        precision: "fp32", "bf16" (bfloat16 autocast), or "tf32" on a GPU, which rounds the factors of products.
        amp: The older name of bf16.
        compile: Whether torch.compile compiles the network for training.
        channels_last: Memory layout of convolutional networks: faster, with different last bits.
        scale: The scale of images.
        picture_size: Side, or [height, width], of images in pixels.
        interpolation: How images are resized.
        crop: Share of the resized sides that is kept around the centre.
        pooling: Features of a transformer, "cls" or "mean".
        weights: A file, folder or package of pretrained weights, or a name in the network's library.
        download: Whether weights may be downloaded.
        frozen: Whether only the head is trained.
        lora_rank: Rank of low-rank updates of a frozen transformer.
        lora_alpha: Scale of these updates; None: 2 * lora_rank.
    """

    reference = "ianvs.authoring:TorchLearner"  # trains the same network plainly, for reference runs

    # fmt: off
    def __init__(
        self, *, network: str = "mlp", hidden: int | Sequence[int] = 256, widths: Sequence[int] = (32, 64, 128),
        blocks: int = 1, learning_rate: float = 0.05, epochs: int = 20, batch_size: int = 32,
        optimizer: str = "sgd", momentum: float = 0.9, weight_decay: float = 0.0, step_every: int | None = None,
        step_gamma: float = 0.1, milestones: Sequence[int] = (), decay: str = "none", warm_up: float = 0.0,
        iterations: int | None = None, keep_optimizer: bool = False, head_learning_rate: float | None = None,
        clip_norm: float | None = None, clip_value: float | None = None, nesterov: bool = False,
        updates_per_batch: int = 1, first_round: Mapping[str, Any] | None = None,
        augment: str | Mapping[str, Any] = "none", preprocess: Mapping[str, Any] | None = None,
        adaptation: str = "probe", dropout: float = 0.0, batch_norm: bool = False, initialization: str = "default",
        mask_unseen: bool = True, precision: str = "fp32", amp: bool = False, compile: bool = False,
        channels_last: bool = True, scale: str | Mapping[str, Any] | None = None,
        picture_size: int | Sequence[int] | None = None, interpolation: str | None = None,
        crop: float | str | None = None, pooling: str | None = None, weights: str | None = None,
        download: bool = False, frozen: bool = False, lora_rank: int | None = None, lora_alpha: float | None = None,
    ) -> None:
    # fmt: on
        options = {**locals(), "milestones": tuple(milestones)}
        options |= preprocess_options(preprocess or {}, options)
        require_known("adaptation", adaptation, ADAPTATIONS)
        sizes = (hidden,) if isinstance(hidden, int) else hidden
        super().__init__(
            network,
            {"hidden": sizes, "widths": widths, "blocks": blocks, "dropout": dropout, "batch_norm": batch_norm},
            initialization=initialization,
            precision=chosen_precision(precision, amp),
            compile=compile,
            channels_last=channels_last,
            backbone=BackboneChoice(
                **{field.name: options[field.name] for field in fields(BackboneChoice) if field.init}
            ),
        )
        if initialization != "default" and weights is not None:
            raise PluginError(
                f"initialization '{initialization}' would overwrite the `weights`. Keep one of them.",
                code="conflicting-keys",
            )
        self.batch_size = batch_size
        self.schedule = Schedule(**{field.name: options[field.name] for field in fields(Schedule)})
        self._schedules = self.schedule.for_first_round(first_round or {}), self.schedule
        self.keep_optimizer = keep_optimizer
        self.head_learning_rate = head_learning_rate
        self.augment = find_augmentation(augment)
        self.adaptation = adaptation
        self.mask_unseen = mask_unseen
        self._changes = torch.Generator()  # draws of the augmentation
        self._make_optimizer = OptimizerMaker()
        self._masked: tuple[object, Tensor | None] = None, None  # (inputs of the last output mask, the mask)
        self.data: RoundData | None = None  # data of the current round
        self._round = 0  # the last trained round

    # What a method may override.

    def tensors(self, data: TrainData) -> tuple[Tensor, Tensor]:
        """Return training data as x (N, ...) and y (N, ...) on the CPU; override it for labels such as boxes.

        The hooks receive this y. Labels of two dimensions or more are never hidden.
        """
        return data.tensors("cpu")

    def before_round(self, data: RoundData) -> None:
        """Prepare for a round. It is called before the first step."""

    def training_data(self, data: RoundData) -> RoundData:
        """Return the data to train on in a round; by default the round's own."""
        return data

    def extend(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the samples of a step, given the round's next batch (B, ...), (B,); ready for the network."""
        return x, y

    def loss(self, batch: Batch) -> Tensor:
        """Return the scalar that a step minimises; by default the mean cross-entropy of the samples that have a label.

        A loss without a gradient, such as that of a batch without labels, takes no step. In pre-training it is the
        error of a denoising autoencoder.
        """
        if batch.pretraining and self._decoder is not None:
            return denoising_loss(self.network, self._decoder, batch.x)
        if batch.complete:
            return cross_entropy(batch.logits, batch.y)
        if not bool((batch.y >= 0).any()):
            return batch.logits.new_zeros(())
        return cross_entropy(batch.logits, batch.y, ignore_index=-1)

    def further_parameters(self) -> list[nn.Parameter]:
        """Return what a round trains besides the network, such as a head for this round alone."""
        return []

    def adjust_gradients(self, data: RoundData) -> None:
        """Change `p.grad`. If a method overrides it, it is called between the backward pass and the step."""

    def after_step(self, x: Tensor, y: Tensor, epoch: int, step: int) -> None:
        """Process the batch of a step. If a method overrides it, it is called after each step.

        Args:
            x: (B, ...) the batch's own samples in their stored form, before `prepare` and augmentation.
            y: (B,) labels.
            epoch: Counted from 0.
            step: The step in the epoch, counted from 0.
        """

    def after_round(self, data: RoundData) -> None:
        """Finish a round. It is called after the last step, before anything is scored."""

    # What the benchmark calls.

    @leaves("generator")
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
        progress: Callable[[float], object] | None = None,
        **context: object,
    ) -> None:
        """Learn from one round. `valid_data` is not used; `progress` is called with the share of epochs done.

        A reference that sees past rounds repeatedly is exempt from the limit on passes.
        """
        self._round, self.schedule = round, self._schedules[round > 1]
        x, y = self.tensors(train_data)
        self.scaling.learn(x)
        self._ready(x, num_classes, device, seed)
        place = torch.device(device)
        complete = not len(y) or y.dim() > 1 or int(y.min()) >= 0  # checked on the CPU: on a GPU it would have to wait
        if resident(x, place):
            x, y = to_device(x, place), to_device(y, place)
        seen = tuple(int(c) for c in classes_seen)
        own_classes = None if task_classes is None else tuple(task_classes)
        allowed = own_classes if own_classes is not None else seen if self.mask_unseen else ()  # (): all are
        data = RoundData(
            x,
            y,
            round,
            seed,
            seen,
            place,
            self.prepare,
            self._mask(allowed, num_classes, place),
            None if own_classes is None else self._tasks.teach(own_classes, num_classes, place),
            None if getattr(self, "sees_past_rounds", False) else passes,
            complete,
            bool(pretraining),
            self.views if isinstance(self.augment, ImageAugmentation) else None,
        )
        with self._noise(data):
            self._set_training()
            if pretraining is False:
                self._adapt(data, progress)
                return
            self.data = data
            self.before_round(data)
            self._fit(self.training_data(data), progress)
            self.after_round(data)
            self.data = None

    def save(self, path: Path) -> Path:
        """Write the state as NetworkModule does. Raises PluginError for weights that are not finite."""
        if self._shape is not None:
            trained = [p for p in self.network.parameters() if p.is_floating_point() and p.requires_grad]
            require_finite(trained, self._round, self.schedule.learning_rate)
        return super().save(path)

    # For methods to use.

    def inputs(self, x: Tensor) -> Tensor:
        """Return stored samples (B, ...), from `RoundData.x` or a memory, ready for the network, on its device."""
        return self.prepare(to_device(x, next(self.network.parameters()).device))

    def views(self, x: Tensor) -> Tensor:
        """Return `inputs` as a step gets them: augmented before they are scaled, if `augment` is a mapping."""
        augment = self.augment
        if not isinstance(augment, ImageAugmentation):
            return self.inputs(x)
        x, choice = to_device(x, next(self.network.parameters()).device), self.backbone_choice
        if type(self).prepare is not TorchLearner.prepare:
            return self.prepare(augment(x, self._changes))
        if not augment.resizes:
            x = choice.resized_pixels(x)
        x = augment(x, self._changes, choice.size)
        return self.scaling(x.to(torch.float32, memory_format=self._layout), x.dtype == torch.uint8)

    def augmented(self, x: Tensor) -> Tensor:
        """Return prepared samples (B, ...) with a named `augment`, as in a step; `views` are augmented already."""
        return (
            x if self.augment is None or isinstance(self.augment, ImageAugmentation) else self.augment(x, self._changes)
        )

    def batch(self, data: RoundData, x: Tensor, y: Tensor) -> Batch:
        """Return a `Batch` of prepared samples x (B, ...) with labels y (B,) and the network's outputs for them."""
        outputs = self.logits(x)
        return Batch(x, y, data.masked(outputs, y), outputs, data.complete, data.pretraining)

    def gradient(self, batch: Batch) -> Tensor:
        """Return (P,) the gradient of `loss` on another batch, in the order of `flat_parameters`; `p.grad` stays."""
        return flat_gradient(self.loss(batch), (p for p in self.network.parameters() if p.requires_grad))

    def fit_head(self, data: RoundData, epochs: int) -> RoundData:
        """Train only the last layer's outputs for the round's own classes, by plain steps on fixed features.

        Returns:
            The same data with their remaining passes. All but one may be used here.
        """
        if data.passes is not None:
            epochs = min(epochs, data.passes - 1)
            data = replace(data, passes=data.passes - epochs)
        if not epochs:
            return data
        shown = data.labelled()
        _, head = networks.body_and_head(self.network)
        features = replace(shown, x=self._features(shown.x).clone(), passes=None, prepare=lambda x: x, views=None)
        self._set_training()
        mask = own_classes_mask(data, head.out_features)

        def loss_of(x: Tensor, y: Tensor) -> Tensor:
            return cross_entropy(head(x) + mask, y)

        schedule = Schedule(self.schedule.learning_rate, epochs, self.batch_size)
        fit([([*head.parameters()], schedule.learning_rate)], features, schedule, loss_of)
        return data

    def study(self, data: RoundData, progress: Callable[[float], object] | None = None) -> None:
        """Train on `data` outside of train(), for methods that learn at another time."""
        self.schedule = self._schedules[data.round > 1]
        with self._noise(data):
            self._set_training()
            self.data = data
            self._fit(data, progress)
            self.data = None

    # The parts of a round.

    def _fit(self, data: RoundData, progress: Callable[[float], object] | None, *, plainly: bool = False) -> None:
        """Train on the round. plainly: without the hooks of the method."""
        loss = partial(TorchLearner.loss, self) if plainly else self.loss
        method = TorchLearner if plainly else type(self)
        if self.augment is not None:
            self._changes = data.generator("augmentation")

        def loss_of(x: Tensor, y: Tensor) -> Tensor:
            if not plainly:
                x, y = self.extend(x, y)
            return loss(self.batch(data, self.augmented(x), y))

        overrides_adjust = method.adjust_gradients is not TorchLearner.adjust_gradients
        losses: list[Tensor] = []
        made = fit(
            self._rates(data),
            data,
            self.schedule,
            loss_of,
            adjust_gradients=self.adjust_gradients if overrides_adjust else None,
            after_step=self.after_step if method.after_step is not TorchLearner.after_step else None,
            progress=progress,
            previous_state=self._optimizer if self.keep_optimizer else None,
            optimizer_factory=build_optimizer if self.keep_optimizer else self._make_optimizer,
            losses=losses if self.schedule.epochs > 2 else None,
        )
        if loss_stagnated(losses) and _UNSTABLE not in self.remark:
            self.remark = "; ".join(filter(None, (self.remark, _UNSTABLE)))
        self._optimizer = made.state_dict()["state"] if self.keep_optimizer else None

    def _rates(self, data: RoundData) -> list[tuple[list[nn.Parameter], float]]:
        rate, head_rate = self.schedule.learning_rate, self.head_learning_rate
        more = [*self._decoder_parameters(data), *self.further_parameters()]
        if head_rate is None:
            return [([*self.network.parameters(), *more], rate)]
        body, head = networks.body_and_head(self.network)
        return [([*body.parameters(), *more], rate), ([*head.parameters()], head_rate)]

    def _mask(self, allowed: tuple[int, ...], num_classes: int, place: torch.device) -> Tensor | None:
        key = allowed, num_classes, place
        if key != self._masked[0]:  # made anew only where it would be another one
            self._masked = key, output_mask(*key)
        return self._masked[1]

    def _noise(self, data: RoundData) -> AbstractContextManager[None]:
        """Return the random stream for dropout, and whatever else a network draws."""
        return seeded(stream_seed(data.seed, data.round, "noise"), data.device)

    def _adapt(self, data: RoundData, progress: Callable[[float], object] | None) -> None:
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
