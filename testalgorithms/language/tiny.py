"""A small substitute for a language model: a transformer from a configuration, and a tokenizer made from given
texts.
"""

from collections.abc import Iterable, Sequence
from typing import Any

WINDOW = 1024  # tokens in the context of the model

TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def tiny_tokenizer(texts: Iterable[str], vocabulary: int, marks: Sequence[str] = ()) -> Any:
    """Return a byte-level BPE tokenizer with at most `vocabulary` tokens, merged from `texts`; it can spell any text.

    marks: what is a token by itself wherever it stands, besides those of its template.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", *marks]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocabulary, len(special) + len(alphabet)),
        min_frequency=2,
        special_tokens=special,
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=special[2:],
        chat_template=TEMPLATE,
    )


def tiny_model(tokenizer: Any, width: int, layers: int, heads: int) -> Any:
    """Return an untrained decoder of the Llama architecture (Touvron et al. 2023), its weights drawn by torch's
    generator.
    """
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM(tiny_config(tokenizer, width, layers, heads))


def tiny_config(tokenizer: Any, width: int, layers: int, heads: int) -> Any:
    """What `tiny_model` is made from."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
