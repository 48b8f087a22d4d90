"""Single-task training: what each domain reaches alone."""

from torch import nn

from ianvs.testalgorithms.nets import ErfNet
from ianvs.testalgorithms.segmentation import SegmentationLearner


class SingleTask(SegmentationLearner):
    """A network of its own for each domain, and each is tested with its own (Garg et al. 2022, the "single-task" rows).

    It is the reference of delta_m. It sees no old data and never forgets; the price is a whole network per domain. It
    stands in a ranking as an ordinary row, but read it as what there is to keep, not as one model that keeps it.
    """

    def build_network(self):
        return Separate(self.shape)

    def start_domain(self, domain):
        pass  # nothing is taken over


class Separate(nn.Module):
    """Networks side by side that are called like one: network(x, domain)."""

    def __init__(self, shape):
        super().__init__()
        self.shape, self.networks = shape, nn.ModuleList()

    @property
    def decoders(self):
        return [network.decoders[0] for network in self.networks]

    def add_domain(self, classes):
        like = next(self.parameters(), None)
        network = ErfNet([classes], self.shape)
        self.networks.append(network if like is None else network.to(like.device))

    def forward(self, x, domain):
        return self.networks[domain](x)

    def domain_modules(self, domain):
        return [self.networks[domain]]

    def domain_parameters(self, domain):
        return self.networks[domain].parameters()

    def shared_parameters(self):
        return iter(())
