"""Fine-tuning: what forgetting costs when nothing is done about it."""

from ianvs.authoring import TorchLearner


class Finetune(TorchLearner):
    """Trains on each round's data alone, from the weights of the round before ("naive").

    min over theta of the mean of -log p(y | x; theta), over the samples of the round.
    """

    memory = ()  # it keeps no samples
