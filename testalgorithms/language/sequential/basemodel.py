"""Plain tuning, one round after the other: what forgetting looks like when nothing is done about it."""

from ianvs.testalgorithms.language import LanguageLearner


class Sequential(LanguageLearner):
    """min over theta of the mean of -log p(token | tokens before) over what the assistant says in the present round."""
