"""The exam of methods on pre-trained transformers: three rounds of two classes of small pictures, two epochs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, gelu, layer_norm, linear

from ianvs.authoring.networks import DEPTH, HEADS, WIDTH, small_vit
from ianvs.base.seeding import stream_seed
from tests.nightly.conformance.harness import After, Check, Mutant, compared
from tests.nightly.conformance.vision import Exam
from tests.unit.testalgorithms.exam_of_arrays import Data

SIDE = 8  # pixels: 4 x 4 patches of 2 x 2


@dataclass(frozen=True)
class Pictures(Exam):
    """Noisy pictures of six shapes of noise."""

    each: int = 21
    learning_rate: float = 0.02

    def _drawn(self, k: int, n: int, classes: list[int]) -> tuple[Tensor, Tensor]:
        draw = np.random.default_rng([19, k])
        shapes = np.random.default_rng(6).normal(size=(self.classes, 1, SIDE, SIDE))
        y = draw.permutation(np.resize(classes, n)).astype(np.int64)
        x = (shapes[y] + 0.8 * draw.normal(size=(n, 1, SIDE, SIDE))).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy(y)

    def network(self) -> nn.Sequential:
        """The small transformer with its first weights, "trained" as far as this exam is concerned."""
        torch.manual_seed(stream_seed(self.seed, 0, "init"))
        return small_vit((1, SIDE, SIDE), self.classes)


def tokens(w: dict[str, Tensor], x: Tensor) -> Tensor:
    """(N, 17, D): class token, patches, both with their positions. w: weights by their names in `SmallViT`."""
    patches = conv2d(x, w["patches.weight"], w["patches.bias"], stride=2).flatten(2).transpose(1, 2)
    return torch.cat([w["class_token"].expand(len(x), 1, WIDTH), patches], 1) + w["position"]


def encode(
    w: dict[str, Tensor],
    t: Tensor,
    qkv: Sequence[Tensor] | None = None,
    adapters: Sequence[Callable[[Tensor], Tensor]] | None = None,
    prefixes: Mapping[int, tuple[Tensor, Tensor]] | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """What the blocks make of tokens t (N, T, D), and what each attention was given (N, T, D).

    qkv: (3D, D) matrices of the attentions in place of their own. adapters: (N, T, D) -> (N, T, D), beside each MLP.
    prefixes: by block, from 0, keys and values (N, l, D) of further tokens that the attention looks at.
    """
    given = []
    for i in range(DEPTH):
        b = {name.removeprefix(f"blocks.{i}."): value for name, value in w.items()}
        h = layer_norm(t, (WIDTH,), b["norm1.weight"], b["norm1.bias"])
        given.append(h)
        of_all = linear(h, b["self_attn.in_proj_weight"] if qkv is None else qkv[i], b["self_attn.in_proj_bias"])
        q, k, v = of_all.chunk(3, 2)
        if prefixes and i in prefixes:
            k, v = torch.cat([prefixes[i][0], k], 1), torch.cat([prefixes[i][1], v], 1)
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (q, k, v))
        looked = (q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)).softmax(3) @ v
        t = t + linear(looked.transpose(1, 2).flatten(2), b["self_attn.out_proj.weight"], b["self_attn.out_proj.bias"])
        more = 0.0 if adapters is None else adapters[i](t)
        h = layer_norm(t, (WIDTH,), b["norm2.weight"], b["norm2.bias"])
        t = t + linear(gelu(linear(h, b["linear1.weight"], b["linear1.bias"])), b["linear2.weight"], b["linear2.bias"])
        t = t + more
    return layer_norm(t, (WIDTH,), w[f"blocks.{DEPTH}.weight"], w[f"blocks.{DEPTH}.bias"]), given


def body_weights(network: nn.Sequential) -> dict[str, Tensor]:
    """Of the transformer, by their names in it."""
    return {name: value.detach().clone() for name, value in network[0].state_dict().items()}


EXAM = Pictures()


def ours(make: Callable[[], Any], exam: Exam, look: Callable[[Any], list[Tensor]]) -> Iterator[After]:
    """The learner's three rounds, as the benchmark runs them; look: what is compared of it."""
    learner = make()
    for k in exam.rounds:
        x, y = exam.data(k)
        context = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.classes, "seed": exam.seed}
        learner.train(Data(x.permute(0, 2, 3, 1).numpy(), y.numpy()), None, **context)
        answers = learner.predict(Data(exam.test.permute(0, 2, 3, 1).numpy()), **context)
        yield After([t.detach().clone() for t in look(learner)], [], answers)


def pictures(
    method: type,
    naive: Callable[..., Iterable[After]],
    mutants: Sequence[Mutant],
    look: Callable[[Any], list[Tensor]],
    *,
    exam: Exam = EXAM,
    **given: Any,
) -> Check:
    """`compared` in this exam, by what `look` sees after each round."""
    training = {"epochs": exam.epochs, "batch_size": exam.batch_size, "learning_rate": exam.learning_rate}
    seen = partial(ours, exam=exam, look=look)
    return compared(method, {**training, "momentum": exam.momentum}, seen, naive, mutants, exam, **given)
