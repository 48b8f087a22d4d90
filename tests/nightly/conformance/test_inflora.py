"""InfLoRA as Liang & Li 2024 state it (arXiv 2404.00228, eq. 3 to 9), with DualGPM as they describe it.

Taken from the authors' code (liangyanshuo/InfLoRA e08b00e) where the paper is other or leaves it open:
- the matrix that is decomposed is C = mean h h' over all tokens, where the paper has the inputs themselves:
  models/vit_inflora.py:236-238, methods/inflora.py:125-128, 328-333; so shares are those of squared singular values
  of C, and directions outside of M are left singular vectors of (I - M M') C (methods/inflora.py:147-155, 342-352);
- B = U' / sqrt(3) for keys and values alike: the same, lines 127-128;
- the share that M holds rises: kept + (1 - kept) (round - 1) / rounds: the same, line 322;
- C is taken with the round's own A B, before and after training: the same, lines 116-119, 188-191;
- the loss looks at the round's classes: the same, lines 219-225.

Two of the code's lines are left to the paper: in the first round it stops one direction short of the share (line 332,
"#+1"), and later it adds shares of what is outside of M as if they were shares of all (line 350).
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.inflora.basemodel import InfLoRA
from ianvs.testalgorithms.inflora.key_value import KeyValueChange
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import DEPTH, WIDTH, body_weights, encode, pictures, tokens


class Kept:
    """DualGPM: an orthonormal basis of what is protected ("remove"), or of all that is not ("retain")."""

    def __init__(self):
        self.basis, self.kind = torch.zeros(WIDTH, 0, dtype=torch.float64), "remove"

    def outside(self, C):
        onto = self.basis @ self.basis.T @ C
        return C - onto if self.kind == "remove" else onto

    @property
    def projector(self):
        onto = self.basis @ self.basis.T
        return onto if self.kind == "remove" else torch.eye(WIDTH, dtype=torch.float64) - onto

    def take_up(self, C, share):
        U, S, _ = torch.linalg.svd(self.outside(C))
        total, left, r = (C**2).sum(), (S**2).sum(), 0
        while 1 - left / total < share and r < len(S):
            left, r = left - S[r] ** 2, r + 1
        if self.kind == "remove":
            self.basis = torch.cat([self.basis, U[:, :r]], 1)
            if self.basis.shape[1] > WIDTH / 2:
                u, _, _ = torch.linalg.svd(self.basis)
                self.basis, self.kind = u[:, self.basis.shape[1] :], "retain"
        elif r:
            rest = self.basis - U[:, :r] @ U[:, :r].T @ self.basis
            self.basis = torch.linalg.svd(rest)[0][:, : self.basis.shape[1] - r]


def naive(exam, *, rank, kept, rounds=None, head_from_zero=False):
    net = exam.network()
    w, head = body_weights(net), net[-1]
    if head_from_zero:
        head.load_state_dict({name: 0 * values for name, values in head.state_dict().items()})
    W = [w[f"blocks.{i}.self_attn.in_proj_weight"].clone() for i in range(DEPTH)]
    protected = [Kept() for _ in range(DEPTH)]

    def changed(A, B):
        zero = torch.zeros(WIDTH, WIDTH)
        return [own + torch.cat([zero, a @ b]) for own, a, b in zip(W, A, B, strict=True)]

    def answer(x, qkv):
        return head(encode(w, tokens(w, x), qkv)[0][:, 0])

    @torch.no_grad()
    def moments(x, qkv):
        inputs = (h.double().flatten(0, 1) for h in encode(w, tokens(w, x), qkv)[1])
        return [sum(torch.outer(one, one) for one in h) / len(h) for h in inputs]

    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        B = [
            torch.linalg.svd(p.outside(C))[0][:, :rank].T.float() / 3**0.5
            for p, C in zip(protected, moments(x, W), strict=True)
        ]
        A = [nn.Parameter(torch.zeros(2 * WIDTH, rank)) for _ in range(DEPTH)]
        optimizer = exam.sgd([*A, *head.parameters()])
        for _, some in exam.batches(k, len(y)):
            loss = cross_entropy(answer(x[some], changed(A, B))[:, group], y[some] - group[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        W = [one.detach() for one in changed(A, B)]
        share = kept + (1 - kept) * (k - 1) / rounds if rounds else kept
        for p, C in zip(protected, moments(x, W), strict=True):
            p.take_up(C, share)
        answers = (answer(exam.test, W) + exam.mask(k)).argmax(1).numpy()
        planes = [b.T @ b for b in B]
        after = [*head.parameters(), *W, *planes, *(p.projector for p in protected)]
        yield After([one.detach().clone() for one in after], [], answers)


def seen(learner):
    body, head = learner.network
    weights = [getattr(*block.weight_location("key")[:2]) for block in body.frozen.body.blocks]  # packed: of all three
    planes = [change.B.T @ change.B for change in body.changes]
    spans = [change.M @ change.M.T for change in body.changes]
    return [*head.parameters(), *weights, *planes, *spans]


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits"),
    Mutant("head", "if self.head_from_zero", "if not self.head_from_zero"),
    Mutant("factor", " / 3**0.5", "", KeyValueChange),
    Mutant(
        "factor",
        "S.square().sum() - torch.cat([S.new_zeros(1), S.square().cumsum(0)])",
        "S.sum() - torch.cat([S.new_zeros(1), S.cumsum(0)])",
        KeyValueChange,
    ),
    Mutant("sign", "C - M @ (M.T @ C)", "C + M @ (M.T @ C)", KeyValueChange),
    Mutant(
        "order of rounds", "self.merged += self.A @ self.B\n", "self.merged.copy_(self.A @ self.B)\n", KeyValueChange
    ),
    Mutant(
        "memory before or after the step", "self.M[:, used : used + new] = U", "self.M[:, :new] = U", KeyValueChange
    ),
    Mutant(
        "queries",
        '(("key", slice(0, width)),',
        '(("query", slice(0, width)),',
        KeyValueChange,
    ),
]
WHY = "main directions of what is left after all that is larger has been taken out of float32 features"
CHECKS = [
    pictures(
        InfLoRA,
        naive,
        [*SLIPS, Mutant("order of rounds", "(data.round - 1) /", "data.round /")],
        seen,
        title="InfLoRA whose share rises and whose head begins at 0",
        rank=3,
        kept=0.98,
        rounds=3,
        head_from_zero=True,
    ),
    pictures(
        InfLoRA,
        naive,
        SLIPS,
        seen,
        title="InfLoRA that keeps the complement",
        rank=3,
        kept=0.9999995,
        tolerance=1e-4,
        why=WHY,
    ),
]


def test_inflora_protects_and_learns_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
