"""Language models by name or folder, what of them is tuned, and how they are kept."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ianvs.base.errors import PluginError, closest
from ianvs.testalgorithms.language.model_options import TINY_VISION, ModelOptions
from ianvs.testalgorithms.language.model_places import not_here, place_of
from ianvs.testalgorithms.language.sight import (
    KINDS,
    MARK,
    PROJECTOR,
    TOWER,
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
    """(network, tokenizer), ready to be tuned; first weights are drawn by torch's generator.

    texts: for the tokenizer of a tiny model, unless there is one already.
    """
    if options.tiny:
        tokenizer = tokenizer or load_tokenizer(options, texts)
        network = _tiny(options, tokenizer)
    else:
        network, tokenizer = _pretrained(options)
    return _to_tune(network, options), tokenizer


def _tiny(options: ModelOptions, tokenizer: Any) -> Any:
    make = tiny_seeing_model if options.base_model in TINY_VISION else tiny_model
    return make(tokenizer, options.width, options.layers, options.heads)


def check_model(options: ModelOptions) -> None:
    """Raise PluginError where `build_model` would, as far as it shows without weights; nothing is fetched for it."""
    require_card(options)
    place = None if options.tiny else place_of(options.base_model)
    if place is not None and not place.is_here(options.revision):
        if not options.download:
            raise PluginError(
                f"base_model '{options.base_model}' can't be loaded. {not_here(options.base_model)}",
                code="missing-file",
            )
        return
    if options.tuning == "full" or options.target_modules == "all-linear":
        return
    with torch.device("meta"):
        if place is None:
            network = _tiny(options, load_tokenizer(options, []))
        else:
            config = _config(replace(options, download=False))
            network = _kind(config).from_config(config, trust_remote_code=options.trust_remote_code)
    _require_modules(network, options)


def require_card(options: ModelOptions) -> None:
    """Raise PluginError where 4 bits or flash attention are asked for and there is no card to compute with them."""
    flash = options.attention == "flash_attention_2"
    if (options.quantize != "none" or flash) and not torch.cuda.is_available():
        said = f"attention is {options.attention}" if flash else f"quantize is {options.quantize}"
        raise PluginError(
            f"{said}, which needs an NVIDIA card, and torch finds none here. Take it out, or "
            "let the job run where there is one, with `device: cuda`.",
            code="conflicting-keys",
        )


def loading(options: ModelOptions) -> dict[str, Any]:
    """What `from_pretrained` is told besides. 4 bits: normal floats, constants quantized too (Dettmers et al. 2023)."""
    given: dict[str, Any] = {} if options.device_map is None else {"device_map": options.device_map}
    if options.quantize == "none":
        return given
    from transformers import BitsAndBytesConfig

    given.setdefault("device_map", {"": 0})
    given["quantization_config"] = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if options.bf16 else torch.float32,
    )
    return given


def made_ready(network: Any, options: ModelOptions) -> Any:
    """A network in 4 bits that adapters can be put into, with norms in 32 bits; another one as it is."""
    if options.quantize == "none":
        return network
    from peft import prepare_model_for_kbit_training

    return prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)


def _require_modules(network: Any, options: ModelOptions) -> None:
    """peft is content if one of `target_modules` is there, and then tunes less than was asked for."""
    wanted = options.target_modules
    if wanted == "all-linear":
        return
    linear = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)]
    known = sorted({name.rpartition(".")[2] for name in linear})
    every = [name for name, _ in network.named_modules()]
    if isinstance(wanted, str):
        missing = [] if any(re.fullmatch(wanted, name) for name in every) else [wanted]
    else:
        missing = [one for one in wanted if not any(name == one or name.endswith(f".{one}") for name in every)]
    if missing:
        raise PluginError(
            f"target_modules names {', '.join(map(repr, missing))}, which base_model '{options.base_model}' lacks."
            f"{closest(str(missing[0]), known)} Its linear layers are: {', '.join(known)}.",
            code="invalid-choice",
        )


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
    """(network, tokenizer) as `save_model` has written them."""
    from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

    network: Any
    kind: Any = PreTrainedTokenizerFast if options.tiny else AutoTokenizer
    trust = {"trust_remote_code": options.trust_remote_code}
    tokenizer = kind.from_pretrained(folder / "tokenizer", **trust)
    if (folder / "model").is_dir():
        kind = _kind(AutoConfig.from_pretrained(folder / "model", **trust))
        network = kind.from_pretrained(folder / "model", dtype=options.dtype, **trust, **loading(options))
    else:
        network, _ = _pretrained(options)
    return _to_tune(network, options, folder / "adapter"), tokenizer


def _to_tune(network: Any, options: ModelOptions, kept: Path | None = None) -> Any:
    """A base model with what is tuned of it. kept: the folder of the adapter, without which there is a new one."""
    try:
        if options.attention is not None:
            network.set_attn_implementation(options.attention)
    except (ImportError, ValueError) as error:
        why = f"which base_model '{options.base_model}' can't: {' '.join(str(error).split())}"
        raise PluginError(f"attention is {options.attention}, {why}", code="refused-arguments") from error
    if options.tuning != "full":
        from peft import PeftModel, get_peft_model

        if kept is None:
            _require_modules(network, options)
            network = get_peft_model(made_ready(network, options), adapter(network, options))
        else:
            ready, config = made_ready(network, options), adapter(network, options)
            network = PeftModel.from_pretrained(ready, kept, is_trainable=True, config=config)
            if (kept / SEEN).is_file():
                network.load_state_dict(torch.load(kept / SEEN, weights_only=True), strict=False)
    set_tuned(network, **options.seeing)
    return network


def recompute_activations(network: Any) -> None:
    """In the backward pass, instead of keeping them; under the name that the installed transformers has for it."""
    if hasattr(network, "activation_checkpointing_enable"):
        network.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def adapter(network: Any, options: ModelOptions) -> Any:
    """The configuration that `peft` makes one of, for this network."""
    from peft import LoraConfig

    modules, sees = options.target_modules, any(TOWER in name for name, _ in network.named_modules())
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_r,
        lora_alpha=options.lora_alpha,  # type: ignore[arg-type]
        lora_dropout=options.lora_dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
        exclude_modules=rf".*({TOWER}|{PROJECTOR})\..*" if sees else None,  # the language part alone
    )
    if options.tuning == "moelora":
        from ianvs.testalgorithms.language.experts import with_experts

        config = with_experts(config, options.experts)
    return config


def _pretrained(options: ModelOptions) -> tuple[Any, Any]:
    """(network, tokenizer) from a folder, a GGUF file or the Hugging Face cache; from the hub by `download`."""
    from transformers import AutoTokenizer

    place = place_of(options.base_model)
    given = _given(options)
    kind = _kind(None if place.gguf else _config(options))
    with _told(options):
        tokenizer = AutoTokenizer.from_pretrained(place.name, **given)
        network = kind.from_pretrained(place.name, dtype=options.dtype, **given, **loading(options))
    if place.gguf is not None:  # its numbers are plain ones by now, and shall be saved and loaded as such
        for of, name in ((network.config, "quantization_config"), (network, "hf_quantizer"), (network, "is_quantized")):
            vars(of).pop(name, None)
    return network, tokenizer


def load_tokenizer(options: ModelOptions, texts: Iterable[str]) -> Any:
    """That of the base model alone, as `build_model` has it; None for one that is not on this machine yet."""
    if options.tiny:
        if options.base_model not in TINY_VISION:
            return tiny_tokenizer(texts, options.vocabulary)
        words = [text for word in WORDS.split() for text in (word, f" {word}")]
        return tiny_tokenizer([text.replace(MARK, "") for text in [*texts, *words, *words]], options.vocabulary, [MARK])
    if not place_of(options.base_model).is_here(options.revision):
        return None
    with _told(options):
        return _tokenizer(place_of(options.base_model).name, **_given(options))


@lru_cache(maxsize=4)
def _tokenizer(name: str, **given: Any) -> Any:
    """Read once for all methods that are checked, which takes a while from a GGUF file."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name, **given)


