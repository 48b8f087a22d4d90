"""Published base models: their configuration, tokenizer and weights."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ianvs.base.errors import PluginError, one_line
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.model_places import not_here, place_of
from ianvs.testalgorithms.language.sight import KINDS

_SHOWN = 4  # of the names of weights that are missing


def load_pretrained(options: ModelOptions, **given: Any) -> tuple[Any, Any]:
    """Return the network and its tokenizer, from a folder, a GGUF file or the Hugging Face cache; from the hub by
    `download`.

    Where `base_model` is the folder of an adapter, it is merged into the model that it was made for.

    Args:
        options: Which model, and how it is loaded.
        given: Further arguments of `from_pretrained`, such as `device_map="meta"`.

    Raises:
        PluginError: The model can't be read, or some of its weights are missing or of another shape.
    """
    place = place_of(options.base_model)
    if place.adapter is not None:
        network, tokenizer = load_pretrained(replace(options, base_model=place.adapter), **given)
        return _merged(network, options), _own_tokenizer(options) or tokenizer
    arguments = loading(options) | arguments_of(options) | given
    with readable(options):
        network, facts = model_class(None if place.gguf else config_of(options)).from_pretrained(
            place.name, dtype=options.dtype, output_loading_info=True, **arguments
        )
        tokenizer = read_tokenizer(options)
    require_whole(facts, f"base_model '{options.base_model}'")
    if place.gguf is not None:  # its numbers are plain ones by now, and shall be saved and loaded as such
        for holder, name in (
            (network.config, "quantization_config"),
            (network, "hf_quantizer"),
            (network, "is_quantized"),
        ):
            vars(holder).pop(name, None)
    return network, tokenizer


def require_whole(facts: Any, title: str) -> None:
    """Refuse weights that transformers would draw at random, since the files lack them.

    Args:
        facts: The loading info of `from_pretrained`; tied weights are not among those that it calls missing.
        title: The model, for the message.

    Raises:
        PluginError: Weights are missing, or of another shape than the configuration says.
    """
    shapes = {str(name[0] if isinstance(name, tuple | list) else name) for name in facts["mismatched_keys"]}
    absent = sorted({*facts["missing_keys"], *shapes})
    if absent:
        title += f" has no fitting tensor for {len(absent)} of its weights, which would be drawn at random"
        raise PluginError(
            f"{title}: {one_line(absent, _SHOWN)}. Fetch its files again; a model that was saved without its head, or "
            "for another task, is no language model.",
            code="unreadable-file",
        )


def loading(options: ModelOptions) -> dict[str, Any]:
    """Return further arguments of `from_pretrained`.

    4 bits: normal floats, constants quantized too (Dettmers et al. 2023).
    """
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


def config_of(options: ModelOptions) -> Any:
    """Return the configuration of the base model; of an adapter, that of the model below it."""
    from transformers import AutoConfig

    place = place_of(options.base_model)
    if place.adapter is not None:
        return config_of(replace(options, base_model=place.adapter))
    with readable(options):
        return AutoConfig.from_pretrained(place.name, **arguments_of(options))


def model_class(config: Any) -> Any:
    """Return the class of transformers that loads a model with this configuration.

    Raises:
        PluginError: It sees in a way that is not known here, or hears.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForSeq2SeqLM

    kind = getattr(config, "model_type", "")
    if kind in KINDS:
        return AutoModelForImageTextToText
    if config is None:
        return AutoModelForCausalLM
    if hasattr(config, "vision_config") or hasattr(config, "audio_config"):
        raise PluginError(
            f"the base model has the type '{kind}', which takes images or sound; of these, tunable are: "
            f"{', '.join(KINDS)}. Take one of these, or its language model alone.",
            code="refused-arguments",
        )
    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM
    return AutoModelForCausalLM


def arguments_of(options: ModelOptions) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` for a model and its tokenizer."""
    given: dict[str, Any] = {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}
    return given | {"local_files_only": not options.download, **place_of(options.base_model).given}


def read_tokenizer(options: ModelOptions) -> Any:
    """That of the base model, with the template that the options name."""
    place = place_of(options.base_model)
    if place.adapter is not None:
        return _own_tokenizer(options) or read_tokenizer(replace(options, base_model=place.adapter))
    return _read(options)


def _read(options: ModelOptions) -> Any:
    with readable(options):
        tokenizer = copy(_tokenizer(place_of(options.base_model).name, **arguments_of(options)))
    if options.template is not None:
        tokenizer.chat_template = options.template
    return tokenizer


@lru_cache(maxsize=4)
def _tokenizer(name: str, **given: Any) -> Any:
    """Read once for all methods that are checked, which takes a while from a GGUF file."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name, **given)


def template_of_processor(name: str, given: dict[str, Any]) -> str | None:
    """Return the chat template beside a processor of images, where earlier releases of transformers wrote it."""
    from transformers.utils.hub import cached_file

    where = {key: value for key, value in given.items() if key in ("revision", "local_files_only")}
    file = cached_file(name, "chat_template.json", _raise_exceptions_for_missing_entries=False, **where)
    return None if file is None else json.loads(Path(file).read_text(encoding="utf-8"))["chat_template"]


def _own_tokenizer(options: ModelOptions) -> Any:
    """Return the tokenizer in the folder of an adapter; None where there is none."""
    is_there = (Path(place_of(options.base_model).name) / "tokenizer_config.json").is_file()
    return _read(options) if is_there else None


def _merged(network: Any, options: ModelOptions) -> Any:
    """Return the network with the adapter in the folder `base_model` in its weights."""
    from peft import PeftModel

    with readable(options), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network = PeftModel.from_pretrained(network, place_of(options.base_model).name).merge_and_unload()
    for warning in caught:
        if "missing adapter keys" in str(warning.message):
            raise PluginError(
                f"base_model '{options.base_model}' is an adapter that lacks weights, or of another model. "
                f"{' '.join(str(warning.message).split())[:300]}",
                code="unreadable-file",
            )
    return network


@contextmanager
def readable(options: ModelOptions) -> Iterator[None]:
    """Convert errors of transformers about a model that can't be read to a PluginError that names it."""
    try:
        yield
    except PluginError:
        raise
    except Exception as error:  # of safetensors, of quantizers that lack a package, of a configuration
        why = " ".join(str(error).split()) or type(error).__name__
        if not options.download and not place_of(options.base_model).local and isinstance(error, OSError):
            why = not_here(options.base_model)
        raise PluginError(
            f"base_model '{options.base_model}' can't be loaded. {why}", code="unreadable-file"
        ) from error
