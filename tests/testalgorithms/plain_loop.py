"""The same methods as one plain PyTorch loop each step of which can be read on this page.

It shares nothing with ianvs.authoring but the seeds of its random streams and the Fisher information, whose sums have
other last bits in any other order (tests/authoring/test_sample_gradients.py holds it against single backward passes).
It takes no shortcut: samples are picked by `x[index]`, the optimiser is torch.optim.SGD as it comes, losses are written
out.
"""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax
from torchvision.models.resnet import BasicBlock

from ianvs.authoring import fisher_diagonal
from ianvs.seeding import stream_seed


def small_mlp(num_classes, inputs=64, hidden=256):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))


def small_resnet(num_classes, widths=(32, 64, 128)):
    a, b, c = widths
    net = nn.Sequential(
        nn.Conv2d(3, a, 3, padding=1, bias=False),
        nn.BatchNorm2d(a),
        nn.ReLU(),
        BasicBlock(a, a),
        BasicBlock(a, b, 2, nn.Sequential(nn.Conv2d(a, b, 1, 2, bias=False), nn.BatchNorm2d(b))),
        BasicBlock(b, c, 2, nn.Sequential(nn.Conv2d(b, c, 1, 2, bias=False), nn.BatchNorm2d(c))),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(c, num_classes),
    )
    return net.to(memory_format=torch.channels_last)


def to_input(x):
    """Arrays (N, height, width, channels) to what the network takes."""
    x = torch.from_numpy(x).permute(0, 3, 1, 2)
    return x.float() / 127.5 - 1.0 if x.dtype == torch.uint8 else x


def mask_of(seen, num_classes):
    """0 for classes seen, -inf for the others; nothing is hidden from the untrained model."""
    hidden = [c for c in range(num_classes) if seen and c not in seen]
    mask = torch.zeros(num_classes)
    mask[hidden] = -torch.inf
    return mask


def plain_loop(
    method, exam, make_net, *, seed, epochs, batch_size, learning_rate, momentum=0.9, weight_decay=0.0, **options
):
    """(R (T + 1, T), predictions [k][j], weights [k]) of "finetune", "joint", "cumulative", "replay", "ewc", "lwf"."""

    def fresh_net():
        torch.manual_seed(stream_seed(seed, 0, "init"))
        return make_net(exam.num_classes)

    def look(k):
        net.eval()
        mask = mask_of(exam.seen(k), exam.num_classes)
        with torch.no_grad():
            answers = [(net(to_input(x)) + mask).argmax(1).numpy() for x, _ in exam.tests]
        scores = [np.mean(answer == y) for answer, (_, y) in zip(answers, exam.tests, strict=True)]
        return scores, answers, [w.clone() for w in net.state_dict().values()]

    net = fresh_net()
    rows = [look(0)]
    anchors, memory_x, memory_y, memory_keys = [], None, None, torch.empty(0, dtype=torch.float64)
    for k in range(1, len(exam.rounds) + 1):
        parts = exam.rounds[:k] if method in ("joint", "cumulative") else [exam.rounds[k - 1]]
        x = to_input(np.concatenate([x for x, _ in parts]))
        y = torch.from_numpy(np.concatenate([y for _, y in parts]))
        mask = mask_of(exam.seen(k), exam.num_classes)
        old_classes = list(exam.seen(k - 1))
        if method == "joint":
            net = fresh_net()
        teacher = copy.deepcopy(net).eval()

        net.train()
        optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum=momentum, weight_decay=weight_decay)
        order = torch.Generator().manual_seed(stream_seed(seed, k, "order"))
        draws = torch.Generator().manual_seed(stream_seed(seed, k, "replay"))
        for _ in range(epochs):
            permutation = torch.randperm(len(y), generator=order)
            for i in range(0, len(y), batch_size):
                batch = permutation[i : i + batch_size]
                some_x, some_y = x[batch], y[batch]
                if method == "replay" and k > 1:
                    old = torch.randperm(len(memory_y), generator=draws)[: len(some_y)]
                    some_x, some_y = torch.cat([some_x, memory_x[old]]), torch.cat([some_y, memory_y[old]])
                z = net(some_x) + mask
                loss = cross_entropy(z, some_y)
                if method == "ewc" and anchors:
                    theta = torch.cat([w.flatten() for w in net.parameters()])
                    penalty = sum((fisher * (theta - star) ** 2).sum() for star, fisher in anchors)
                    loss = loss + 0.5 * options["strength"] * penalty
                if method == "lwf" and k > 1:
                    T = options["temperature"]
                    with torch.no_grad():
                        p_old = softmax(teacher(some_x)[:, old_classes] / T, dim=1)
                    log_p = log_softmax(z[:, old_classes] / T, dim=1)
                    loss = loss + options["alpha"] * (kl_div(log_p, p_old, reduction="batchmean") * T**2)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        if method == "ewc":
            star = torch.cat([w.detach().flatten() for w in net.parameters()])
            anchors.append((star, fisher_diagonal(net, zip(x.split(1024), y.split(1024), strict=True), mask)))
        if method == "replay":
            stream = torch.Generator().manual_seed(stream_seed(seed, k, "memory"))
            memory_keys = torch.cat([memory_keys, torch.rand(len(y), dtype=torch.float64, generator=stream)])
            memory_x = x if k == 1 else torch.cat([memory_x, x])
            memory_y = y if k == 1 else torch.cat([memory_y, y])
            kept = memory_keys >= memory_keys.sort(descending=True).values[: options["capacity"]][-1]
            memory_x, memory_y, memory_keys = memory_x[kept], memory_y[kept], memory_keys[kept]
        rows.append(look(k))
    scores, answers, weights = zip(*rows, strict=True)
    return np.array(scores), answers, weights
