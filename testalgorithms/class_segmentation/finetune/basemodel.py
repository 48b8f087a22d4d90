"""Fine-tuning of a segmentation network on one group of classes after the other."""

from ianvs.testalgorithms.class_segmentation import DenseLearner


class DenseFinetune(DenseLearner):
    """Trains on each round's masks alone, where everything else is background: it forgets all classes but these."""
