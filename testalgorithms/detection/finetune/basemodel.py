"""Fine-tuning of a detector: what forgetting costs when nothing is done about it."""

from ianvs.testalgorithms.detection import DetectionLearner


class DetectionFinetune(DetectionLearner):
    """Trains on each round's images alone, from the weights of the round before.

    Objects of earlier classes are in the images without a label, and so are learned as background.
    """

    memory = ()  # it keeps no samples
