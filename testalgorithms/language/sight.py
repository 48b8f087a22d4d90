"""How a model in the manner of LLaVA (Liu et al. 2023) sees: patches in the place of marks, a tower, a projector."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError
from ianvs.base.kept_pictures import MARK, Picture

KINDS = ("llava", "vipllava")  # of transformers' configurations: K = (S / patch)^2 tokens for each picture
TOWER, PROJECTOR = "vision_tower", "multi_modal_projector"
WORDS = """
What Which Where Who How many Is Are is are it this that there they in the a an of on or and with has lie Answer Choose
Name picture question choice letter number name word box yes no one two three four left right top bottom corner
northwest northeast southwest southeast colour red green blue yellow black white shape square disc circle triangle cross
object A B C D 0 1 2 3 4 5 6 7 8 9 10 11 12
"""
"""A tokenizer of a base model knows them before it is tuned: the tiny one's is made from them and the first round."""
_KEPT = 1 << 28  # bytes of pictures that are kept as the model takes them, so that a further pass costs nothing


@dataclass(frozen=True)
class Sight:
    """processor: makes (P, 3, S, S) float32 of pictures. token: its id stands `patches` times for each of them."""

    processor: Any
    side: int
    patches: int
    token: int
    _known: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, config: Any, processor: Any) -> "Sight":
        """That of a model with this configuration."""
        side, patch = config.vision_config.image_size, config.vision_config.patch_size
        patches = (side // patch) ** 2 + (config.vision_feature_select_strategy == "full")
        return cls(processor, side, patches, config.image_token_id)

    def pixels(self, pictures: Sequence[Any]) -> Tensor:
        """(P, 3, S, S) float32, in the order of the pictures; each is uint8 (H, W, 3), or a `Picture`."""
        if not pictures:
            return torch.zeros(0, 3, self.side, self.side)
        asked = [Picture.of(one) for one in pictures]
        seen = {one.sha256: self._known[one.sha256] for one in asked if one.sha256 in self._known}
        new = self._seen({one.sha256: one for one in asked if one.sha256 not in seen})
        seen |= new
        if (len(self._known) + len(new)) * seen[asked[0].sha256].nbytes > _KEPT:
            self._known.clear()
        self._known.update(new)
        return torch.stack([seen[one.sha256] for one in asked])

    def _seen(self, pictures: Mapping[str, Picture]) -> dict[str, Tensor]:
        if not pictures:
            return {}
        made = self.processor(images=[one.pixels for one in pictures.values()])["pixel_values"]
        found = [torch.as_tensor(one).float() for one in made]
        for one in found:
            if one.shape != (3, self.side, self.side):
                raise PluginError(
                    f"the processor of the base model makes {tuple(one.shape)} of a picture; its tower takes "
                    f"{(3, self.side, self.side)}.",
                    code="refused-arguments",
                )
        return dict(zip(pictures, found, strict=True))

    def spans(self, tokens: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Where the tokens of each picture begin and end."""
        places = [i for i, token in enumerate(tokens) if token == self.token]
        return tuple((start, start + self.patches) for start in places[:: self.patches])


def tiny_processor() -> Any:
    """That of the tiny model: pictures of 32 x 32 pixels, normalised as CLIP's (Radford et al. 2021)."""
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})


def tiny_seeing_model(tokenizer: Any, width: int, layers: int, heads: int) -> Any:
    """An untrained LLaVA: a tower of CLIP (width 64, 2 layers, 4 x 4 patches), a projector, `tiny_model`.

    Matrices and embeddings behind the tower are drawn with a deviation of 1 / sqrt(width), positions of patches with
    .6, about as large as what is in a patch: with CLIP's and Llama's .02, meant for nets that are many times as wide,
    hundreds of steps pass before a picture, or where it shows something, makes a difference.
    """
    from transformers import CLIPVisionConfig, LlavaConfig, LlavaForConditionalGeneration

    from ianvs.testalgorithms.language.tiny import tiny_config

    tower = CLIPVisionConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        projection_dim=64,
    )
    decoder = tiny_config(tokenizer, width, layers, heads)
    decoder.initializer_range = width**-0.5
    config = LlavaConfig(
        vision_config=tower,
        text_config=decoder,
        image_token_index=tokenizer.convert_tokens_to_ids(MARK),
        vision_feature_layer=-1,
        tie_word_embeddings=True,
    )
    network = LlavaForConditionalGeneration(config)
    for name, weight in network.named_parameters():
        if name.endswith("position_embedding.weight"):
            torch.nn.init.normal_(weight, std=0.6)
    return network


def is_projector(name: str) -> bool:
    """Whether a weight of that name is one of a projector, and of no adapter in it."""
    return PROJECTOR in name and "lora_" not in name


def set_tuned(network: Any, *, projector: bool, vision: bool) -> None:
    """Freeze what is not tuned of tower and projector, and let the rest of them learn; others stay as they are."""
    for name, weight in network.named_parameters():
        if "lora_" not in name and (TOWER in name or PROJECTOR in name):
            weight.requires_grad_(vision if TOWER in name else projector)


def beside_adapter(network: Any, *, projector: bool, vision: bool) -> dict[str, Tensor]:
    """Weights that may have learnt and are not the adapter's."""
    parts = [PROJECTOR] * projector + [TOWER] * vision
    return {n: p for n, p in network.state_dict().items() if "lora_" not in n and any(part in n for part in parts)}


# What methods keep of pictures between rounds: files by their digests, which are written once for all that name them.


def shelved(state: Any, folder: Path) -> Any:
    """`state` with the name of a file in `folder` in the place of each picture in it; the files are written."""
    if isinstance(state, Picture):
        folder.mkdir(exist_ok=True)
        (folder / state.sha256).write_bytes(state.held)
        return {"picture": state.sha256}
    if isinstance(state, dict):
        return {key: shelved(value, folder) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(shelved(value, folder) for value in state)
    return state


def unshelved(state: Any, folder: Path) -> Any:
    """What `shelved` was given; the pictures are in memory, as they were written."""
    if isinstance(state, dict):
        if state.keys() == {"picture"}:
            return Picture((folder / state["picture"]).read_bytes(), None, state["picture"])
        return {key: unshelved(value, folder) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(unshelved(value, folder) for value in state)
    return state


def require_sight(conversations: Iterable[Any], sight: Sight | None, base_model: str) -> None:
    """Raise PluginError where there are pictures, and a model that can't see them."""
    if sight is None and any(conversation.pictures for conversation in conversations):
        raise PluginError(
            f"base_model '{base_model}' can't see the pictures of these conversations. Take one that can (tiny-vision, "
            "or a LLaVA), or leave them out by `pictures: ignore` in the dataset.",
            code="refused-arguments",
        )
