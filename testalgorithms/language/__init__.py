"""Language models that learn conversations, round after round."""

from ianvs.testalgorithms.language.batches import Batch, RoundOfTalk
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded
from ianvs.testalgorithms.language.language_learner import LanguageLearner
from ianvs.testalgorithms.language.vision_learner import VisionLanguageLearner

__all__ = [
    "Batch",
    "ChatTemplate",
    "Conversation",
    "Encoded",
    "LanguageLearner",
    "RoundOfTalk",
    "VisionLanguageLearner",
]
