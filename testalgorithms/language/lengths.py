"""Which conversations of each round fit into `max_length` tokens, and a note about the others."""

from collections.abc import Sequence

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded, texts_of
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.models import load_tokenizer, sight_of
from ianvs.testalgorithms.language.sight import require_sight


class Lengths:
    """Counts, by round: conversations, those that are skipped, and those that are cut.

    One is skipped whose prompt leaves no token of a reply to learn; a longer one of which something is left is cut.
    """

    def __init__(self, max_length: int, counts: Sequence[Sequence[int]] = ()) -> None:
        self.max_length = max_length
        self.counts = {number: (whole, skipped, cut) for number, whole, skipped, cut in counts}

    def fitting(
        self, conversations: Sequence[Conversation], template: ChatTemplate, round: int
    ) -> tuple[list[Conversation], list[Encoded]]:
        """Return the conversations that are not skipped, and their cut tokens. Raises PluginError if none is left."""
        parts = [part for conversation in conversations for part in template.learnable(conversation)]
        conversations, whole = [part[0] for part in parts], [part[1] for part in parts]
        encoded = [row.cut(self.max_length) for row in whole]
        chosen = [i for i, row in enumerate(encoded) if any(row.learnt[1:])]
        cut = sum(len(whole[i]) > self.max_length for i in chosen)
        self.counts[round] = (len(whole), len(whole) - len(chosen), cut)
        if not chosen:
            raise PluginError(
                f"max_length is {self.max_length}, and in all {len(whole)} conversations of round {round} the first "
                "reply begins after that many tokens. Increase max_length.",
                code="refused-arguments",
            )
        return [conversations[i] for i in chosen], [encoded[i] for i in chosen]

    @property
    def remark(self) -> str:
        """Return the note; "" if everything fits."""
        parts = []
        for label, position in (("skipped, whose prompts alone are as long", 1), ("cut", 2)):
            affected = [(number, count) for number, count in sorted(self.counts.items()) if count[position]]
            listed = ", ".join(f"{count[position]} of {count[0]} in round {number}" for number, count in affected)
            parts += [f"{label}: {listed}"] if listed else []
        return f"of conversations longer than max_length {self.max_length}, {'; '.join(parts)}" if parts else ""

    def state(self) -> list[list[int]]:
        return [[number, *count] for number, count in self.counts.items()]


def remark_of_rounds(
    rounds: Sequence[Sequence[Conversation]], options: ModelOptions, max_length: int, packing: bool
) -> str:
    """Return a note on conversations that will be skipped and cut; "" if the tokenizer is not on this machine.

    Raises:
        PluginError: Nothing of a round fits, or it has images that the model can't see, or not packed.
    """
    if (tokenizer := load_tokenizer(options, texts_of(rounds[0]))) is None:
        return ""
    sight = sight_of(options, tokenizer)
    lengths, template = Lengths(max_length), ChatTemplate(tokenizer, sight=sight)
    for number, conversations in enumerate(rounds, start=1):
        require_sight(conversations, sight, options.base_model, packing)
        lengths.fitting(conversations, template, number)
    return lengths.remark
