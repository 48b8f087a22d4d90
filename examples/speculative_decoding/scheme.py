"""Speculative decoding (Leviathan et al. 2023, algorithm 1, greedy): a small model drafts, the large one verifies."""

from sedna.common.class_factory import ClassFactory, ClassType


@ClassFactory.register(ClassType.GENERAL, alias="SpeculativeDecoding")
class SpeculativeDecoding:
    """ahead: words that the edge drafts before the cloud looks at them. 0: the cloud writes alone, a word a round."""

    def __init__(self, ahead=4):
        self.ahead = ahead

    def answer(self, item, exchange):
        """[hard, text, the edge's last draft, the cloud's last words]; the text is what the cloud alone would write."""
        text, draft, words = [], [], None
        while words is None or words:
            draft = exchange.edge("draft", item, text, self.ahead) if self.ahead else []
            words = exchange.cloud("verify", item, text, draft)  # the draft as far as it is right, and one word more
            text += words
        return [True, " ".join(text), " ".join(draft), " ".join(words)]
