"""A tiny language model in GGUF, the format of llama.cpp: random weights, and letters as tokens."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_WIDTH, _LAYERS, _HEADS, _INNER = 32, 1, 2, 64
_UINT32, _FLOAT32, _STRING, _ARRAY, _INT32 = 4, 6, 8, 9, 5
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_ALIGNMENT = 32


def write_gguf(file: Path) -> None:
    """Version 3 of the format: metadata, a description of each tensor, then their values, at multiples of 32 bytes."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"ABCD"]
    types = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * 4]
    numbers = {
        "context_length": 4096,
        "embedding_length": _WIDTH,
        "block_count": _LAYERS,
        "feed_forward_length": _INNER,
        "attention.head_count": _HEADS,
        "attention.head_count_kv": _HEADS,
        "rope.dimension_count": _WIDTH // _HEADS,
        "vocab_size": len(tokens),
    }
    metadata = [
        _entry("general.architecture", _STRING, _text("llama")),
        *(_entry(f"llama.{key}", _UINT32, struct.pack("<I", number)) for key, number in numbers.items()),
        _entry("llama.attention.layer_norm_rms_epsilon", _FLOAT32, struct.pack("<f", 1e-5)),
        _entry("tokenizer.ggml.model", _STRING, _text("llama")),
        _entry("tokenizer.ggml.tokens", _ARRAY, _array(_STRING, len(tokens)) + b"".join(map(_text, tokens))),
        _entry("tokenizer.ggml.scores", _ARRAY, _array(_FLOAT32, len(tokens)) + bytes(4 * len(tokens))),
        _entry(
            "tokenizer.ggml.token_type", _ARRAY, _array(_INT32, len(types)) + struct.pack(f"<{len(types)}i", *types)
        ),
        _entry("tokenizer.ggml.bos_token_id", _UINT32, struct.pack("<I", 1)),
        _entry("tokenizer.ggml.eos_token_id", _UINT32, struct.pack("<I", 2)),
    ]
    tensors = _tensors(len(tokens))
    described, values = b"", b""
    for name, tensor in tensors.items():
        shape = struct.pack(f"<{tensor.ndim}Q", *reversed(tensor.shape))  # the fastest dimension first
        described += _text(name) + struct.pack("<I", tensor.ndim) + shape + struct.pack("<IQ", 0, len(values))
        values += tensor.tobytes() + bytes(-tensor.nbytes % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata) + described
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + values)


def _tensors(tokens: int) -> Mapping[str, np.ndarray]:
    noise = np.random.default_rng(0)
    shapes = {
        "attn_q": (_WIDTH, _WIDTH),
        "attn_k": (_WIDTH, _WIDTH),
        "attn_v": (_WIDTH, _WIDTH),
        "attn_output": (_WIDTH, _WIDTH),
        "ffn_gate": (_INNER, _WIDTH),
        "ffn_up": (_INNER, _WIDTH),
        "ffn_down": (_WIDTH, _INNER),
    }
    tensors = {name: noise.normal(0, 0.2, (tokens, _WIDTH)) for name in ("token_embd.weight", "output.weight")}
    tensors["output_norm.weight"] = np.ones(_WIDTH)
    for layer in range(_LAYERS):
        tensors |= {f"blk.{layer}.{name}.weight": noise.normal(0, 0.2, shape) for name, shape in shapes.items()}
        tensors |= {f"blk.{layer}.{name}_norm.weight": np.ones(_WIDTH) for name in ("attn", "ffn")}
    return {name: tensor.astype("<f4") for name, tensor in tensors.items()}


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _array(kind: int, length: int) -> bytes:
    return struct.pack("<IQ", kind, length)


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value
