"""SD-LoRA as Wu et al. 2025 state it (arXiv 2501.13198), as in their code (WuYichen-97/SD-Lora-CL 8bacded).

Left open by the paper, or other than it, taken from there:
- queries and values of all blocks; A as torch's linear layers begin, B of 0, both new in each round; only those of
  earlier rounds have length 1, |A_i| and |B_i| each: backbone/lora.py:124-169, 256-262;
- one magnitude of each round for all weights; all of them begin at 0.8 again in each round: backbone/lora.py:256-257,
  models/sdlora.py:142 (the network is built anew);
- SGD with momentum 0.9, rate 0.008, no decay, 20 epochs of 128, the round's own classes alone:
  models/sdlora.py:146-152, 254-257, exps/sdlora_c100.json.
"""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.sd_lora.basemodel import SDLoRA
from ianvs.testalgorithms.sd_lora.directions import Directions
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import DEPTH, WIDTH, Pictures, body_weights, encode, pictures, tokens


def naive(exam, *, rank, magnitude=0.8, head_from_zero=False):
    net = exam.network()
    w, head = body_weights(net), net[-1]
    if head_from_zero:
        head.load_state_dict({name: 0 * values for name, values in head.state_dict().items()})
    bound = 1 / math.sqrt(WIDTH)
    places = [(block, part) for block in range(DEPTH) for part in (0, 2)]  # queries and values of packed projections

    def drawn():
        return {place: torch.empty(rank, WIDTH).uniform_(-bound, bound) for place in places}

    first, earlier = drawn(), []
    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        torch.manual_seed(stream_seed(exam.seed, k, "noise"))
        A = {place: nn.Parameter(a) for place, a in (first if k == 1 else drawn()).items()}
        B = {place: nn.Parameter(torch.zeros(WIDTH, rank)) for place in places}
        a = [nn.Parameter(torch.tensor(magnitude)) for _ in range(k)]

        def answer(x, A=A, B=B, a=a):
            qkv = []
            for block in range(DEPTH):
                W = list(w[f"blocks.{block}.self_attn.in_proj_weight"].split(WIDTH))
                for part in (0, 2):
                    place = block, part
                    W[part] = W[part] + a[-1] * B[place] @ A[place]
                    for size, (old_B, old_A) in zip(a, earlier, strict=False):
                        b, c = old_B[place], old_A[place]
                        W[part] = W[part] + size * (b @ c) / (b.pow(2).sum().sqrt() * c.pow(2).sum().sqrt())
                qkv.append(torch.cat(W))
            return head(encode(w, tokens(w, x), qkv)[0][:, 0])

        optimizer = exam.sgd([*A.values(), *B.values(), *a, *head.parameters()])
        for _, some in exam.batches(k, len(y)):
            loss = cross_entropy(answer(x[some])[:, group], y[some] - group[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            z = answer(exam.test)
        earlier.append(({p: b.detach().clone() for p, b in B.items()}, {p: c.detach().clone() for p, c in A.items()}))
        changes = [part for place in places for part in (A[place], B[place])]
        after = [*head.parameters(), torch.stack([*a]), *changes]
        yield After([one.detach().clone() for one in after], [], (z + exam.mask(k)).argmax(1).numpy())


def seen(learner):
    body, head = learner.network
    changes = [part for change in body.changes() for part in (change.A, change.B)]
    return [*head.parameters(), body.magnitudes.weight, *changes]


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits"),
    Mutant("head", "if self.head_from_zero", "if not self.head_from_zero"),
    Mutant("order of rounds", "if self.grown:\n", "if not self.grown:\n"),
    Mutant("length", "(part / part.norm().clamp_min(1e-12))[None]", "part[None]", Directions),
    Mutant("factor", "change = a[-1] *", "change =", Directions),
    Mutant("factor", "a[:-1, None, None] * self.earlier_B", "a[1:, None, None] * self.earlier_B", Directions),
    Mutant("keys", '("query", "value")', '("query", "key")', Directions),
    Mutant("order of rounds", "old.new_full((len(old) + 1,), self.first)", "torch.cat([old, old[:1]])", Directions),
    Mutant("order of rounds", "        self.begin()\n\n    def forward", "\n    def forward", Directions),
]
CHECKS = [
    pictures(SDLoRA, naive, SLIPS, seen, exam=Pictures(learning_rate=0.1), rank=3),
    pictures(
        SDLoRA,
        naive,
        SLIPS,
        seen,
        exam=Pictures(learning_rate=0.1),
        title="SD-LoRA whose head begins at 0",
        rank=3,
        head_from_zero=True,
    ),
]


def test_sd_lora_keeps_directions_and_learns_magnitudes_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
