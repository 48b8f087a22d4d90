"""The network of a learner: built for the first samples, used for predictions, saved and restored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ianvs.authoring import networks
from ianvs.authoring.activations import FEWEST, samples_at_once, widest_activation
from ianvs.authoring.backbone_choice import BackboneChoice
from ianvs.authoring.backbones import is_library
from ianvs.authoring.memory import State
from ianvs.authoring.networks import initialize
from ianvs.authoring.precision import use_precision
from ianvs.authoring.pretraining import new_decoder
from ianvs.authoring.randomness import seeded
from ianvs.authoring.round_data import RoundData, TaskMasks, output_mask, to_device
from ianvs.authoring.scaling import Scaling
from ianvs.authoring.single_values import allow_single_values
from ianvs.authoring.transformer import transformer_of
from ianvs.authoring.weight_files import is_plain, read_weights
from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError
from ianvs.base.seeding import stream_seed
from ianvs.plugins.contract import TestData

_DATA_TYPES, _OWN = "ianvs.data_types", "classification"  # the entry-point group, and the data type of predict()


class NetworkModule:
    """The part of TorchLearner that manages a network and predicts with it; training is not included.

    Arguments are those of TorchLearner; `options` are of networks.build_network.
    """

    network: nn.Module  # exists from the first train(), predict() or load() on
    networks: ClassVar[tuple[str, ...]] = ()  # those that a method works on; (): any

    def __init__(
        self,
        architecture: str,
        options: Mapping[str, Any],
        *,
        initialization: str,
        precision: str,
        compile: bool,
        channels_last: bool,
        backbone: BackboneChoice,
    ) -> None:
        if self.networks and architecture not in self.networks:
            choices = " or ".join(self.networks)
            raise PluginError(
                f"{type(self).__name__} does not work on network '{architecture}'. Set it to {choices}.",
                code="refused-arguments",
            )
        self.architecture, self.initialization = architecture, initialization
        self._options = options  # of networks.build_network
        self.precision, self.compile = precision, compile
        self.channels_last = channels_last
        self.backbone_choice = backbone.completed(architecture)
        self.scaling = Scaling(self.backbone_choice.scale or "symmetric")
        # Shown in the leaderboard, for example initial weights that did not fit.
        self.remark = self.backbone_choice.note
        self._shape: tuple[tuple[int, ...], int] | None = None  # (shape of a sample, number of classes) of the network
        self._layout = torch.contiguous_format
        self._decoder: nn.Linear | None = None  # for pre-training
        self._tasks = TaskMasks()
        self._given: Mapping[str, NDArray[Any]] | None = None  # weights for a network that is not built yet
        self._optimizer: dict[int, Any] | None = None  # state that the next round continues from
        self._initial: Mapping[str, Tensor] | None = None  # initial state_dict of every new network
        self._compiled: tuple[nn.Module, Any] | None = None  # (network, compiled network)
        self._fixed: frozenset[str] = frozenset()  # names of tensors that are not saved: a file has them

    # What a method may override.

    def build_network(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a network on the CPU: (N, *input_shape) -> (N, num_classes) logits."""
        chosen = self.backbone_choice
        network = networks.build_network(
            self.architecture,
            chosen.seen(input_shape),
            num_classes,
            **self._options,
            fill=self._fill if chosen.weights is not None or self._initial is not None else None,
            download=chosen.download,
        )
        return network if chosen.pooling is None else nn.Sequential(*transformer_of(network, chosen.pooling))

    def prepare(self, x: Tensor) -> Tensor:
        """Convert raw samples (B, ...) to the network's input, with the chosen size and scale.

        By default, uint8 images become numbers from -1 to 1.
        """
        layout = self._layout if x.dim() == 4 else torch.preserve_format
        top = 255 if x.dtype == torch.uint8 else None
        values = self.backbone_choice.resized(x.to(torch.float32, memory_format=layout), top)
        return self.scaling(values, x.dtype == torch.uint8)

    def answers(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return (B, num_classes) scores from which test samples x (B, ...) are predicted; by default the logits.

        mask: (num_classes,) to be added, -inf for classes that may not be predicted; None if all may.
        """
        return self.logits(x, mask)

    def state(self) -> State:
        """Return what the method needs to continue, besides the network."""
        return {}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""

    def grow_to(self, weights: Mapping[str, Any]) -> None:
        """Enlarge the network for `weights` (tensors or arrays by name), if it grows with the rounds."""

    # What the benchmark calls.

    def check_exam(self, *, kind: str, shape: tuple[int, ...], num_classes: int) -> str:
        """Reject an exam that the network can't process, before anything is trained; no weights are allocated.

        Rejected are samples of an unsuitable shape, and labels other than class indices, unless the method overrides
        `predict`. Returns a warning, "" for none.
        """
        method, choice = type(self), self.backbone_choice
        of_pixels = kind == "segmentation" and method.build_network is not NetworkModule.build_network
        if (
            method.predict is NetworkModule.predict
            and kind in installed(_DATA_TYPES)
            and not (kind == _OWN or of_pixels)
        ):
            raise PluginError(
                f"{method.__name__} predicts one class for each sample, but the exam's data type is {kind}. Use a "
                "method for that (`ianvs list algorithms`), or override predict().",
                code="refused-arguments",
            )
        choice.check(self.architecture)
        if kind != "classification" or method.prepare is not NetworkModule.prepare:
            return ""  # the method prepares samples for the network by itself
        with torch.device("meta"):
            seen = (shape[-1], *shape[:-1]) if len(shape) == 3 else shape
            if self.architecture not in networks.OWN and is_library(self.architecture):  # it loads torchvision
                network = NetworkModule.build_network(self, seen, num_classes)
                choice.check_size(network.eval(), self.architecture, seen)
            with suppress(*() if method.build_network is NetworkModule.build_network else (RuntimeError,)):
                choice.applied(self.build_network(seen, num_classes))  # a method may draw random numbers
        return choice.note

    def predict(self, data: TestData, **context: Any) -> NDArray[np.int64]:
        """Return (N,) the most probable of the task's classes, if the exam gives them, else of the classes seen so far.

        An untrained model predicts among all classes.
        """
        return self.answer_logits(data, **context).argmax(1).cpu().numpy()

    def probabilities(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """Return (N, num_classes) the softmax over the classes among which `predict` chooses; 0 for the others."""
        return self.answer_logits(data, **context).softmax(1).cpu().numpy()

    def scores(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """Return (N, num_classes) the logits, for `task_scores: true`, including those of classes not taught yet.

        A caller that knows the task can compare its classes. If the exam gives the task's classes, others are -inf.
        """
        return self.answer_logits(data, **{**context, "classes_seen": ()}).cpu().numpy()

    def features(
        self, data: TestData, *, num_classes: int, device: str = "cpu", seed: int = 0, **context: object
    ) -> NDArray[np.float32]:
        """Return (N, D) the input of the head: the representation of each sample."""
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self._features(x).cpu().numpy()

    def get_weights(self) -> dict[str, NDArray[Any]] | None:
        """Return copies of the network's parameters and buffers by name; None before the network is built."""
        if self._shape is None:
            return None if self._given is None else {name: np.array(values) for name, values in self._given.items()}
        return {name: values.detach().cpu().numpy().copy() for name, values in self.network.state_dict().items()}

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the result of another object's `get_weights`; a network that is built later starts with it."""
        if self._shape is None:
            self._given = weights
            return
        self.grow_to(weights)
        self.network.load_state_dict(_tensors(weights))

    def save(self, path: Path) -> Path:
        """Write everything needed to continue to `path` with ".pt" added."""
        target = Path(path).with_name(Path(path).name + ".pt")
        weights = None
        if self._shape is not None:
            weights = {name: value for name, value in self.network.state_dict().items() if name not in self._fixed}
        decoder = None if self._decoder is None else self._decoder.state_dict()
        given = None if self._given is None else _tensors(self._given)
        frozen = self.backbone_choice.described(self.architecture) if self._fixed else None
        contents: State = {"shape": self._shape, "network": weights, "decoder": decoder, "tasks": self._tasks.allowed}
        contents |= {"given": given, "initial": self._initial, "scaling": self.scaling.state()}
        contents |= {"optimizer": self._optimizer, "frozen": frozen, "method": self.state()}
        torch.save(contents, target)
        return target

    def load(self, path: Path) -> None:
        """Restore what `save` wrote, bit for bit, on the CPU: the next train() or predict() moves it.

        From a plain state_dict of another program, the first network takes the tensors of matching name and shape.
        """
        if is_plain(Path(path)):
            self.reset()
            self._initial = read_weights(Path(path))
            return
        saved = self.read(path)
        self.reset()
        self._initial = saved.get("initial")
        self.scaling.restore(saved.get("scaling"))
        if saved["shape"] is not None:
            with seeded(0):  # the initial weights are overwritten, so their draws must have no effect
                self._build(*saved["shape"])
                self.grow_to(saved["network"])
                if saved["decoder"] is not None:
                    self._decoder = new_decoder(self.network, saved["shape"][0])
                    self._decoder.load_state_dict(saved["decoder"])
            self.backbone_choice.require(saved.get("frozen"), self.architecture)
            fitted = self.network.load_state_dict(saved["network"], strict=not self._fixed)
            if set(fitted.missing_keys) - self._fixed or fitted.unexpected_keys:
                raise PluginError(
                    f"{Path(path).name} was saved from another network than '{self.architecture}'.",
                    code="refused-arguments",
                )
        given = saved.get("given")
        self._given = None if given is None else {name: values.numpy() for name, values in given.items()}
        self._optimizer = saved.get("optimizer")
        self._tasks = TaskMasks(saved["tasks"])
        self.restore(saved["method"])

    # For methods to use.

    def read(self, path: Path) -> State:
        """Read what `save` wrote; `path` is its argument or its result."""
        path = Path(path)
        target = path if path.is_file() else path.with_name(path.name + ".pt")
        saved: State = torch.load(target, map_location="cpu", weights_only=True)
        return saved

    def answer_logits(
        self,
        data: TestData,
        *,
        num_classes: int,
        classes_seen: Sequence[int] = (),
        task_classes: Sequence[int] | None = None,
        device: str = "cpu",
        seed: int = 0,
        **context: object,
    ) -> Tensor:
        """Return (N, num_classes) scores from which classes are predicted, -inf for excluded classes."""
        allowed = tuple(classes_seen) if task_classes is None else tuple(task_classes)
        mask = output_mask(allowed, num_classes, torch.device(device))
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self.each(x, lambda part: self.answers(part, mask))

    def logits(self, x: Tensor, mask: Tensor | None = None, network: nn.Module | None = None) -> Tensor:
        """Return (B, num_classes) float32 logits of prepared samples, with `mask` added; by `network`, if given."""
        network = self._called() if network is None else network
        if self.precision == "bf16":
            with torch.autocast(x.device.type, torch.bfloat16):
                outputs: Tensor = network(x)
            outputs = outputs.float()
        else:
            outputs = network(x)
        return outputs if mask is None else outputs + mask

    def representation(self, x: Tensor) -> Tensor:
        """Return (B, D) the input of the head for prepared samples x (B, ...); differentiable."""
        body, _ = networks.body_and_head(self.network)
        return self.logits(x, network=body)

    def each(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply `function` to prepared samples, at most 1024 at a time, with the network in testing mode."""
        place = next(self.network.parameters()).device
        self.network.eval()

        def ask(part: Tensor) -> Tensor:
            return function(self.prepare(to_device(part, place)))

        with torch.inference_mode():
            if len(x) <= FEWEST:
                return ask(x)
            # The batch size is measured in each call, from these samples alone: it affects the last bits of the
            # results, and a loaded network has to predict exactly what the saved one did.
            first, widest = widest_activation(self.network, lambda: ask(x[:FEWEST]))
            rest = torch.split(x[FEWEST:], samples_at_once(widest // FEWEST, place))
            return torch.cat([first, *map(ask, rest)])

    def reset(self) -> None:
        """Discard the network: the next call that needs one starts from the initial weights again."""
        self._shape = None
        self._decoder = None
        self._optimizer = None

    def start_again(self, data: RoundData) -> None:
        """Restore the initial weights at once, for methods that learn each round from scratch."""
        if self._shape is not None:
            self._optimizer = None
            with seeded(stream_seed(data.seed, 0, "init")):
                self._build(*self._shape)
            self.network.to(data.device).train()

    # The network.

    def _set_training(self) -> None:
        """Put the network into training mode. Checking the modes of its parts is faster than setting them."""
        if not all(part.training for part in self.network.modules()):
            self.network.train()

    def _called(self) -> nn.Module:
        """Return the network as a training step calls it: compiled, if `compile` is set."""
        if not (self.compile and self.network.training):
            return self.network
        if self._compiled is None or self._compiled[0] is not self.network:
            compiled: Any = torch.compile(self.network)
            self._compiled = self.network, compiled
        network: nn.Module = self._compiled[1]
        return network

    def _features(self, x: Tensor) -> Tensor:
        return self.each(x, self.representation)

    def _ready(self, x: Tensor, num_classes: int, device: str, seed: int) -> None:
        use_precision(self.precision, device)
        if self._shape is None:
            with seeded(stream_seed(seed, 0, "init")):
                self._build(tuple(x.shape[1:]), num_classes)
        place = torch.device(device)
        # Checking the device of all tensors takes as long as a small step, and without a GPU nothing moves.
        if place.type != "cpu" or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            self.network.to(place)

    def _build(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        network = self.build_network(input_shape, num_classes)
        initialize(network, self.initialization)
        network = self.backbone_choice.applied(network)
        allow_single_values(network)
        self._fixed = self.backbone_choice.fixed(network)
        convolutional = any(p.dim() == 4 for p in network.parameters())
        self._layout = torch.channels_last if convolutional and self.channels_last else torch.contiguous_format
        self.network = network.to(memory_format=self._layout) if convolutional else network
        self._shape = (tuple(input_shape), num_classes)
        if self._given is not None:
            given, self._given = self._given, None
            self.set_weights(given)

    def _fill(self, model: nn.Module, place: str, head: nn.Linear) -> None:
        """Load the given weights into a network whose head is the module `place`; `head` is the replacement."""
        if not head.weight.is_meta:
            message = self.backbone_choice.fill(self.architecture, model, place, head, self._initial)
            self.remark = "; ".join(filter(None, (self.backbone_choice.note, message)))

    def _decoder_parameters(self, data: RoundData) -> list[nn.Parameter]:
        if not data.pretraining:
            return []
        if self._decoder is None and self._shape is not None:
            with seeded(stream_seed(data.seed, 0, "decoder")):
                self._decoder = new_decoder(self.network, self._shape[0])
        return [] if self._decoder is None else list(self._decoder.to(data.device).parameters())


def _tensors(weights: Mapping[str, NDArray[Any]]) -> State:
    return {name: torch.from_numpy(np.array(values)) for name, values in weights.items()}
