"""Class-incremental segmentation: fine-tuning, joint training, MiB and PLOP, on a network of two layers.

Three rounds of six classes; in a round's masks all classes but its own are background, b. Old classes o have b in them.
MiB (Cermelli et al. 2020, eq. 5 to 10): -log q(y), q(b) the sum over o, and - (w / |o|) sum over o of p_old log p',
p'(b) the sum over b and the new classes; a new output begins with b's weights, and all of them share its probability.
PLOP (Douillard et al. 2021, eq. 3 to 9): background pixels get the old answer where its entropy is below the median of
those with that answer; an image counts by the share of its background that got one; pooled squares of the hidden layer
and of the logits stay near, each distance an l2 norm averaged over images.
Joint training begins again in each round, over all images so far with the classes of all rounds so far.
"""

import copy
import math

import numpy as np
import torch
from torch import nn

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.class_segmentation import DenseLearner
from ianvs.testalgorithms.class_segmentation.dense_network import DenseNetwork
from ianvs.testalgorithms.class_segmentation.finetune.basemodel import DenseFinetune
from ianvs.testalgorithms.class_segmentation.joint.basemodel import DenseJoint
from ianvs.testalgorithms.class_segmentation.mib.basemodel import MiB
from ianvs.testalgorithms.class_segmentation.plop.basemodel import PLOP
from tests.nightly.conformance.harness import After, Mutant, compared

CLASSES, SIDE, SEED, EPOCHS, BATCH, RATE = 6, 8, 4, 2, 5, 0.05
GROUPS = {1: [0, 1, 2], 2: [3], 3: [4, 5]}
TRAINING = {"epochs": EPOCHS, "batch_size": BATCH, "learning_rate": RATE, "momentum": 0.9, "network": "erfnet_narrow"}


