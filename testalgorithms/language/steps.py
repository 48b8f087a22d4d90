"""Hooks in a round that a method can override; by default they do nothing."""

from typing import Any

from ianvs.testalgorithms.language.batches import RoundOfTalk
from ianvs.testalgorithms.language.conversation import Encoded


class Steps:
    """Hooks that a method may override, besides `LanguageLearner.loss`."""

    def before_round(self, data: RoundOfTalk) -> None:
        """Called before the first step of a round."""

    def extend(self, conversations: list[Encoded]) -> list[Encoded]:
        """Return the conversations of a batch, from those that the round's order brings."""
        return conversations

    def before_step(self) -> None:
        """Called when the gradients of a step have been computed, before they are used."""

    def after_step(self) -> None:
        """Called after the weights have moved; the gradients are still there."""

    def after_round(self, data: RoundOfTalk) -> None:
        """Called after the last step of a round, before anything is scored."""

    def state(self) -> dict[str, Any]:
        """What the method needs to go on besides the weights: tensors, numbers, text, and lists or dicts of these."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
