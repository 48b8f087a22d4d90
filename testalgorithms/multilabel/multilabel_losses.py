"""Losses on logits z (N, C) and labels y (N, C) of 0 and 1, over those classes that are taught."""

from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid


def binary_cross_entropy(z, y, classes):
    """Mean over samples and the given classes of -y log p - (1 - y) log(1 - p), p = sigmoid(z)."""
    return binary_cross_entropy_with_logits(z[:, classes], y[:, classes].to(z.dtype))


def asymmetric_loss(z, y, classes, *, gamma_positive=0.0, gamma_negative=4.0, margin=0.05, through_weights=False):
    """Asymmetric loss (Ridnik et al. 2021, arXiv 2009.14119, eq. 3 to 7), summed over classes, mean over samples.

    -(1 - p)^gamma_positive log p where y is 1, -q^gamma_negative log(1 - q) elsewhere; p = sigmoid(z),
    q = max(p - margin, 0). Without margin and gammas it is the binary cross-entropy, summed over classes.
    through_weights: whether the gradient flows through the two powers, too; in the paper's code it does not.
    """
    z, y = z[:, classes], y[:, classes].to(z.dtype)
    p = z.sigmoid()
    q = (p - margin).clamp(min=0)
    weights = y * (1 - p) ** gamma_positive + (1 - y) * q**gamma_negative
    log_likelihood = y * logsigmoid(z) + (1 - y) * (1 - q).clamp(min=1e-8).log()
    return -((weights if through_weights else weights.detach()) * log_likelihood).sum(1).mean()
