"""Images of one domain, with labels in the numbering of its head; copied to the device once and gathered by index."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from ianvs.authoring.round_data import gather, resident, to_device
from ianvs.base.errors import PluginError
from ianvs.testalgorithms.mdil_ss.losses import class_weights
from ianvs.testalgorithms.mdil_ss.scene_augmentation import draw_moves, move

IGNORE = 255  # the label of ignored pixels in the exam's numbering
STRANGE = 254  # not possible as a head's label: two ids are kept free above its last
AHEAD = 3  # batches that are prepared while the accelerator works on one


@dataclass(slots=True)
class Batch:
    """The images of one step, of one domain.

    X: (B, 3, H, W) numbers in 0..1, y: (B, H, W) uint8 outputs of the head.
    """

    x: Tensor
    y: Tensor
    domain: int


class DomainLabels:
    """A domain's classes in two numberings: ids of the exam, and outputs 0, 1, ... of the domain's head.

    classes: ids of the exam in the order of the head. The head has one output more, the last, for "ignore" (255).
    """

    def __init__(self, classes: Sequence[int]) -> None:
        self.classes = tuple(int(c) for c in classes)
        if not 0 < len(self.classes) < STRANGE or not all(0 <= c < IGNORE for c in self.classes):
            raise PluginError(
                f"a domain has 1 to {STRANGE - 1} classes with ids 0 to 254, not {self.classes}.",
                code="refused-arguments",
            )
        self.outputs = len(self.classes) + 1
        to_head = torch.full((IGNORE + 1,), STRANGE, dtype=torch.uint8)
        to_head[list(self.classes)] = torch.arange(len(self.classes), dtype=torch.uint8)
        to_head[IGNORE] = self.ignore = len(self.classes)
        self._to_head = to_head
        self._to_exam = torch.tensor([*self.classes, IGNORE], dtype=torch.uint8)

    def to_head(self, labels: Tensor) -> Tensor:
        """Convert uint8 labels in the exam's numbering to outputs of the head, on the device of `labels`."""
        table = self._to_head.to(labels.device)
        return torch.cat([_look_up(table, part) for part in torch.split(labels, 16)]) if len(labels) else labels

    def to_exam(self, outputs: Tensor) -> Tensor:
        """Convert int64 outputs of the head to uint8 labels in the exam's numbering.

        255 where "ignore" was predicted.
        """
        return _look_up(self._to_exam.to(outputs.device), outputs)

    def counts(self, labels: Tensor) -> Tensor:
        """Return (outputs,) int64 pixels of each output in labels (N, H, W) of the head.

        Raises an error for unknown labels.
        """
        counts = torch.zeros(IGNORE + 1, dtype=torch.int64, device=labels.device)
        for part in torch.split(labels, 16):
            counts += torch.bincount(part.reshape(-1), minlength=IGNORE + 1)
        if counts[STRANGE]:
            raise PluginError(
                f"{int(counts[STRANGE])} pixels of the round's masks have a class that is not taught in it. "
                f"Its classes are {self.classes}, and {IGNORE} is for ignored pixels.",
                code="refused-arguments",
            )
        return counts[: self.outputs]


def _look_up(table: Tensor, index: Tensor) -> Tensor:
    whole = index if index.dtype == torch.int64 else index.to(torch.int32)
    return table.index_select(0, whole.reshape(-1)).view(index.shape)


def prepare(x: Tensor, layout: torch.memory_format) -> Tensor:
    """Convert uint8 images (B, 3, H, W) to the network's input: numbers in 0..1."""
    return x.to(torch.float32, memory_format=layout).div_(255.0)


@dataclass(frozen=True)
class Augmentation:
    """Flips and small shifts; see mdil_ss.augmentation."""

    flip: float = 0.5
    max_shift: int = 2
    shift_border: str = "ignore"

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return (count, 3) moves, one for each image."""
        return draw_moves(count, generator, flip=self.flip, max_shift=self.max_shift)

    def apply(self, x: Tensor, y: Tensor, moves: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
        """Return images and labels of a batch after the moves; pixels uncovered by a shift are labelled `ignore`."""
        if not self.flip and not self.max_shift:
            return x, y
        return move(x, y, moves, ignore=ignore, shift_border=self.shift_border)


class DomainData:
    """All images of one domain in a round.

    x: uint8 (N, 3, H, W), y: uint8 (N, H, W) outputs of the head. They are on `device` if they fit there, else in the
    host's memory, from which batches are fetched in advance.
    """

    def __init__(self, x: Tensor, y: Tensor, labels: DomainLabels, domain: int, device: torch.device) -> None:
        if x.dtype != torch.uint8 or x.dim() != 4:
            raise PluginError(
                f"segmentation needs uint8 images (N, 3, H, W), but the samples are {x.dtype} {tuple(x.shape)}.",
                code="refused-arguments",
            )
        if y.shape != (x.shape[0], *x.shape[2:]):
            raise PluginError(
                f"segmentation needs a label for each pixel, (N, H, W), but the labels are {tuple(y.shape)} for "
                f"images {tuple(x.shape)}.",
                code="refused-arguments",
            )
        self.labels, self.domain, self.device = labels, domain, device
        self.is_resident = resident(x, device)  # "cuda" is not equal to the "cuda:0" that a tensor lies on
        place = device if self.is_resident else x.device
        self.x = x.to(place)
        self.y = labels.to_head(y.to(place))
        self.counts = labels.counts(self.y)
        self.weights = class_weights(self.counts).to(device, torch.float32)

    def __len__(self) -> int:
        return len(self.y)

    def epoch(
        self,
        batch_size: int,
        augmentation: Augmentation,
        layout: torch.memory_format,
        *,
        order: torch.Generator,
        moves: torch.Generator,
    ) -> Iterator[Batch]:
        """Yield one pass in an order drawn by `order`, with moves of the images drawn by `moves`."""
        plan = torch.randperm(len(self), generator=order)
        drawn = torch.split(to_device(augmentation.draw(len(self), moves), self.device), batch_size)
        if self.is_resident:
            plan = to_device(plan, self.device)
        for (x, y), part in zip(self._gathered(torch.split(plan, batch_size)), drawn, strict=True):
            moved, labels = augmentation.apply(x, y, part, self.labels.ignore)
            yield Batch(prepare(moved, layout), labels, self.domain)

    def _gathered(self, parts: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        if self.is_resident:
            for index in parts:
                yield gather(self.x, index), self.y.index_select(0, index)
            return
        # A thread copies images into pinned memory while the accelerator computes; their transfer from there is
        # asynchronous.
        with ThreadPoolExecutor(1) as pool:
            coming: deque[Future[tuple[Tensor, Tensor]]] = deque()
            for index in parts:
                coming.append(pool.submit(self._pinned, index))
                if len(coming) > AHEAD:
                    yield self._sent(coming.popleft())
            while coming:
                yield self._sent(coming.popleft())

    def _pinned(self, index: Tensor) -> tuple[Tensor, Tensor]:
        x, y = gather(self.x, index), self.y.index_select(0, index)
        return (x.pin_memory(), y.pin_memory()) if self.device.type == "cuda" else (x, y)

    def _sent(self, batch: Future[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        x, y = batch.result()
        return x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)
