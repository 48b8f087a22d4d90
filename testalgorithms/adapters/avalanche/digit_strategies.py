"""Strategies of Avalanche on a small network for digits, which is that of Mammoth for MNIST."""

import torch
from avalanche.training.plugins import ReplayPlugin
from avalanche.training.supervised import AGEM, DER, EWC, GEM, GDumb, ICaRL, LwF, Naive, SynapticIntelligence


class Perceptron(torch.nn.Module):
    """Two hidden layers of 100 units, with initial weights as Glorot & Bengio 2010 draw them, and biases of 0."""

    def __init__(self, shape, num_classes):
        super().__init__()
        inputs = int(torch.tensor(shape).prod())
        first, second = torch.nn.Linear(inputs, 100), torch.nn.Linear(100, 100)
        self.body = torch.nn.Sequential(torch.nn.Flatten(), first, torch.nn.ReLU(), second, torch.nn.ReLU())
        self.head = torch.nn.Linear(100, num_classes)
        for layer in (first, second, self.head):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.head(self.body(x))


def _training(num_classes, device, shape, learning_rate, epochs, batch_size):
    network = Perceptron(shape, num_classes)
    return {
        "model": network,
        "optimizer": torch.optim.SGD(network.parameters(), learning_rate),
        "criterion": torch.nn.CrossEntropyLoss(),
        "train_mb_size": batch_size,
        "train_epochs": epochs,
        "eval_mb_size": 512,
        "device": device,
        "evaluator": None,
    }


def naive(num_classes, device, shape, learning_rate=0.05, epochs=10, batch_size=32):
    return Naive(**_training(num_classes, device, shape, learning_rate, epochs, batch_size))


def ewc(num_classes, device, shape, strength=100.0, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return EWC(ewc_lambda=strength, **training)


def lwf(num_classes, device, shape, alpha=1.0, temperature=2.0, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return LwF(alpha=alpha, temperature=temperature, **training)


def si(num_classes, device, shape, strength=1.0, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return SynapticIntelligence(si_lambda=strength, **training)


def replay(num_classes, device, shape, capacity=200, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return Naive(plugins=[ReplayPlugin(mem_size=capacity)], **training)


def gem(num_classes, device, shape, per_round=40, strength=0.5, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return GEM(patterns_per_exp=per_round, memory_strength=strength, **training)


def agem(num_classes, device, shape, per_round=40, sample=32, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return AGEM(patterns_per_exp=per_round, sample_size=sample, **training)


def der(num_classes, device, shape, capacity=200, alpha=0.1, beta=0.5, learning_rate=0.05, epochs=10, batch_size=32):
    """With `beta` above 0 it is DER++."""
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return DER(mem_size=capacity, alpha=alpha, beta=beta, **training)


def gdumb(num_classes, device, shape, capacity=200, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    return GDumb(mem_size=capacity, **training)


def icarl(num_classes, device, shape, capacity=200, learning_rate=0.05, epochs=10, batch_size=32):
    training = _training(num_classes, device, shape, learning_rate, epochs, batch_size)
    network = training.pop("model")
    del training["criterion"]
    return ICaRL(
        feature_extractor=network.body,
        classifier=network.head,
        memory_size=capacity,
        buffer_transform=None,
        fixed_memory=True,
        **training,
    )
