"""What naive statements of methods with exemplars share: a memory that is chosen as iCaRL's algorithms 4 and 5 say."""

import torch
from torch.nn.functional import normalize


class Exemplars:
    """capacity / (number of classes) samples of each class, rounded down, in the order in which they were chosen."""

    def __init__(self, capacity):
        self.capacity, self.of = capacity, {}  # class -> samples (n, ...)

    @property
    def columns(self):
        x = [self.of[c] for c in sorted(self.of)]
        y = [torch.full((len(self.of[c]),), c) for c in sorted(self.of)]
        return [torch.cat(x), torch.cat(y)] if x else []

    def with_new(self, x, y):
        """A round's samples, and after them the exemplars."""
        return [torch.cat([a, b]) for a, b in zip((x, y), self.columns, strict=True)] if self.of else (x, y)

    @torch.no_grad()
    def choose(self, features, x, y):
        """After a round of new classes; features: of samples (n, ...), (n, D)."""
        m = self.capacity // len({*self.of, *y.tolist()})
        self.of = {c: kept[:m] for c, kept in self.of.items()}
        for c in sorted(set(y.tolist())):
            of_class = x[y == c]
            f = features(of_class)
            mean, chosen = f.mean(0), []
            for k in range(1, m + 1):
                off = [(mean - (f[i] + sum(f[j] for j in chosen)) / k).norm().item() for i in range(len(f))]
                chosen.append(min((i for i in range(len(f)) if i not in chosen), key=off.__getitem__))
            self.of[c] = of_class[chosen]


@torch.no_grad()
def features_of(body, x, unit=True):
    """(n, D) of samples, by the network as it is in testing; of length 1, or as they are."""
    body.eval()
    f = body(x)
    body.train()
    return normalize(f, dim=1) if unit else f
