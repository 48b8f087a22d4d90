"""Replies to conversations, turn by turn, in batches; greedy or sampled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded
from ianvs.testalgorithms.language.numbers import at_least, within
from ianvs.testalgorithms.language.source_target import with_end

Own = Callable[[Sequence[int]], list[list[int]]]
Written = Callable[[Sequence[Encoded], Own], Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Replying:
    """How replies are written.

    Attributes:
        max_new_tokens: The longest reply.
        batch_size: Conversations that are replied to at once.
        temperature: 0 takes the most probable token; above, tokens are drawn from logits divided by it.
        top_p: Tokens are drawn from the fewest that have this probability together.
        stop_strings: Texts that end a reply, and are no part of it.
    """

    max_new_tokens: int
    batch_size: int = 32
    temperature: float = 0.0
    top_p: float = 1.0
    stop_strings: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        at_least(1, max_new_tokens=self.max_new_tokens, generation_batch=self.batch_size)
        within(0, float("inf"), temperature=self.temperature)
        within(0, 1, top_p=self.top_p)
        if self.top_p < 1 and not self.temperature:
            raise PluginError(
                f"top_p is {self.top_p:g}, and temperature 0 draws no tokens. Set a temperature, or take top_p out.",
                code="conflicting-keys",
            )
        if not all(isinstance(stop, str) and stop for stop in self.stops):
            raise PluginError(
                f"stop_strings is {self.stop_strings!r}; it is a text, or a list of texts.", code="wrong-type"
            )

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop_strings,) if isinstance(self.stop_strings, str) else tuple(self.stop_strings)

    def until_stop(self, text: str) -> str:
        """Return the part of a reply before the first of `stop_strings`."""
        ends = [at for stop in self.stops if (at := text.find(stop)) >= 0]
        return text[: min(ends)].strip() if ends else text


def reply(
    network: Any,
    template: ChatTemplate,
    conversations: Sequence[Conversation],
    replying: Replying,
    *,
    window: int | None = None,
    written: Written | None = None,
) -> list[list[str | None]]:
    """Return the model's replies to every user turn; its own earlier replies are the history.

    window: tokens in the model's context. A prompt that leaves no room for a reply gets None, and so do the turns after
    it. written: has replies to prompts, with what the network itself says to those of given numbers.
    """
    replies: list[list[str | None]] = [[] for _ in conversations]
    lasts = max((len(c.user) for c in conversations), default=0)
    for turn in range(lasts):
        prompts: list[tuple[int, Encoded]] = []
        for i, conversation in enumerate(conversations):
            if turn >= len(conversation.user):
                continue
            history = [text for text in replies[i] if text is not None]
            prompt = template.encoded_prompt(conversation, history) if len(history) == turn else None
            if not prompt or (window is not None and len(prompt) + replying.max_new_tokens > window):
                replies[i].append(None)
            else:
                prompts.append((i, prompt))
        prompts.sort(key=lambda item: (len(item[1]), item[0]))  # similar lengths go together: less padding
        encoded = [prompt for _, prompt in prompts]

        def generated(chosen: Sequence[int], inputs: Sequence[Encoded] = tuple(encoded)) -> list[list[int]]:
            token_lists: list[list[int]] = []
            for start in range(0, len(chosen), replying.batch_size):
                part = [inputs[number] for number in chosen[start : start + replying.batch_size]]
                token_lists += generate(network, template, part, replying)
            return [template.ended(tokens) for tokens in token_lists]

        token_lists = generated(range(len(encoded))) if written is None else written(encoded, generated)
        for (i, _), tokens in zip(prompts, token_lists, strict=True):
            replies[i].append(replying.until_stop(template.text(tokens)))
    return replies


def generate(
    network: Any, template: ChatTemplate, prompts: Sequence[Encoded | Sequence[int]], replying: Replying
) -> list[list[int]]:
    """Generate tokens for every prompt until its end token; the result does not include the prompts.

    Prompts are padded on the left, so their last tokens are where generation continues: with padding on the right, a
    reply would follow the padding. Padding is masked, and positions count from each prompt's first token.
    """
    from transformers import GenerationConfig

    encoded = [prompt if isinstance(prompt, Encoded) else Encoded(tuple(prompt), ()) for prompt in prompts]
    both = network.config.is_encoder_decoder  # a decoder of its own begins after a mark, not after the prompt
    given = [with_end(prompt.tokens, template.tokenizer.eos_token_id) if both else prompt.tokens for prompt in encoded]
    length = max(map(len, given))
    tokens = torch.tensor([[template.pad] * (length - len(prompt)) + [*prompt] for prompt in given])
    seen = torch.tensor([[0] * (length - len(prompt)) + [1] * len(prompt) for prompt in given])
    device = next(network.parameters()).device
    drawn = {"temperature": replying.temperature, "top_p": replying.top_p, "top_k": 0} if replying.temperature else {}
    ends = {"stop_strings": list(replying.stops)} if replying.stops else {}
    start = {"decoder_start_token_id": network.config.decoder_start_token_id} if both else {}
    # Settings in the model's own configuration, such as a repetition penalty, are not used.
    plain = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=bool(replying.temperature),
        num_beams=1,
        max_new_tokens=replying.max_new_tokens,
        eos_token_id=list(template.stops),
        pad_token_id=template.pad,
        use_cache=True,
        **drawn,
        **ends,
        **start,
    )
    shown = {} if template.sight is None else template.sight.inputs([prompt.pictures for prompt in encoded], tokens)
    output: Tensor = network.generate(
        input_ids=tokens.to(device),
        attention_mask=seen.to(device),
        generation_config=plain,
        **({"tokenizer": template.tokenizer} if ends else {}),
        **{name: value.to(device) for name, value in shown.items()},
    )
    return output[:, 1 if both else length :].tolist()
