"""Language models by name or folder: building, choosing the tuned weights, saving and loading."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.adapter_config import adapted, adapter_config, coverage, refused_by_peft
from ianvs.testalgorithms.language.model_options import TINY_VISION, ModelOptions
from ianvs.testalgorithms.language.model_places import place_of
from ianvs.testalgorithms.language.pretrained import (
    arguments_of,
    config_of,
    load_pretrained,
    loading,
    model_class,
    read_tokenizer,
    readable,
    require_whole,
    template_of_processor,
)
from ianvs.testalgorithms.language.sight import (
    KINDS,
    MARK,
    WORDS,
    Sight,
    beside_adapter,
    set_tuned,
    tiny_processor,
    tiny_seeing_model,
)
from ianvs.testalgorithms.language.tiny import tiny_model, tiny_tokenizer

SEEN = "seen.pt"  # beside an adapter: what was tuned of tower and projector


def build_model(options: ModelOptions, texts: Iterable[str], tokenizer: Any = None) -> tuple[Any, Any]:
    """Return (network, tokenizer), ready to be tuned; first weights are drawn by torch's generator.

    texts: for the tokenizer of a tiny model, unless there is one already.
    """
    if options.tiny:
        tokenizer = tokenizer or load_tokenizer(options, texts)
        network = tiny(options, tokenizer)
    else:
        network, tokenizer = load_pretrained(options)
    return to_tune(network, options), tokenizer


def tiny(options: ModelOptions, tokenizer: Any) -> Any:
    make = tiny_seeing_model if options.base_model in TINY_VISION else tiny_model
    return make(tokenizer, options.width, options.layers, options.heads)


def made_ready(network: Any, options: ModelOptions) -> Any:
    """Return a network in 4 bits prepared for adapters, with norms in 32 bits; other networks unchanged."""
    if options.quantize == "none":
        return network
    from peft import prepare_model_for_kbit_training

    return prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)


def save_model(network: Any, tokenizer: Any, options: ModelOptions, folder: Path) -> None:
    """Write what was tuned, in the form that `transformers` (model/) or `peft` (adapter/) loads, and the tokenizer."""
    if options.tuning != "full":
        # "auto" would ask the network whether the base model's vocabulary is as published.
        network.save_pretrained(folder / "adapter", save_embedding_layers=False)
    if options.tuning == "full" or options.tiny:
        (network if options.tuning == "full" else _plain(network)).save_pretrained(folder / "model")
    elif seen := beside_adapter(network, **options.seeing):
        torch.save(seen, folder / "adapter" / SEEN)
    tokenizer.save_pretrained(folder / "tokenizer")


def load_model(options: ModelOptions, folder: Path) -> tuple[Any, Any]:
    """Return (network, tokenizer) as `save_model` has written them."""
    from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

    network: Any
    kind: Any = PreTrainedTokenizerFast if options.tiny else AutoTokenizer
    trust = {"trust_remote_code": options.trust_remote_code}
    tokenizer = kind.from_pretrained(folder / "tokenizer", **trust)
    if (folder / "model").is_dir():
        kind = model_class(AutoConfig.from_pretrained(folder / "model", **trust))
        network, facts = kind.from_pretrained(
            folder / "model", dtype=options.dtype, output_loading_info=True, **trust, **loading(options)
        )
        require_whole(facts, f"the model in {folder / 'model'}")
    else:
        network, _ = load_pretrained(options)
    return to_tune(network, options, folder / "adapter"), tokenizer


def to_tune(network: Any, options: ModelOptions, folder: Path | None = None) -> Any:
    """Return a base model prepared for tuning. folder: that of an existing adapter; None: a new one is created."""
    try:
        if options.attention is not None:
            network.set_attn_implementation(options.attention)
    except (ImportError, ValueError) as error:
        why = f"which base_model '{options.base_model}' can't: {' '.join(str(error).split())}"
        raise PluginError(f"attention is {options.attention}, {why}", code="refused-arguments") from error
    if options.tuning != "full":
        from peft import PeftModel

        ready = made_ready(network, options)
        if folder is None:
            network = adapted(ready, options)
        else:
            config = adapter_config(ready, options)
            with refused_by_peft(options):
                network = PeftModel.from_pretrained(ready, folder, is_trainable=True, config=config)
            if (folder / SEEN).is_file():
                network.load_state_dict(torch.load(folder / SEEN, weights_only=True), strict=False)
    set_tuned(network, **options.seeing)
    return network


def remark_of_adapter(network: Any) -> str:
    """Return the number of weights that an adapter changes, in words."""
    under, whole = coverage(network)
    return f"{under:,} of {whole:,} weights are under an adapter".replace(",", " ")


def recompute_activations(network: Any) -> None:
    """Recompute activations in the backward pass; uses the name of this option in the installed transformers."""
    if hasattr(network, "activation_checkpointing_enable"):
        network.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def load_tokenizer(options: ModelOptions, texts: Iterable[str]) -> Any:
    """That of the base model alone, as `build_model` has it; None for one that is not on this machine yet."""
    if options.tiny:
        marks = [MARK] if options.base_model in TINY_VISION else []
        if marks:
            words = [text for word in WORDS.split() for text in (word, f" {word}")]
            texts = [text.replace(MARK, "") for text in [*texts, *words, *words]]
        tokenizer = tiny_tokenizer(texts, options.vocabulary, marks)
        tokenizer.chat_template = options.template or tokenizer.chat_template
        return tokenizer
    if not place_of(options.base_model).is_here(options.revision):
        return None
    return read_tokenizer(options)


def sight_of(options: ModelOptions, tokenizer: Any) -> Sight | None:
    """Return the vision of the model; None if it has none, or is not on this machine yet."""
    if options.base_model in TINY_VISION:
        with torch.device("meta"):
            return Sight(tiny(options, tokenizer).config, tiny_processor(), tokenizer)
    if options.tiny or not (options.download or place_of(options.base_model).is_here(options.revision)):
        return None
    config = config_of(options)
    if config.model_type not in KINDS:
        return None
    from transformers import AutoImageProcessor

    name, given = place_of(options.base_model).name, arguments_of(options)
    with readable(options):
        processor = AutoImageProcessor.from_pretrained(name, **given)
        if not getattr(tokenizer, "chat_template", None):
            tokenizer.chat_template = template_of_processor(name, given)
    return KINDS[config.model_type](config, processor, tokenizer)


def _plain(network: Any) -> Any:
    """Return the base model without its adapters; the network with them is not changed."""
    base = network.get_base_model()
    plain = type(base)(base.config)
    weights = {name: tensor for name, tensor in base.state_dict().items() if "lora_" not in name}
    plain.load_state_dict({name.replace(".base_layer", ""): tensor for name, tensor in weights.items()})
    return plain