def images(k, count=12):
    """x uint8 (N, 3, H, W), in colours of the classes, and whole masks (N, H, W). k: 0 for the test."""
    draw = np.random.default_rng([23, k])
    y = draw.integers(0, CLASSES, (count, SIDE // 2, SIDE // 2)).repeat(2, 1).repeat(2, 2)
    colours = np.random.default_rng(7).integers(0, 256, (CLASSES, 3))
    x = colours[y].transpose(0, 3, 1, 2) * 0.7 + draw.integers(0, 70, (count, 3, SIDE, SIDE))
    y[:, 0, 0] = 255
    return torch.from_numpy(x.astype(np.uint8)), torch.from_numpy(y.astype(np.uint8))


def limited(y, classes):
    shown = torch.zeros_like(y)
    for c in [*classes, 255]:
        shown[y == c] = c
    return shown


def round_of(k):
    x, y = images(k)
    return x, limited(y, GROUPS[k])


def seen(k):
    return [c for j in range(1, k + 1) for c in GROUPS[j]]


class Data:
    def __init__(self, x, y=None):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def tensors(self, device="cpu"):
        return self.x if self.y is None else (self.x, self.y)


def two_layers(classes=CLASSES):
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.Conv2d(8, classes, 1))


def ours(make):
    learner = make()

    def build_network(shape, classes):
        net = two_layers(classes)
        return DenseNetwork(net, [net[1]], net[2])

    learner.build_network = build_network
    for k in (1, 2, 3):
        past = [(x, limited(y, seen(k))) for x, y in map(images, range(1, k + 1))]
        more = {"train_rounds": tuple(Data(*one) for one in past)} if isinstance(learner, DenseJoint) else {}
        context = {"round": k, "classes_seen": seen(k), "num_classes": CLASSES, "seed": SEED}
        learner.train(Data(*round_of(k)), None, new_classes=GROUPS[k], **context, **more)
        answers = learner.predict(Data(images(0)[0]), **context)
        yield After([w.detach().clone() for w in learner.network.state_dict().values()], [], answers)


def first_network():
    torch.manual_seed(stream_seed(SEED, 0, "init"))
    return two_layers()


def steps(k, x, y, net, loss):
    """Every step of round k; loss: (x, y) -> scalar."""
    sgd = torch.optim.SGD(net.parameters(), RATE, momentum=0.9)
    order, moves = (torch.Generator().manual_seed(stream_seed(SEED, k, what)) for what in ("order", "moves"))
    for _ in range(EPOCHS):
        for some in torch.split(torch.randperm(len(x), generator=order), BATCH):
            part, labels = x[some].float() / 255, y[some].long()
            for i, mirrored in enumerate((torch.rand(len(some), generator=moves) < 0.5).tolist()):
                if mirrored:
                    part[i], labels[i] = part[i].flip(-1), labels[i].flip(-1)
            sgd.zero_grad()
            loss(part, labels).backward()
            sgd.step()


@torch.no_grad()
def after(net, k):
    logits = net(images(0)[0].float() / 255)
    others = [c for c in range(CLASSES) if c not in seen(k)]
    logits[:, others] = -torch.inf
    return After([w.clone() for w in net.state_dict().values()], [], logits.argmax(1).numpy())


def softmax_over(z, classes):
    """{c: (B, H, W) exp z_c / sum over `classes`}."""
    powers = {c: z[:, c].exp() for c in classes}
    total = sum(powers.values())
    return {c: one / total for c, one in powers.items()}


def plain_loss(net, k):
    def loss(x, y):
        p, found = softmax_over(net(x), seen(k)), 0.0
        for c in seen(k):
            found = found - p[c].log()[y == c].sum()
        return found / (y != 255).sum()

    return loss


def naive_finetune(exam):
    net = first_network()
    for k in (1, 2, 3):
        steps(k, *round_of(k), net, plain_loss(net, k))
        yield after(net, k)


def naive_joint(exam):
    for k in (1, 2, 3):
        net = first_network()
        parts = [images(j) for j in range(1, k + 1)]
        x, y = torch.cat([x for x, _ in parts]), torch.cat([limited(y, seen(k)) for _, y in parts])
        steps(k, x, y, net, plain_loss(net, k))
        yield after(net, k)


def begin_from_background(net, new):
    with torch.no_grad():
        weight, bias = net[2].weight, net[2].bias
        shared = float(bias[0]) - math.log(1 + len(new))
        for c in new:
            weight[c], bias[c] = weight[0].clone(), shared
        bias[0] = shared


def naive_mib(exam, distillation):
    net = first_network()
    for k in (1, 2, 3):
        old, new = seen(k - 1), GROUPS[k]
        teacher = copy.deepcopy(net)
        if k == 1:
            steps(k, *round_of(k), net, plain_loss(net, k))
            yield after(net, k)
            continue
        begin_from_background(net, new)

        def loss(x, y, old=old, new=new, teacher=teacher):
            p = softmax_over(net(x), [*old, *new])
            with torch.no_grad():
                teacher_shares = softmax_over(teacher(x), old)
            likelihoods = -sum(p[c] for c in old).log()[y == 0].sum()
            for c in new:
                likelihoods = likelihoods - p[c].log()[y == c].sum()
            kept = teacher_shares[0] * (p[0] + sum(p[c] for c in new)).log()
            for c in old[1:]:
                kept = kept + teacher_shares[c] * p[c].log()
            return likelihoods / (y != 255).sum() - distillation * (kept / len(old)).mean()

        steps(k, *round_of(k), net, loss)
        yield after(net, k)


def pooled(h):
    """(B, ...) of (B, D, H, W)."""
    found = []
    for cut in (1, 2, 4):
        size = SIDE // cut
        for i in range(cut):
            for j in range(cut):
                part = h[:, :, i * size : (i + 1) * size, j * size : (j + 1) * size] ** 2
                found += [part.mean(3).flatten(1), part.mean(2).flatten(1)]
    return torch.cat(found, 1)


def naive_plop(exam, features, outputs, threshold):
    net = first_network()
    for k in (1, 2, 3):
        old, new = seen(k - 1), GROUPS[k]
        if k == 1:
            steps(k, *round_of(k), net, plain_loss(net, k))
            yield after(net, k)
            continue
        teacher = copy.deepcopy(net)
        begin_from_background(net, new)

        def answered(x, old=old, teacher=teacher):
            """Old answers as places in `old`, and their entropies as shares of the largest."""
            with torch.no_grad():
                p = softmax_over(teacher(x), old)
            entropy = -sum(one * (one + 1e-8).log() for one in p.values()) / math.log(len(old))
            return torch.stack([p[c] for c in old]).argmax(0), entropy

        x, y = round_of(k)
        said, entropy = answered(x.float() / 255)
        limits = []
        for place in range(len(old)):
            bins = sorted((entropy[(y == 0) & (said == place)] * 1000).long().clamp(0, 999).tolist())
            limits.append(max((bins[(len(bins) + 1) // 2 - 1] + 1) / 1000 if bins else 0.0, threshold))

        def loss(x, y, old=old, new=new, teacher=teacher, limits=limits, answered=answered):
            said, entropy = answered(x)
            labels, shares = y.clone(), []
            for i in range(len(x)):
                background = (y[i] == 0).nonzero().tolist()
                sure = 0
                for row, column in background:
                    place = int(said[i, row, column])
                    fits = float(entropy[i, row, column]) < limits[place]
                    labels[i, row, column] = old[place] if fits else 255
                    sure += fits
                shares.append(sure / max(1, len(background)))
            z, hidden = net(x), net[1](net[0](x))
            with torch.no_grad():
                before, hidden_before = teacher(x), teacher[1](teacher[0](x))
            p, found = softmax_over(z, [*old, *new]), 0.0
            for i, share in enumerate(shares):
                for c in [*old, *new]:
                    found = found - share * p[c][i].log()[labels[i] == c].sum()
            now = torch.stack([z[:, 0] + sum(z[:, c] for c in new), *(z[:, c] for c in old[1:])], 1)
            far = features * (pooled(hidden) - pooled(hidden_before)).norm(dim=1).mean()
            far = far + outputs * (pooled(now) - pooled(before[:, old])).norm(dim=1).mean()
            return found / y.numel() + ((len(old) + len(new)) / len(new)) ** 0.5 * far / 2

        steps(k, x, y, net, loss)
        yield after(net, k)


def check(method, naive, mutants, **options):
    why = "single precision: probabilities are multiplied here, and logarithms added there"
    return compared(method, TRAINING, ours, naive, mutants, None, tolerance=1e-4, why=why, **options)


COMMON = [
    Mutant("mask", "outputs if data.mask is None else outputs + data.mask[:, None, None]", "outputs", DenseLearner),
    Mutant("sign", "< self.flip", "> self.flip", DenseLearner),
    Mutant("factor", "ignore_index=IGNORE)", "ignore_index=0)", DenseLearner),
]
CHECKS = [
    check(DenseFinetune, naive_finetune, COMMON),
    check(DenseJoint, naive_joint, [Mutant("order of rounds", "self.reset()", "pass"), *COMMON]),
    check(
        MiB,
        naive_mib,
        [
            Mutant("order of rounds", "self.copied() if self.later", "self.network if self.later"),
            Mutant("mask", "logs[:, : len(old)].logsumexp(1, keepdim=True)", "logs[:, :1]"),
            Mutant("factor", ".mean(1).mean()", ".sum(1).mean()"),
            Mutant("sign", "return -(p *", "return (p *"),
            Mutant("factor", "float(len(new) + 1)", "float(len(new))", DenseNetwork),
        ],
        distillation=10.0,
    ),
    check(
        PLOP,
        naive_plop,
        [
            Mutant("order of rounds", "self.copied() if self.later", "self.network if self.later"),
            Mutant("mask", "torch.where(sure, self.old_index[c], IGNORE)", "self.old_index[c]"),
            Mutant("factor", "share[:, None, None] * each", "each"),
            Mutant("sign", "now[:, 0] + z", "now[:, 0] - z"),
            Mutant("factor", "growth**0.5", "growth"),
        ],
        features=0.1,
        outputs=0.05,
        threshold=0.001,
    ),
]


def test_four_methods_go_where_plain_loops_go():
    for one in CHECKS:
        one.conforms()
