"""Language models that learn conversations, round after round."""

from ianvs.testalgorithms.language.batches import Batch, RoundOfTalk
from ianvs.testalgorithms.language.conversation import ChatTemplate, Conversation, Encoded
from ianvs.testalgorithms.language.language_learner import LanguageLearner, VisionLanguageLearner

__all__ = [
    "Batch",
    "ChatTemplate",
    "Conversation",
    "Encoded",
    "LanguageLearner",
    "RoundOfTalk",
    "VisionLanguageLearner",
]
