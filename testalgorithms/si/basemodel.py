"""Synaptic intelligence."""

import torch

from ianvs.authoring import TorchLearner, flat_gradients, flat_parameters, set_flat_gradients


class SI(TorchLearner):
    """Synaptic intelligence (Zenke et al. 2017, eq. 3 to 5).

    L(theta) = L_new(theta) + strength * sum_i Omega_i (theta_i - theta*_i)^2, theta* after the round before;
    Omega_i = sum over earlier rounds of omega_i / (Delta_i^2 + xi), Delta: how far the round moved the weight; after
    each round it is not below 0. omega_i = - sum over its steps of dL_new/dtheta_i * (change of theta_i).

    xi: damping. The gradient of the penalty is added by hand, so that omega sees that of L_new alone.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, strength: float = 1.0, xi: float = 0.1, **training):
        super().__init__(**training)
        self.strength, self.xi = strength, xi
        self.importance, self.star = None, None  # Omega, theta*: (P,)

    def before_round(self, data):
        self.start = self.theta = flat_parameters(self.network).detach().clone()
        self.omega, self.slope = torch.zeros_like(self.start), torch.zeros_like(self.start)
        if self.importance is not None:
            self.importance, self.star = self.importance.to(data.device), self.star.to(data.device)

    def walk(self):
        """Account for the step since the last call."""
        theta = flat_parameters(self.network).detach()
        self.omega -= self.slope * (theta - self.theta)
        self.theta = theta

    def adjust_gradients(self, data):
        self.walk()
        self.slope = flat_gradients(self.network.parameters())
        if self.importance is not None:
            penalty = 2 * self.strength * self.importance * (self.theta - self.star)
            set_flat_gradients(self.network.parameters(), self.slope + penalty)

    def after_round(self, data):
        self.walk()
        gained = self.omega / ((self.theta - self.start).square() + self.xi)
        self.importance = (gained if self.importance is None else self.importance + gained).clamp_min(0)
        self.star = self.theta

    def state(self):
        return {"importance": self.importance, "star": self.star}

    def restore(self, state):
        self.importance, self.star = state["importance"], state["star"]
