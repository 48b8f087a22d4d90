"""Folders of tiny models that see, as transformers writes them: Qwen2-VL, Qwen2.5-VL, Idefics3 and SmolVLM."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForImageTextToText

from ianvs.testalgorithms.language.tiny import tiny_tokenizer

TEXT = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 512,
}  # fmt: skip
TOKENS = {
    "qwen2_vl": ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"],
    "smolvlm": [
        "<fake_token_around_image>", "<global-img>", "<image>",
        *(f"<row_{1 + i // 2}_col_{1 + i % 2}>" for i in range(4)),
    ],
}  # fmt: skip
TEMPLATES = {
    "qwen2_vl": (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}"
        "{% else %}{% for c in m['content'] %}{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
        "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    "smolvlm": (
        "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize }}"
        "{{ ':' if m['content'][0]['type'] == 'image' else ': ' }}{% for c in m['content'] %}"
        "{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}<image>{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}Assistant:{% endif %}"
    ),
}
TOKENS["qwen2_5_vl"], TOKENS["idefics3"] = TOKENS["qwen2_vl"], TOKENS["smolvlm"]
TEMPLATES["qwen2_5_vl"], TEMPLATES["idefics3"] = TEMPLATES["qwen2_vl"], TEMPLATES["smolvlm"]


def write_seeing(folder: Path, kind: str) -> None:
    """A tiny model of this kind as transformers writes it, with tokenizer and image processor."""
    marks = ["<|im_start|>", "<|im_end|>", *TOKENS[kind]]
    tokenizer = tiny_tokenizer(["What is this? And this? red blue green nobody user assistant Who"], 400, marks)
    tokenizer.chat_template = TEMPLATES[kind]
    ids = dict(zip(marks, tokenizer.convert_tokens_to_ids(marks), strict=True))
    text = {**TEXT, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    text["eos_token_id"] = tokenizer.eos_token_id
    if kind.startswith("qwen"):
        text |= {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e4}}
        vision: dict[str, Any] = {"depth": 1, "patch_size": 8, "num_heads": 2, "spatial_merge_size": 2}
        vision |= (
            {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}
            if kind == "qwen2_vl"
            else {"hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 48, "fullatt_block_indexes": [0]}
        )
        more = {
            "image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"],
            "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
        }  # fmt: skip
        size = {"shortest_edge": 16 * 16, "longest_edge": 16 * 16 * 8}
        pictures = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 8, "size": size}
    else:
        text = {**text, "model_type": "llama"}
        vision = {
            "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 32, "patch_size": 8,
        }  # fmt: skip
        more = {"image_token_id": ids["<image>"], "scale_factor": 2, "pad_token_id": tokenizer.pad_token_id}
        name = "SmolVLMImageProcessor" if kind == "smolvlm" else "Idefics3ImageProcessor"
        tiles = {"size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}}
        pictures = {"image_processor_type": name, **tiles}
    config = AutoConfig.for_model(kind, text_config=text, vision_config=vision, tie_word_embeddings=False, **more)
    torch.manual_seed(0)
    AutoModelForImageTextToText.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
