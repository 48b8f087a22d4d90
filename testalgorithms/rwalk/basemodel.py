"""Riemannian walk."""

import torch

from ianvs.authoring import TorchLearner, flat_gradients, flat_parameters, set_flat_gradients


class RWalk(TorchLearner):
    """Riemannian walk (Chaudhry et al. 2018, arXiv 1801.10112); the paper also replays old samples.

    L(theta) = L_new(theta) + strength * sum_i (F_i + s_i) (theta_i - theta*_i)^2, theta* after the round before, F and
    s scaled to 0..1. F is a running mean: at each step F <- rate g^2 + (1 - rate) F, g the gradient of L_new (EWC++).
    s = (s of earlier rounds + s of this one) / 2, and s of a round = sum over stretches of `interval` steps of
    max(0, -sum over steps of g_i * (change of theta_i)) / (1/2 F_i (change of theta_i over the stretch)^2 + epsilon),
    F_i at its first step.
    """

    memory = ()  # it keeps no samples

    def __init__(
        self,
        *,
        strength: float = 1.0,
        rate: float = 0.1,
        interval: int = 10,
        epsilon: float = 1e-3,
        **training,
    ):
        super().__init__(**training)
        self.strength, self.rate, self.interval, self.epsilon = strength, rate, interval, epsilon
        self.fisher, self.score, self.star = None, None, None  # F, s, theta*: (P,)

    def before_round(self, data):
        self.theta = self.start = flat_parameters(self.network).detach().clone()  # now, and where a stretch began
        self.slope, self.gain, self.walked = (torch.zeros_like(self.theta) for _ in range(3))  # g, of a stretch, s
        self.steps, self.weight = 0, None
        self.fisher = torch.zeros_like(self.theta) if self.fisher is None else self.fisher.to(data.device)
        self.metric = self.fisher  # F at the first step of a stretch
        if self.star is not None:
            self.score, self.star = self.score.to(data.device), self.star.to(data.device)
            self.weight = sum(v / v.max().clamp_min(1e-30) for v in (self.fisher, self.score))

    def adjust_gradients(self, data):
        self.slope = flat_gradients(self.network.parameters())
        self.fisher = self.rate * self.slope.square() + (1 - self.rate) * self.fisher
        self.metric = self.metric if self.steps % self.interval else self.fisher
        if self.weight is not None:
            penalty = 2 * self.strength * self.weight * (self.theta - self.star)
            set_flat_gradients(self.network.parameters(), self.slope + penalty)

    def after_step(self, x, y, epoch, step):
        theta = flat_parameters(self.network).detach()
        self.gain -= self.slope * (theta - self.theta)
        self.theta, self.slope, self.steps = theta, torch.zeros_like(theta), self.steps + 1
        if self.steps % self.interval == 0:
            self.end_of_stretch()

    def end_of_stretch(self):
        distance = 0.5 * self.metric * (self.theta - self.start).square()
        self.walked += self.gain.clamp_min(0) / (distance + self.epsilon)
        self.start, self.gain = self.theta, torch.zeros_like(self.gain)

    def after_round(self, data):
        self.end_of_stretch()
        self.score = self.walked if self.score is None else (self.score + self.walked) / 2
        self.star = self.theta

    def state(self):
        return {"fisher": self.fisher, "score": self.score, "star": self.star}

    def restore(self, state):
        self.fisher, self.score, self.star = state["fisher"], state["score"], state["star"]
