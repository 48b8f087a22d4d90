"""Language models that learn conversations, round after round."""

from testalgorithms.language.batches import Batch, RoundOfTalk
from testalgorithms.language.conversation import ChatTemplate, Conversation, Encoded
from testalgorithms.language.learner import LanguageLearner

__all__ = ["Batch", "ChatTemplate", "Conversation", "Encoded", "LanguageLearner", "RoundOfTalk"]
