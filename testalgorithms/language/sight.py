"""Vision of models: LLaVA (Liu et al. 2023), Qwen2-VL (Wang et al. 2024), Idefics3, SmolVLM (Marafioti et al. 2025)."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError
from ianvs.base.lazy_images import MARK, Picture

WORDS = """
What Which Where Who How many Is Are is are it this that there they in the a an of on or and with has lie Answer Choose
Name picture question choice letter number name word box yes no one two three four left right top bottom corner
northwest northeast southwest southeast colour red green blue yellow black white shape square disc circle triangle cross
object A B C D 0 1 2 3 4 5 6 7 8 9 10 11 12
"""
"""A tokenizer of a base model knows them before it is tuned: the tiny one's is made from them and the first round."""
_KEPT = 1 << 28  # bytes of images that are kept as the model takes them, so that a further pass costs nothing
_TOWER = re.compile(r"(^|\.)(vision_tower|vision_model|visual)\.")
_PROJECTOR = re.compile(r"(^|\.)(multi_modal_projector|connector|visual\.merger)\.")
SEEING = r".*(vision_tower|vision_model|visual|multi_modal_projector|connector)\..*"
"""A pattern of the modules of towers and projectors, as peft takes it."""


class Sight:
    """How a model sees: in the manner of LLaVA, where each image is (side / patch)^2 tokens.

    Attributes:
        token: Id of the token that stands in the place of pieces of an image.
        mark: Its text. A template writes it once for each image.
        written: What stands for an image in a template that takes texts.
        packs: Whether several conversations may lie in one row.
    """

    packs = True

    def __init__(self, config: Any, processor: Any, tokenizer: Any) -> None:
        """
        Args:
            config: Of the model.
            processor: Of images, of transformers.
            tokenizer: Of the model.
        """
        self.config, self.processor, self.token = config, processor, int(config.image_token_id)
        self.mark: str = tokenizer.convert_ids_to_tokens(self.token)
        self.written = self.mark
        self._prepared: dict[str, dict[str, Tensor]] = {}

    def count(self, picture: Picture) -> int:
        """Return the number of tokens of an image."""
        vision = self.config.vision_config
        patches: int = (vision.image_size // vision.patch_size) ** 2
        return patches + (self.config.vision_feature_select_strategy == "full")

    def text(self, picture: Picture) -> str:
        """Return the text that replaces `mark`."""
        return self.mark * self.count(picture)

    def inputs(self, pictures: Sequence[Sequence[Picture]], tokens: Tensor) -> dict[str, Tensor]:
        """What the network is called with besides tokens; nothing where there is no image.

        Args:
            pictures: Those of each row, in reading order.
            tokens: (B, L) int64.
        """
        if not any(pictures):
            return {}
        return self._joined([[self._made(picture) for picture in row] for row in pictures], tokens)

    def spans(self, tokens: Sequence[int], pictures: Sequence[Picture]) -> tuple[tuple[int, int], ...]:
        """Where the tokens of each image begin and end; there is one more if a token is of no image."""
        places = [i for i, token in enumerate(tokens) if token == self.token]
        spans, at = list[tuple[int, int]](), 0
        for picture in pictures:
            if at == len(places):
                break
            end = at + self.count(picture)
            spans.append((places[at], places[min(end, len(places)) - 1] + 1))
            at = end
        return (*spans, (places[at], places[-1] + 1)) if at < len(places) else tuple(spans)

    def _joined(self, rows: Sequence[Sequence[dict[str, Tensor]]], tokens: Tensor) -> dict[str, Tensor]:
        """Inputs of a batch from those of each image."""
        return {"pixel_values": torch.cat([made["pixel_values"] for row in rows for made in row])}

    def _made(self, picture: Picture) -> dict[str, Tensor]:
        if picture.sha256 not in self._prepared:
            output = self.processor(images=[picture.pixels], return_tensors="pt")
            made = {name: value for name, value in output.items() if isinstance(value, Tensor)}
            made["pixel_values"] = made["pixel_values"].float()
            self._require_fitting(made, picture)
            if (len(self._prepared) + 1) * sum(tensor.nbytes for tensor in made.values()) > _KEPT:
                self._prepared.clear()
            self._prepared[picture.sha256] = made
        return self._prepared[picture.sha256]

    def _require_fitting(self, made: dict[str, Tensor], picture: Picture) -> None:
        """Raise PluginError unless the processor fits this model."""
        side = self.config.vision_config.image_size
        if made["pixel_values"].shape[-3:] != (3, side, side):
            raise PluginError(
                f"the processor of the base model makes {tuple(made['pixel_values'].shape[-3:])} of an image; its "
                f"tower takes {(3, side, side)}.",
                code="refused-arguments",
            )


class GridSight(Sight):
    """Qwen2-VL: as many tokens as an image is large, and positions in two dimensions."""

    packs = False  # positions would have to begin anew in each conversation, in all dimensions

    def __init__(self, config: Any, processor: Any, tokenizer: Any) -> None:
        super().__init__(config, processor, tokenizer)
        ends = (config.vision_start_token_id, config.vision_end_token_id)
        start, end = (tokenizer.convert_ids_to_tokens(token) for token in ends)
        self.written = f"{start}{self.mark}{end}"

    def count(self, picture: Picture) -> int:
        patches: int = self.processor.get_number_of_image_patches(*picture.size)
        merge: int = self.processor.merge_size
        return patches // merge**2

    def _joined(self, rows: Sequence[Sequence[dict[str, Tensor]]], tokens: Tensor) -> dict[str, Tensor]:
        made = [item for row in rows for item in row]
        joined = {name: torch.cat([item[name] for item in made]) for name in ("pixel_values", "image_grid_thw")}
        return {**joined, "mm_token_type_ids": (tokens == self.token).int()}

    def _require_fitting(self, made: dict[str, Tensor], picture: Picture) -> None:
        vision = self.config.vision_config
        theirs = (self.processor.patch_size, self.processor.merge_size)
        if theirs != (vision.patch_size, vision.spatial_merge_size):
            raise PluginError(
                f"the processor of the base model cuts patches of {theirs[0]} pixels and merges {theirs[1]}; its tower "
                f"takes {vision.patch_size} and {vision.spatial_merge_size}.",
                code="refused-arguments",
            )


class TiledSight(Sight):
    """Idefics3 and SmolVLM: an image is cut into tiles, with a small copy of it behind them."""

    def __init__(self, config: Any, processor: Any, tokenizer: Any) -> None:
        super().__init__(config, processor, tokenizer)
        vision = config.vision_config
        self._of_tile = (vision.image_size // vision.patch_size) ** 2 // config.scale_factor**2

    def count(self, picture: Picture) -> int:
        tiles: int = self.processor.get_number_of_image_patches(*picture.size)[0]
        return max(1, tiles) * self._of_tile

    def text(self, picture: Picture) -> str:
        _, rows, columns = self.processor.get_number_of_image_patches(*picture.size)
        start, pieces = "<fake_token_around_image>", self.mark * self._of_tile
        tiles = [
            "".join(f"{start}<row_{row + 1}_col_{column + 1}>{pieces}" for column in range(columns)) + "\n"
            for row in range(rows)
        ]
        whole = f"{start}<global-img>{pieces}{start}"
        return "".join([*tiles, "\n", whole]) if tiles else whole

    def _joined(self, rows: Sequence[Sequence[dict[str, Tensor]]], tokens: Tensor) -> dict[str, Tensor]:
        most = max(sum(item["pixel_values"].shape[1] for item in row) for row in rows)
        joined = {}
        for name in ("pixel_values", "pixel_attention_mask"):
            like = next(item[name] for row in rows for item in row)
            whole = like.new_zeros(len(rows), most, *like.shape[2:])  # rows with fewer tiles end with black ones
            for place, row in zip(whole, rows, strict=True):
                if row:
                    tiles = torch.cat([item[name][0] for item in row])
                    place[: len(tiles)] = tiles
            joined[name] = whole
        return joined


KINDS: dict[str, type[Sight]] = {
    "llava": Sight,
    "vipllava": Sight,
    "qwen2_vl": GridSight,
    "qwen2_5_vl": GridSight,
    "idefics3": TiledSight,
    "smolvlm": TiledSight,
}
"""By `model_type` of transformers' configurations."""


def tiny_processor() -> Any:
    """That of the tiny model: images of 32 x 32 pixels, normalised as CLIP's (Radford et al. 2021)."""
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})


