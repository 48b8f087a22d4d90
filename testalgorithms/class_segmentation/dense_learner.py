"""A base class for class-incremental segmentation."""

import copy

import numpy as np
import torch
from torch.nn.functional import cross_entropy, interpolate

from ianvs.authoring import Batch, TorchLearner
from ianvs.authoring.image_transforms import draw_crop
from ianvs.authoring.round_data import output_mask
from ianvs.testalgorithms.class_segmentation.dense_network import NETWORKS, build

IGNORE = 255


class DenseLearner(TorchLearner):
    """Trains a network with an output for each class of the exam; by default, plain fine-tuning.

    The first class of the first round is the background: what a round's masks call so may be of any class of another
    round. Outputs of classes that were not taught yet are masked. Pixels of 255 are left out.

    network: "erfnet", "erfnet_narrow", or torchvision's "deeplabv3_resnet50", "deeplabv3_resnet101". encoder_weights: a
    file of weights of DeepLab's ResNet. flip: probability of a mirror image. random_resized_crop: [least, most] share
    of the area that an image and its mask are cut to before they get their size back; None: whole images.

    For methods: `background`; `old`, the classes taught before this round, the background first; `new`, those that it
    is the first to teach; `old_index` and `new_index`, the same as tensors on the round's device.
    """

    networks = NETWORKS

    def __init__(self, *, network="erfnet", encoder_weights=None, flip=0.5, random_resized_crop=None, **training):
        scale = {} if "scale" in training or "preprocess" in training else {"scale": "unit"}
        super().__init__(network=network, **scale, **training)
        self.encoder_weights, self.flip, self.crop = encoder_weights, flip, random_resized_crop
        self.background, self.old, self.new = None, [], []

    def build_network(self, input_shape, num_classes):
        return build(self.architecture, num_classes, self.encoder_weights)

    def train(self, train_data, valid_data=None, *, new_classes=(), **context):
        classes = [int(c) for c in new_classes]
        if self.background is None:
            self.background = classes[0] if classes else 0
        self.new = [c for c in classes if c not in self.old and (self.old or c != self.background)]
        self.old = self.old or [self.background]
        super().train(train_data, valid_data, **context)
        self.old = [*self.old, *self.new]

    @property
    def later(self):
        """Whether classes besides the background were taught before this round."""
        return len(self.old) > 1

    def copied(self):
        """Return a frozen copy of the network."""
        self.network.stages = []  # activations of the last step, with their graph
        return copy.deepcopy(self.network).eval().requires_grad_(False)

    def before_round(self, data):
        self.moves = data.generator("moves")
        # Tensors, since indexing by lists synchronises a GPU.
        self.old_index = torch.tensor(self.old, dtype=torch.int64, device=data.device)
        self.new_index = torch.tensor(self.new, dtype=torch.int64, device=data.device)

    def extend(self, x, y):
        """Return the batch with random moves, the same for an image and its mask."""
        y = y.long()
        if self.crop is not None:
            x, y = draw_crop(x, y, self.crop, self.moves)
        mirrored = (torch.rand(len(x), generator=self.moves) < self.flip).to(x.device, non_blocking=True)
        x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
        return x, torch.where(mirrored[:, None, None], y.flip(-1), y)

    def batch(self, data, x, y):
        outputs = self.logits(x)
        masked = outputs if data.mask is None else outputs + data.mask[:, None, None]
        return Batch(x, y, masked, outputs, data.complete, data.pretraining)

    def loss(self, batch):
        return cross_entropy(batch.logits, batch.y.long(), ignore_index=IGNORE)

    def predict(self, data, *, num_classes, classes_seen=(), device="cpu", seed=0, **context):
        """Return the most likely class of each pixel among the taught ones, (N, H, W)."""
        mask = output_mask(tuple(classes_seen), num_classes, torch.device(device))
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)

        def answer(part):
            outputs = self.logits(part) if mask is None else self.logits(part) + mask[:, None, None]
            if outputs.shape[2:] != x.shape[2:]:
                outputs = interpolate(outputs, x.shape[2:], mode="bilinear")
            return outputs.argmax(1).to(torch.uint8)

        labels = self.each(x, answer).cpu().numpy().astype(np.uint8)
        self.network.stages = []
        return labels

    def after_round(self, data):
        self.network.stages = []

    def state(self):
        return {**super().state(), "background": self.background, "old": self.old}

    def restore(self, state):
        super().restore(state)
        self.background, self.old = state["background"], list(state["old"])
