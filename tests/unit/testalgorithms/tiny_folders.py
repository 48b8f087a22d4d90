"""Folders of tiny models in the layout in which they are published, made by transformers itself."""

import torch
from transformers import AutoModelForCausalLM

from ianvs.testalgorithms.language.tiny import tiny_tokenizer

TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


def write(path, config, kind=AutoModelForCausalLM, **saving):
    """The folder of a model of this configuration, which is a class and its arguments, and of a small tokenizer."""
    make, arguments = config
    tokenizer = tiny_tokenizer(["Who is mayor? Ada Berg. It is 2022."], 300)
    tokenizer.chat_template = TEMPLATE
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = kind.from_config(make(**{"vocab_size": len(tokenizer), **ends, **arguments}))
    network.save_pretrained(path, **saving)
    tokenizer.save_pretrained(path)
    return path
