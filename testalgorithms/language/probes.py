"""Checks for things that a language model must not do: use padding, later tokens, or the text of a neighbour."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.batches import Batch
from ianvs.testalgorithms.language.conversation import Encoded

NEAR = 1e-5  # of the largest logit: a hundred times what rounding makes of it in 32 bits
NEAR_IN_HALF = 0.05  # the same in bfloat16
_LONG, _SHORT = 12, 5  # tokens of the two prompts


@torch.no_grad()
def require_causal(network: Any, name: str) -> None:
    """Refuse a network whose first logits change with its last token.

    Args:
        network: In evaluation mode.
        name: Of the base model, for the message.

    Raises:
        PluginError: It sees later tokens, so that it would learn to copy, and could not write.
    """
    first, other = _prompt(network, _LONG, 0), _prompt(network, _LONG, 0)
    other[0, -1] = first[0, 0] if first[0, -1] != first[0, 0] else first[0, 1]
    seen = torch.ones_like(first)
    outputs = [
        network(input_ids=tokens, attention_mask=seen, use_cache=False).logits[0, 0].float()
        for tokens in (first, other)
    ]
    if _differ(*outputs):
        raise PluginError(
            f"base_model '{name}' is no causal language model: another last token changes its output at the "
            "first, as in BERT. It can't write replies. Take another model.",
            code="refused-arguments",
        )


@torch.no_grad()
def require_alone(network: Any, name: str, batch: int) -> None:
    """Refuse a network that looks at padding, where prompts of several lengths are replied to at once.

    Args:
        network: In evaluation mode.
        name: Of the base model, for the message.
        batch: How many conversations are replied to at once; alone, nothing is padded.

    Raises:
        PluginError: Replies would depend on `generation_batch`.
    """
    if batch == 1:
        return
    long, short = _prompt(network, _LONG, 0), _prompt(network, _SHORT, 1)
    padded = torch.cat([torch.zeros_like(long[:, : _LONG - _SHORT]), short], dim=1)
    seen = torch.ones_like(padded)
    seen[:, : _LONG - _SHORT] = 0
    alone = _next(network, short, torch.ones_like(short))[0]
    together = _next(network, torch.cat([long, padded]), torch.cat([torch.ones_like(long), seen]))[1]
    if _differ(alone, together):
        raise PluginError(
            f"base_model '{name}' looks at padding: its replies would depend on generation_batch, which is {batch}. "
            "Set generation_batch: 1.",
            code="refused-arguments",
        )


@torch.no_grad()
def require_apart(
    network: Any, batch: Callable[[Sequence[Encoded]], Batch], conversations: Sequence[Encoded], name: str
) -> None:
    """Refuse a network that looks from one conversation of a packed row into another.

    Args:
        network: In evaluation mode.
        batch: Makes a packed row of conversations.
        conversations: Of which the first tokens of two are tried.
        name: Of the base model, for the message.

    Raises:
        PluginError: Its attention mixes them.
    """
    if network.config.is_encoder_decoder:
        raise PluginError(
            f"packing is true, and base_model '{name}' is an encoder-decoder. Set packing: false.",
            code="refused-arguments",
        )
    some = [conversation.cut(16) for conversation in (*conversations, *conversations)[:2]]
    outputs = []
    for part in (some[:1], some[1:], some):
        inputs = batch(part).inputs(network)
        outputs.append(network(**{k: v for k, v in inputs.items() if k != "logits_to_keep"}).logits[0].float())
    if _differ(torch.cat(outputs[:2]), outputs[2], NEAR_IN_HALF):
        raise PluginError(
            f"packing is true, and the attention of base_model '{name}' mixes conversations that lie in one row. Set "
            "packing: false.",
            code="refused-arguments",
        )


def _differ(first: Tensor, second: Tensor, near: float = NEAR) -> bool:
    return bool((first - second).abs().max() > near * first.abs().max())


def _prompt(network: Any, length: int, offset: int) -> Tensor:
    """Return (1, length) tokens of any vocabulary, none of them the first few, which are marks."""
    device = next(network.parameters()).device
    size = network.get_input_embeddings().num_embeddings
    return (torch.arange(length, device=device)[None] * 7 + 11 + offset) % max(1, size - 8) + min(8, size - 1)


def _next(network: Any, tokens: Tensor, seen: Tensor) -> Tensor:
    """Return (B, V) scores of the token after each row, as `generate` calls the network: positions count without
    padding.
    """
    from transformers import GenerationConfig

    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=1, pad_token_id=0, output_logits=True, return_dict_in_generate=True
    )
    output = network.generate(input_ids=tokens, attention_mask=seen, generation_config=settings)
    scores: Tensor = output.logits[0].float()
    return scores