def sight_of(options: ModelOptions, tokenizer: Any) -> Sight | None:
    """How the model sees; None for one that does not, and for one that is not on this machine yet."""
    if options.base_model in TINY_VISION:
        with torch.device("meta"):
            return Sight.of(_tiny(options, tokenizer).config, tiny_processor())
    if options.tiny or not (options.download or place_of(options.base_model).is_here(options.revision)):
        return None
    config = _config(options)
    if config.model_type not in KINDS:
        return None
    from transformers import AutoProcessor

    with _told(options):
        processor = AutoProcessor.from_pretrained(place_of(options.base_model).name, **_given(options))
    if not getattr(tokenizer, "chat_template", None):
        tokenizer.chat_template = getattr(processor, "chat_template", None)
    return Sight.of(config, processor.image_processor)


def _config(options: ModelOptions) -> Any:
    from transformers import AutoConfig

    with _told(options):
        return AutoConfig.from_pretrained(place_of(options.base_model).name, **_given(options))


def _kind(config: Any) -> Any:
    """The class that loads a model with this configuration."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    return AutoModelForImageTextToText if getattr(config, "model_type", "") in KINDS else AutoModelForCausalLM


def _given(options: ModelOptions) -> dict[str, Any]:
    """What `from_pretrained` of a model and of its tokenizer are told."""
    given: dict[str, Any] = {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}
    return given | {"local_files_only": not options.download, **place_of(options.base_model).given}


@contextmanager
def _told(options: ModelOptions) -> Iterator[None]:
    """What transformers raises of a model that can't be read, as a PluginError that names it."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())
        if not options.download and not place_of(options.base_model).local and isinstance(error, OSError):
            why = not_here(options.base_model)
        raise PluginError(
            f"base_model '{options.base_model}' can't be loaded. {why}", code="unreadable-file"
        ) from error


def _plain(network: Any) -> Any:
    """The base model as it was before adapters were put into it; the network that has them is not changed."""
    base = network.get_base_model()
    plain = type(base)(base.config)
    weights = {name: tensor for name, tensor in base.state_dict().items() if "lora_" not in name}
    plain.load_state_dict({name.replace(".base_layer", ""): tensor for name, tensor in weights.items()})
    return plain
