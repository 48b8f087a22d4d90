"""Fine-tuning as one plain PyTorch loop each step of which can be read on this page.

It shares nothing with ianvs.authoring but the seeds of its random streams. It takes no shortcut: samples are picked by
`x[index]`, the optimiser is torch.optim.SGD as it comes.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torchvision.models.resnet import BasicBlock

from ianvs.base.seeding import stream_seed


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


def plain_loop(exam, make_net, *, seed, epochs, batch_size, learning_rate, momentum=0.9, weight_decay=0.0):
    """(R (T + 1, T), predictions [k][j], weights [k])."""

    def look(k):
        net.eval()
        mask = mask_of(exam.seen(k), exam.num_classes)
        with torch.no_grad():
            answers = [(net(to_input(x)) + mask).argmax(1).numpy() for x, _ in exam.tests]
        scores = [np.mean(answer == y) for answer, (_, y) in zip(answers, exam.tests, strict=True)]
        return scores, answers, [w.clone() for w in net.state_dict().values()]

    torch.manual_seed(stream_seed(seed, 0, "init"))
    net = make_net(exam.num_classes)
    rows = [look(0)]
    for k, (x, y) in enumerate(exam.rounds, start=1):
        x, y, mask = to_input(x), torch.from_numpy(y), mask_of(exam.seen(k), exam.num_classes)
        net.train()
        optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum=momentum, weight_decay=weight_decay)
        order = torch.Generator().manual_seed(stream_seed(seed, k, "order"))
        for _ in range(epochs):
            permutation = torch.randperm(len(y), generator=order)
            for i in range(0, len(y), batch_size):
                batch = permutation[i : i + batch_size]
                loss = cross_entropy(net(x[batch]) + mask, y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        rows.append(look(k))
    scores, answers, weights = zip(*rows, strict=True)
    return np.array(scores), answers, weights
