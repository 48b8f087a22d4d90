"""MoELoRA: adapters that are a mixture of experts, tuned one round after the other."""

from ianvs.testalgorithms.language import LanguageLearner


class MoELoRA(LanguageLearner):
    """y = W x + s sum_e softmax(R x)_e B_e A_e x in every linear layer; all experts of rank r / E are computed.

    The mixture-of-experts baseline of CoIN (arXiv 2403.08350) and Continual-NExT. It has no means against forgetting
    but that the router may learn to send different rounds to different experts.
    """

    reference = "ianvs.testalgorithms.language.moelora.basemodel:MoELoRA"  # another adapter than that of the others

    def __init__(self, *, tuning="moelora", **options):
        super().__init__(tuning=tuning, **options)
