"""Tuning without a method, all rounds together, and a mixture of adapters.

MultiTask: fresh weights in each round, on all conversations so far. MoELoRA, as in Continual-NExT 3658f2d,
peft/tuners/lora/layer__.py: y = W x + s sum_e softmax(R x)_e B_e A_e x, a sum over all experts, each of rank r / E.

Left open by the papers: AdamW is new in each round; the rate rises over a share of the steps and falls in half a
cosine, and no step is without one; gradients are clipped at length 1; a batch's loss is one mean over all tokens that
the assistant says.
"""

import pytest
import torch

pytest.importorskip("transformers")

from ianvs.testalgorithms.language.batches import collate
from ianvs.testalgorithms.language.experts import MoELoraLinear
from ianvs.testalgorithms.language.moelora.basemodel import MoELoRA
from ianvs.testalgorithms.language.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.language.sequential.basemodel import Sequential
from ianvs.testalgorithms.language.tuning_loop import Descent, warm_cosine
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.language import Exam, language, surprise, with_adapters

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft


def sequential(exam):
    net = exam.network()
    for k in exam.rounds:
        exam.descend(k, exam.talks(k), list(net.parameters()), lambda some: surprise(net, some))
        yield exam.after(net)


def multi_task(exam):
    for k in exam.rounds:
        net = exam.network()
        so_far = [talk for j in range(1, k + 1) for talk in exam.talks(j)]
        exam.descend(k, so_far, list(net.parameters()), lambda some, net=net: surprise(net, some))
        yield exam.after(net)


def mixture(exam):
    net, parts = exam.adapted()

    def experts(name, x):
        A, B, R = (parts[name][part] for part in ("A", "B", "router"))
        shares, half = torch.softmax(x @ R.T, dim=-1), len(A) // 2
        first, second = (
            shares[..., e : e + 1] * (x @ A[r].T @ B[:, r].T) for e, r in ((0, slice(half)), (1, slice(half, None)))
        )
        return 6 / 4 * (first + second)

    with_adapters(net, experts, parts)
    weights = [weight for part in parts.values() for weight in part.values()]
    for k in exam.rounds:
        exam.descend(k, exam.talks(k), weights, lambda some: surprise(net, some))
        yield exam.after(net, weights)


CHECKS = [
    language(
        Sequential,
        sequential,
        [
            Mutant("sign", "1 + math.cos", "1 - math.cos", warm_cosine),
            Mutant("factor", "(step + 1)", "(step + 2)", warm_cosine),
            Mutant("first epoch only", "in range(epochs):", "in range(1):", Descent),
            Mutant("clipping", "if self.max_grad_norm:", "if not self.max_grad_norm:", Descent),
            Mutant("factor", "weight_decay=self.weight_decay, fused", "weight_decay=0.0, fused", Descent),
            Mutant("mask", "self.before + 1", "self.before", collate),
            Mutant("order of rounds", "for parts in self", "for parts in [] if data.round > 2 else self", Descent),
        ],
    ),
    language(
        MultiTask,
        multi_task,
        [
            Mutant("order of rounds", "self.reset()", "pass"),
            Mutant("order of rounds", "for part in train_rounds]", "for part in train_rounds[::-1]]"),
            Mutant("factor", "part in train_rounds]", "part in train_rounds[-1:]]"),
        ],
    ),
    language(
        MoELoRA,
        mixture,
        [
            Mutant("factor", "* self.scaling[name]", "", MoELoraLinear),
            Mutant("missing softmax", "torch.softmax(self.lora_router[name](given), dim=-1)",
                   "self.lora_router[name](given)", MoELoraLinear),
            Mutant("mask", "weights.repeat_interleave(self.r[name] // self.experts, dim=-1)",
                   "weights.repeat(1, 1, self.r[name] // self.experts)", MoELoraLinear),
        ],
        exam=Exam(tuning="moelora"),
    ),
]  # fmt: skip


def test_tuning_goes_where_a_plain_loop_goes():
    for check in CHECKS:
        check.conforms()
