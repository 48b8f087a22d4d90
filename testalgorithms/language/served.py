"""Replies that others write for a learner: what they need of its weights, and which learners can't use them."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from ianvs.base.errors import PluginError
from ianvs.plugins.contract import Adapter, Generation
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Encoded
from ianvs.testalgorithms.language.generation import Own, Replying, Written
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.model_places import place_of
from ianvs.testalgorithms.language.pretrained import config_of
from ianvs.testalgorithms.language.sight import KINDS


def written_by(
    generation: Generation | None, network: Any, template: ChatTemplate, options: ModelOptions, replying: Replying
) -> Written | None:
    """Replies by the present weights, from wherever the job wants them; None: the network writes them all.

    So it does of a model that sees, since tokens do not say which image a prompt shows, and where tokens are drawn or
    texts end a reply: what is kept and served is greedy.
    """
    if generation is None or template.sight is not None or replying.temperature or replying.stops:
        return None
    weights_digest = "" if generation.engine == "server" else digest_of_weights(network, options)

    def written(prompts: Sequence[Encoded], generate: Own) -> list[list[int]]:
        return generation(
            [prompt.tokens for prompt in prompts],
            stops=template.stops,
            max_tokens=replying.max_new_tokens,
            weights_digest=weights_digest,
            adapter=lambda: adapter_of(network, options),
            generate=generate,
        )

    return written


def require_servable(
    options: ModelOptions, server: Mapping[str, str], replying: Replying, *, sees: bool, why_not: str
) -> None:
    """Raise PluginError unless that server can write the replies of such a learner.

    server: as ianvs.plugins.contract.EXAM_FACTS has it. why_not: what of the method no server can do; "" for nothing.
    """
    named, place = f"base_model '{options.base_model}'", None if options.tiny else place_of(options.base_model)
    problem, remedy = why_not, ""
    if options.tuning != "lora":
        problem = f"tuning is '{options.tuning}', and a server puts plain adapters on the model that it has loaded"
        remedy = "Set tuning: lora, or take"
    elif place is None:
        problem = f"{named} is made for each case, so no server has loaded it"
    elif place.gguf is not None:
        problem = f"{named} is a GGUF file, to which no adapters are loaded while a server runs"
    elif options.use_dora or options.target_parameters:
        problem = "a server takes plain adapters of layers, without use_dora and target_parameters"
    elif replying.temperature or replying.stops:
        problem = "a server generates greedy replies, without temperature and stop_strings"
    elif sees:
        problem = f"{named} takes images, and a server gets prompts without images"
    elif not _is_served(place.name, server):
        problem = f"{named} is not what the server at {server['url']} has loaded, '{server['root']}'"
        remedy = f"Start it with `vllm serve {place.name} --enable-lora`, or take"
    if problem:
        raise PluginError(
            f"{problem}: it can't write these replies. {remedy or 'Take'} `generation` out of the job.",
            code="refused-arguments",
        )


def sees_pictures(options: ModelOptions) -> bool:
    """Return whether the base model does; no for one that is not on this machine yet."""
    is_there = not options.tiny and place_of(options.base_model).is_here(options.revision)
    return is_there and config_of(options).model_type in KINDS


def _is_served(name: str, server: Mapping[str, str]) -> bool:
    folder, root = Path(name), Path(server["root"])
    if folder.is_dir() and root.is_dir():
        return folder.samefile(root)
    return name in (server["root"], server["name"])


def adapter_of(network: Any, options: ModelOptions) -> Adapter:
    """Return the adapter in `network`, as a server reads it."""
    from peft import get_peft_model_state_dict
    from peft.tuners.lora import LoraLayer
    from safetensors.torch import save

    tensors = get_peft_model_state_dict(network, save_embedding_layers=False)
    layers = {name.rpartition(".")[2] for name, module in network.named_modules() if isinstance(module, LoraLayer)}
    held = save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, {"format": "pt"})
    alpha = options.lora_alpha * (options.lora_r**0.5 if options.use_rslora else 1)  # a server divides by the rank
    return Adapter(options.lora_r, alpha, sorted(layers), held)


def digest_of_weights(network: Any, options: ModelOptions) -> str:
    """Return the digest of everything that differs from the published base model, and of the device."""
    sha, tuned = (
        blake2b(digest_size=16),
        {name for name, parameter in network.named_parameters() if parameter.requires_grad},
    )
    for name, tensor in network.state_dict().items():
        if options.tiny or options.tuning == "full" or "lora_" in name or name in tuned:
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return f"{next(iter(network.parameters())).device.type} {sha.hexdigest()}"