def tiny_seeing_model(tokenizer: Any, width: int, layers: int, heads: int) -> Any:
    """Return an untrained LLaVA: a tower of CLIP (width 64, 2 layers, 4 x 4 patches), a projector, `tiny_model`.

    Matrices and embeddings behind the tower are drawn with a deviation of 1 / sqrt(width), positions of patches with
    .6, about as large as what is in a patch: with CLIP's and Llama's .02, meant for nets that are many times as wide,
    hundreds of steps pass before an image, or where it shows something, makes a difference.
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
    """Return whether a weight of that name is one of a projector, and of no adapter in it."""
    return _PROJECTOR.search(name) is not None and "lora_" not in name


def is_tower(name: str) -> bool:
    """Return whether a weight of that name is one of a tower, and of no adapter in it."""
    return _TOWER.search(name) is not None and _PROJECTOR.search(name) is None and "lora_" not in name


def set_tuned(network: Any, *, projector: bool, vision: bool) -> None:
    """Freeze what is not tuned of tower and projector, and let the rest of them learn; others stay as they are."""
    for name, weight in network.named_parameters():
        if is_tower(name) or is_projector(name):
            weight.requires_grad_(vision if is_tower(name) else projector)


def beside_adapter(network: Any, *, projector: bool, vision: bool) -> dict[str, Tensor]:
    """Return weights that may have learnt and are not the adapter's."""
    weights = network.state_dict().items()
    return {n: p for n, p in weights if (projector and is_projector(n)) or (vision and is_tower(n))}


# What methods keep of images between rounds: files by their digests, which are written once for all that name them.


def shelved(state: Any, folder: Path) -> Any:
    """`state` with the name of a file in `folder` in the place of each image in it; the files are written."""
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
    """What `shelved` was given; the images are in memory, as they were written."""
    if isinstance(state, dict):
        if state.keys() == {"picture"}:
            return Picture((folder / state["picture"]).read_bytes(), None, state["picture"])
        return {key: unshelved(value, folder) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(unshelved(value, folder) for value in state)
    return state


def require_sight(conversations: Iterable[Any], sight: Sight | None, base_model: str, packing: bool) -> None:
    """Raise PluginError where there are images, and a model that can't see them, or not in packed rows."""
    if not any(conversation.pictures for conversation in conversations):
        return
    if sight is None:
        raise PluginError(
            f"base_model '{base_model}' can't process images. Take one that can (tiny-vision, "
            f"or one of the kinds {', '.join(KINDS)}), or leave them out by `pictures: ignore` in the dataset.",
            code="refused-arguments",
        )
    if packing and not sight.packs:
        raise PluginError(
            f"packing is true, and the images of base_model '{base_model}' have positions in two dimensions, which "
            "would run on from one conversation into the next. Set packing: false.",
            code="refused-arguments",
        )
