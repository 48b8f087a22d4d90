"""Fine-tuning on several labels: what forgetting costs when nothing is done about it."""

from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelFinetune(MultilabelLearner):
    """Trains on each round's samples alone, from the weights of the round before.

    A label of an earlier class is not given any more, and so is learned as absent.
    """

    memory = ()  # it keeps no samples
