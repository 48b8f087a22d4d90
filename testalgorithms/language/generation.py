"""Greedy replies to conversations, turn by turn, in batches."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ianvs.testalgorithms.language.conversation import ChatTemplate, Conversation, Encoded

Own = Callable[[Sequence[int]], list[list[int]]]
Written = Callable[[Sequence[Encoded], Own], Sequence[Sequence[int]]]


def reply(
    network: Any,
    template: ChatTemplate,
    conversations: Sequence[Conversation],
    *,
    max_new_tokens: int,
    batch_size: int,
    window: int | None = None,
    written: Written | None = None,
) -> list[list[str | None]]:
    """What the model replies to every user turn; its own earlier replies are the history.

    window: tokens that the model can look at. A prompt that leaves no room for a reply gets None, and so do the turns
    after it. written: has replies to prompts, with what the network itself says to those of given numbers.
    """
    replies: list[list[str | None]] = [[] for _ in conversations]
    lasts = max((len(c.user) for c in conversations), default=0)
    for turn in range(lasts):
        prompts: list[tuple[int, Encoded]] = []
        for i, conversation in enumerate(conversations):
            if turn >= len(conversation.user):
                continue
            history = [text for text in replies[i] if text is not None]
            prompt = template.asked(conversation, history) if len(history) == turn else None
            if not prompt or (window is not None and len(prompt) + max_new_tokens > window):
                replies[i].append(None)
            else:
                prompts.append((i, prompt))
        prompts.sort(key=lambda item: (len(item[1]), item[0]))  # alike lengths go together: less padding
        asked = [prompt for _, prompt in prompts]

        def own(chosen: Sequence[int], asked: Sequence[Encoded] = tuple(asked)) -> list[list[int]]:
            said: list[list[int]] = []
            for start in range(0, len(chosen), batch_size):
                part = [asked[number] for number in chosen[start : start + batch_size]]
                said += generate(network, template, part, max_new_tokens)
            return [template.ended(tokens) for tokens in said]

        said = own(range(len(asked))) if written is None else written(asked, own)
        for (i, _), tokens in zip(prompts, said, strict=True):
            replies[i].append(template.text(tokens))
    return replies


def generate(
    network: Any, template: ChatTemplate, prompts: Sequence[Encoded | Sequence[int]], max_new_tokens: int
) -> list[list[int]]:
    """The most probable next token, one after the other, of every prompt until its end mark; prompts are left out.

    Prompts are padded on the left, so that the last token of each is where the model goes on: padded on the right, a
    reply would be continued after the padding. Padding is masked, and positions count from each prompt's first token.
    """
    from transformers import GenerationConfig

    asked = [one if isinstance(one, Encoded) else Encoded(tuple(one), ()) for one in prompts]
    pictures = [picture for one in asked for picture in one.pictures]
    length = max(map(len, asked))
    tokens = torch.tensor([[template.pad] * (length - len(one)) + [*one.tokens] for one in asked])
    seen = torch.tensor([[0] * (length - len(one)) + [1] * len(one) for one in asked])
    device = next(network.parameters()).device
    # What a model's own configuration asks for, such as a penalty for repetition, would not be greedy.
    plain = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False,
        num_beams=1,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(template.stops),
        pad_token_id=template.pad,
        use_cache=True,
    )
    shown = {"pixel_values": template.sight.pixels(pictures).to(device)} if pictures and template.sight else {}
    said: Tensor = network.generate(
        input_ids=tokens.to(device), attention_mask=seen.to(device), generation_config=plain, **shown
    )
    return said[:, length:].tolist()
