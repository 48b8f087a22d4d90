"""A base class for continual segmentation: a network with a head per domain, and the loop that trains it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ianvs.authoring.precision import chosen_precision, use_precision
from ianvs.authoring.randomness import seeded, torch_generator
from ianvs.authoring.single_values import allow_single_values
from ianvs.authoring.training_loop import require_finite
from ianvs.base.errors import PluginError, require_known
from ianvs.base.seeding import stream_seed
from ianvs.plugins.contract import TestData, TrainData
from ianvs.testalgorithms.mdil_ss.losses import weighted_cross_entropy
from ianvs.testalgorithms.mdil_ss.protocol import initialise_domain, poly_lr, trainable_groups, training_mode
from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.erfnet import shape_of
from ianvs.testalgorithms.nets.erfnet_import import import_encoder, read_checkpoint
from ianvs.testalgorithms.segmentation.data import Augmentation, Batch, DomainData, DomainLabels
from ianvs.testalgorithms.segmentation.predicting import answers, mean_iou


class SegmentationLearner:
    """Trains ERFNet on the domain that each round brings; by default, with a new decoder and all else shared.

    A round's domain is its `task`; it gets a head of its own, with an output for each of the round's classes and one
    for "ignore", which weighs nothing. A domain that was not taught yet is predicted by the head of the last that was.

    Protocol (Garg et al., WACV 2022): Adam (betas 0.9, 0.999; L2 `weight_decay`), learning rates that fall by
    (1 - (e - 1) / epochs)^0.9, cross-entropy weighted by 1 / ln(1.1 + share of the class), flips with probability
    `flip`, shifts of up to `max_shift` pixels whose `shift_border` is described in mdil_ss.augmentation.

    network: "erfnet", or "erfnet_narrow" for a CPU; channels, blocks, dilations, decoder_blocks and dropout change its
    shape in parts (ErfNetShape). pretrained_encoder: a checkpoint of the authors' ERFNet encoder to start from.
    learning_rate: of everything that a round trains, and of W_s in the first round; shared_learning_rate: of W_s, the
    shared weights, from the second round on; None is the same as learning_rate.
    initialise: whether a new domain starts from the last one's weights. checkpoint: the weights that a round ends with,
    "last", or "best" by mIoU on its held-out part. predict_ignore: whether "ignore" may be predicted (255), as in the
    authors' evaluation. precision: "fp32", "bf16" or, on a GPU, "tf32". amp: an older
    name of bf16. compile: torch.compile of training. channels_last: a faster layout.
    """

    network: Any  # ErfNet or alike; exists from the first train() or load() of a trained model on
    basemodel = "ERFNet"
    adapters = False
    trains_old_branches = False  # whether steps reach the parameters and statistics of earlier domains' branches

    def __init__(
        self,
        *,
        network: str = "erfnet",
        channels: Sequence[int] | None = None,
        blocks: int | None = None,
        dilations: Sequence[int] | None = None,
        decoder_blocks: int | None = None,
        dropout: Sequence[float] | None = None,
        pretrained_encoder: str | None = None,
        epochs: int = 150,
        batch_size: int = 6,
        learning_rate: float = 5e-4,
        shared_learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        initialise: bool = True,
        flip: float = 0.5,
        max_shift: int = 2,
        shift_border: str = "ignore",
        checkpoint: str = "last",
        predict_ignore: bool = False,
        precision: str = "fp32",
        amp: bool = False,
        compile: bool = False,
        channels_last: bool = True,
    ) -> None:
        given = locals()
        require_known("checkpoint", checkpoint, ("last", "best"))
        shape = {field.name: given[field.name] for field in fields(ErfNetShape)}
        self.shape = shape_of(network, **shape)
        self.pretrained_encoder = pretrained_encoder
        self.epochs, self.batch_size = epochs, batch_size
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.shared_learning_rate = learning_rate if shared_learning_rate is None else shared_learning_rate
        self.initialise = initialise
        self.augmentation = Augmentation(flip, max_shift, shift_border)
        self.checkpoint, self.predict_ignore = checkpoint, predict_ignore
        self.precision, self.compile = chosen_precision(precision, amp), compile
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        self.domains: dict[int, DomainLabels] = {}  # by task, in the order of the network's branches

    # What a method may override.

    def build_network(self) -> Any:
        """Return a new network without domains, on the CPU."""
        return ErfNet([], self.shape, adapters=self.adapters)

    def start_domain(self, domain: int) -> None:
        """Called when the network has got its new `domain`, with weights as drawn."""
        if domain and self.initialise:
            initialise_domain(self.network, domain, domain - 1)

    def rates(self, domain: int) -> tuple[float, float]:
        """Learning rates of the shared weights and of the domain's own, when `domain` is learnt."""
        return (self.shared_learning_rate if domain else self.learning_rate), self.learning_rate

    def before_round(self, data: DomainData) -> None:
        """Called before the first step of a round."""

    def epoch(self, data: DomainData) -> Iterator[Any]:
        """What the steps of one epoch work on, one after the other."""
        return self.pass_over(data)

    def step(self, batch: Any) -> None:
        """Do one iteration; by default, one optimiser step on the cross-entropy."""
        self.descend([self.cross_entropy(batch)])

    def after_round(self, data: DomainData) -> None:
        """Called after the last step of a round, before anything is scored."""

    def training(self, domain: int) -> AbstractContextManager[None]:
        """Return the context in which steps on `domain` are made: what is in training mode."""
        return training_mode(self.network, domain, old_statistics_drift=self.trains_old_branches)

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
        new_classes: Sequence[int] = (),
        round: int = 1,
        task: int | None = None,
        device: str = "cpu",
        seed: int = 0,
        progress: Callable[[float], Any] | None = None,
        **context: Any,
    ) -> None:
        """Learn one domain. `valid_data` chooses the best checkpoint; `progress` is told the share of epochs done."""
        task = round - 1 if task is None else task
        self.device = torch.device(device)
        use_precision(self.precision, device)
        self.begin(task, DomainLabels(new_classes or range(num_classes)), seed)
        self.network.to(self.device)
        self.order = torch_generator(seed, round, "order")
        self.moves = torch_generator(seed, round, "augmentation")
        self.draws = torch_generator(seed, round, "memory")
        data, valid = self.data_of(train_data, task), self._valid(valid_data, task)
        with seeded(stream_seed(seed, round, "noise"), self.device):  # dropout
            self._fit(data, valid, progress)
        require_finite([*self.network.parameters()], round, self.learning_rate)

    def predict(
        self,
        data: TestData,
        *,
        num_classes: int,
        task: int | None = None,
        device: str = "cpu",
        seed: int = 0,
        **context: Any,
    ) -> Tensor:
        """Return (N, H, W) uint8 classes of the domain `task`, on the device; 255 where "ignore" is predicted."""
        if not self.domains:
            return self._untrained(num_classes, seed).predict(data, num_classes=num_classes, device=device)
        self.device = torch.device(device)
        use_precision(self.precision, device)
        self.network.to(self.device).eval()
        domain = self.domain_of(task)
        labels = list(self.domains.values())[domain]
        parts = answers(
            partial(self.logits, domain=domain, network=self.network),
            data.tensors("cpu"),
            labels.outputs if self.predict_ignore else labels.ignore,
            self.layout,
            self.device,
        )
        return torch.cat([labels.to_exam(part) for part in parts])

    def save(self, path: Path) -> Path:
        """Write everything that a continuation needs to `path` with ".pt" added."""
        target = Path(path).with_name(Path(path).name + ".pt")
        domains = {task: labels.classes for task, labels in self.domains.items()}
        weights = self.network.state_dict() if domains else None
        torch.save({"domains": domains, "network": weights, "method": self.state()}, target)
        return target

    def load(self, path: Path) -> None:
        """Bring back what `save` wrote, bit for bit, on the CPU: the next train() or predict() moves it."""
        path = Path(path)
        target = path if path.is_file() else path.with_name(path.name + ".pt")
        saved = torch.load(target, map_location="cpu", weights_only=True)
        self.domains = {task: DomainLabels(classes) for task, classes in saved["domains"].items()}
        if self.domains:
            with seeded(0):  # first weights are overwritten; the draws shall not show
                self.network = self.build_network()
                for labels in self.domains.values():
                    self.network.add_domain(labels.outputs)
            allow_single_values(self.network)
            self.network.to(memory_format=self.layout).load_state_dict(saved["network"])
        self.restore(saved["method"])

    # For methods to use.

    def begin(self, task: int, labels: DomainLabels, seed: int) -> None:
        """Make room for the domain `task`, unless it is known, with weights drawn from the seed and its number."""
        if task in self.domains:
            return
        if not self.domains:
            with seeded(stream_seed(seed, 0, "init")):
                self.network = self.build_network()
            if self.pretrained_encoder is not None:
                import_encoder(self.network, read_checkpoint(self.pretrained_encoder), norms=not self.adapters)
        self.domains[task] = labels
        with seeded(stream_seed(seed, len(self.domains), "init")):
            self.network.add_domain(labels.outputs)
        allow_single_values(self.network)
        self.network.to(memory_format=self.layout)
        self.start_domain(len(self.domains) - 1)

    def domain_of(self, task: int | None) -> int:
        """Number of the network's branch for `task`; the last one if the task is hidden or was not taught yet."""
        tasks = list(self.domains)
        return tasks.index(task) if task in tasks else len(tasks) - 1

    def data_of(self, train_data: TrainData, task: int) -> DomainData:
        """Return the images of `train_data`, which are of the domain `task`, with labels as its head numbers them."""
        x, y = train_data.tensors("cpu")
        return DomainData(x, y, self.domains[task], self.domain_of(task), self.device)

    def pass_over(self, data: DomainData) -> Iterator[Batch]:
        """One pass over `data` in batches, in the round's random order and with its augmentation."""
        return data.epoch(self.batch_size, self.augmentation, self.layout, order=self.order, moves=self.moves)

    def logits(self, x: Tensor, domain: int, network: Any = None) -> Tensor:
        """Return (B, C, H, W) of the branch `domain`; of `network`, if it is another than the one that learns."""
        network = self.forward if network is None else network
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            logits: Tensor = network(x, domain)
        return logits

    def cross_entropy(self, batch: Batch) -> Tensor:
        """Return the weighted cross-entropy of a batch in the branch of its domain."""
        return weighted_cross_entropy(self.logits(batch.x, batch.domain), batch.y, self.weights[batch.domain])

    def descend(self, losses: Iterable[Tensor]) -> None:
        """One step of the optimiser down the sum of `losses`. Each is freed before the next is asked for."""
        self.optimizer.zero_grad(set_to_none=True)
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def as_called(self, network: Any) -> Any:
        """`network` as training calls it: compiled, if that was asked for."""
        return torch.compile(network) if self.compile else network

    # The loop.

    def _fit(self, data: DomainData, valid: DomainData | None, progress: Callable[[float], Any] | None) -> None:
        if self.compile:
            torch.compiler.reset()  # what was compiled for earlier rounds, so that it does not count for the limit
        self.forward = self.as_called(self.network)
        self.weights = {data.domain: data.weights}
        self.optimizer = torch.optim.Adam(self._groups(data.domain), weight_decay=self.weight_decay, fused=True)
        self.before_round(data)
        best, best_weights = -1.0, None
        for epoch in range(1, self.epochs + 1):
            for group in self.optimizer.param_groups:
                group["lr"] = poly_lr(group["initial_lr"], epoch, self.epochs)
            with self.training(data.domain):
                for batch in self.epoch(data):
                    self.step(batch)
            if valid is not None:
                logits = partial(self.logits, domain=valid.domain, network=self.network)
                score = mean_iou(logits, valid, self.layout)
                if score > best:
                    best, best_weights = score, {name: w.clone() for name, w in self.network.state_dict().items()}
            if progress is not None:
                progress(epoch / self.epochs)
        if best_weights is not None:
            self.network.load_state_dict(best_weights)
        self.after_round(data)
        del self.optimizer, self.forward, self.weights

    def _groups(self, domain: int) -> list[dict[str, Any]]:
        """Parameter groups of the optimiser; what is in none is frozen."""
        shared, rate = self.rates(domain)
        groups = trainable_groups(self.network, domain, shared, rate)
        if self.trains_old_branches:
            others = [d for d in range(len(self.domains)) if d != domain]
            parameters = [p.requires_grad_(True) for d in others for p in self.network.domain_parameters(d)]
            if parameters:
                groups.append({"name": "old domains", "params": parameters, "lr": rate, "initial_lr": rate})
        return groups

    def _valid(self, valid_data: TrainData | None, task: int) -> DomainData | None:
        if self.checkpoint == "last":
            return None
        if valid_data is None:
            raise PluginError(
                'checkpoint "best" needs a held-out part of each round: set train_ratio below 1.', code="out-of-range"
            )
        return self.data_of(valid_data, task)

    def _untrained(self, num_classes: int, seed: int) -> SegmentationLearner:
        """Return a learner with first weights and one head for all classes: nothing is known of domains yet."""
        other = SegmentationLearner(pretrained_encoder=self.pretrained_encoder, precision=self.precision)
        other.shape, other.layout = self.shape, self.layout
        other.begin(0, DomainLabels(range(num_classes)), seed)
        return other
