"""Replies that others write for a learner: what they need of its weights, and which learners have to do without."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from ianvs.base.errors import PluginError
from ianvs.plugins.contract import Adapter
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.model_places import place_of


def require_servable(options: ModelOptions, server: Mapping[str, str], *, sees: bool, why_not: str) -> None:
    """Raise PluginError unless that server can write the replies of such a learner.

    server: as ianvs.plugins.contract.EXAM_FACTS has it. why_not: what of the method no server can do; "" for nothing.
    """
    named, place = f"base_model '{options.base_model}'", None if options.tiny else place_of(options.base_model)
    said, remedy = why_not, ""
    if options.tuning != "lora":
        said = f"tuning is '{options.tuning}', and a server puts plain adapters on the model that it has loaded"
        remedy = "Set tuning: lora, or take"
    elif place is None:
        said = f"{named} is made for each case, so no server has loaded it"
    elif place.gguf is not None:
        said = f"{named} is a GGUF file, to which no adapters are loaded while a server runs"
    elif sees:
        said = f"{named} sees, and a server is sent prompts without pictures"
    elif not _is_served(place.name, server):
        said = f"{named} is not what the server at {server['url']} has loaded, '{server['root']}'"
        remedy = f"Start it with `vllm serve {place.name} --enable-lora`, or take"
    if said:
        raise PluginError(
            f"{said}: it can't write these replies. {remedy or 'Take'} `generation` out of the job.",
            code="refused-arguments",
        )


def _is_served(name: str, server: Mapping[str, str]) -> bool:
    folder, root = Path(name), Path(server["root"])
    if folder.is_dir() and root.is_dir():
        return folder.samefile(root)
    return name in (server["root"], server["name"])


def adapter_of(network: Any, options: ModelOptions) -> Adapter:
    """The adapter in `network`, as a server reads it."""
    from peft import get_peft_model_state_dict
    from peft.tuners.lora import LoraLayer
    from safetensors.torch import save

    tensors = get_peft_model_state_dict(network, save_embedding_layers=False)
    layers = {name.rpartition(".")[2] for name, module in network.named_modules() if isinstance(module, LoraLayer)}
    held = save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, {"format": "pt"})
    return Adapter(options.lora_r, options.lora_alpha, sorted(layers), held)


def digest_of_weights(network: Any, options: ModelOptions) -> str:
    """Of all that is not the base model as it was published, and of where it computes."""
    sha, tuned = blake2b(digest_size=16), {name for name, one in network.named_parameters() if one.requires_grad}
    for name, tensor in network.state_dict().items():
        if options.tiny or options.tuning == "full" or "lora_" in name or name in tuned:
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return f"{next(iter(network.parameters())).device.type} {sha.hexdigest()}"
