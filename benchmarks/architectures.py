"""Writes reports/language_architectures.md: which kinds of language models can be tuned, tried with tiny ones of each.

    python benchmarks/architectures.py [KIND ...]

Each is made by transformers from its configuration, written as a folder, and goes through what a job does: the check
of validate, two rounds with LoRA and two of full tuning, replies in batches of 8 and of 1, saving and loading. A column
is "yes", a word for what was refused, or the error.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, logging

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for tests.unit

from ianvs.base.errors import PluginError  # noqa: E402
from ianvs.testalgorithms.language import LanguageLearner  # noqa: E402
from ianvs.testalgorithms.language.tiny import tiny_tokenizer  # noqa: E402
from tests.unit.testalgorithms.seeing_folders import TOKENS, write_seeing  # noqa: E402

PAGE = ROOT / "reports" / "language_architectures.md"
SIZES = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
KINDS: dict[str, dict[str, Any]] = {
    "llama": SIZES,
    "mistral": SIZES,
    "qwen2": SIZES,
    "qwen3": {**SIZES, "head_dim": 8},
    "gemma": {**SIZES, "head_dim": 8},
    "gemma2": {**SIZES, "head_dim": 8},
    "phi": SIZES,
    "phi3": SIZES,
    "olmo2": SIZES,
    "granite": SIZES,
    "cohere": SIZES,
    "stablelm": SIZES,
    "starcoder2": SIZES,
    "smollm3": SIZES,
    "glm": {**SIZES, "head_dim": 8},
    "gpt2": GPT,
    "gptj": {**GPT, "rotary_dim": 4},
    "gpt_neox": SIZES,
    "gpt_bigcode": GPT,
    "opt": {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
            "word_embed_proj_dim": 32},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "mixtral": {**SIZES, "num_local_experts": 4},
    "qwen2_moe": {**SIZES, **MOE, "shared_expert_intermediate_size": 32},
    "qwen3_moe": {**SIZES, **MOE, "head_dim": 8},
    "olmoe": {**SIZES, "num_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": {**SIZES, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "rwkv": {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    "bert": {name: size for name, size in SIZES.items() if name != "num_key_value_heads"},
    "t5": T5,
    "mt5": T5,
    "bart": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48},
}  # fmt: skip
OPTIONS = {"lora_r": 2, "lora_alpha": 4, "max_new_tokens": 6, "batch_size": 3, "epochs": 2}
HEAD = """# Kinds of language models

Written by `python benchmarks/architectures.py` with transformers {transformers} and peft {peft}: a tiny model of each
kind, made by transformers from its configuration and written as a folder, went through what a job does. LoRA, full: two
rounds of tuning (`target_modules: all-linear`), of the last four kinds on conversations with pictures. Replies: those
of batches of 8 and of 1 are equal. Save, load: one that was saved and loaded learns a third round to the same bits.
Under an adapter: the share of all weights. A cell that is no "yes" has the reason, as `validate` says it before
anything is trained.

| `model_type` | LoRA | full | replies | save, load | under an adapter |
|---|---|---|---|---|---|
"""


class Talks:
    """Data of a round as the benchmark hands them; of a model that sees, with pictures of several sizes."""

    def __init__(self, number: int, seeing: bool = False) -> None:
        said = [("Who is mayor?", f"Ada {number}"), (f"Who won the cup of {number}, and where?", "Red Foxes")]
        said += [("What does bread cost?", "two cents"), ("Where was the fair?", "Old Fjord")]
        self.x = [{"id": str(i), "system": None, "user": [asked]} for i, (asked, _) in enumerate(said)]
        self.y = [[reply] for _, reply in said]
        for i, one in enumerate(self.x if seeing else ()):
            size = (20 + 12 * i, 24 + 8 * number, 3)
            one["user"] = [f"<image>\n{one['user'][0]}"]
            one["pictures"] = [np.random.default_rng([number, i]).integers(0, 256, size, dtype=np.uint8)]

    def __len__(self) -> int:
        return len(self.x)


def write(folder: Path, kind: str) -> None:
    """A tiny model of this kind with its tokenizer."""
    if kind in TOKENS:
        write_seeing(folder, kind)
        return
    tokenizer = tiny_tokenizer(["Who is mayor? Ada. Red Foxes."], 300)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    config = AutoConfig.for_model(kind, **{"vocab_size": len(tokenizer), **ends, **KINDS[kind]})
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    auto.from_config(config).save_pretrained(folder)


def tried(call: Callable[[], str]) -> str:
    try:
        return call()
    except PluginError as error:
        return str(error).replace("|", "/")


def tuned(folder: Path, **options: Any) -> LanguageLearner:
    learner = LanguageLearner(base_model=str(folder), **OPTIONS, **options)
    learner.check_exam()
    for k in (1, 2):
        learner.train(data_of(learner, k), None, round=k)
    return learner


def data_of(learner: LanguageLearner, number: int) -> Talks:
    return Talks(number, Path(learner.options.base_model, "preprocessor_config.json").is_file())


def row(kind: str, folder: Path) -> str:
    """A line of the table."""
    write(folder, kind)
    found: dict[str, LanguageLearner] = {}

    def of(tuning: str) -> str:
        try:
            found[tuning] = tuned(folder, tuning=tuning)
        except PluginError as error:
            if "generation_batch: 1" not in str(error):
                raise
            found[tuning] = tuned(folder, tuning=tuning, generation_batch=1)
        return "yes"

    cells = [tried(lambda tuning=tuning: of(tuning)) for tuning in ("lora", "full")]
    why = next((cell for cell in cells if cell != "yes"), "")
    if not found:
        return f"| `{kind}` | {why} | no | no | no | |"
    learner = found.get("lora") or found["full"]
    if learner.replying.batch_size == 1:
        replies = "with `generation_batch: 1`"
    else:
        several = learner.predict(data_of(learner, 2))
        one = LanguageLearner(base_model=str(folder), **OPTIONS, tuning=learner.options.tuning, generation_batch=1)
        one.load(learner.save(folder / "replying"))
        replies = "yes" if one.predict(data_of(one, 2)) == several else "differ"
    share = learner.remark.partition(" weights")[0] if "lora" in found else ""
    kept = "yes" if all(goes_on(one, folder) for one in found.values()) else "differ"
    return f"| `{kind}` | {' | '.join(cells)} | {replies} | {kept} | {share} |"


def goes_on(learner: LanguageLearner, folder: Path) -> bool:
    """Whether a learner that is saved and loaded learns the same."""
    batch = learner.replying.batch_size
    again = LanguageLearner(base_model=str(folder), **OPTIONS, tuning=learner.options.tuning, generation_batch=batch)
    again.load(learner.save(folder / f"kept-{learner.options.tuning}"))
    for one in (learner, again):
        one.train(data_of(one, 3), None, round=3)
    left, right = learner.network.state_dict(), again.network.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def main(kinds: list[str]) -> None:
    import peft
    import transformers

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rows = []
    for kind in kinds or [*KINDS, *TOKENS]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(row(kind, Path(folder)).replace(folder, "FOLDER"))
            except Exception as error:
                rows.append(f"| `{kind}` | {type(error).__name__}: {' '.join(str(error).split())[:200]} | | | | |")
        print(rows[-1], flush=True)
    if not kinds:
        PAGE.write_text(
            HEAD.format(transformers=transformers.__version__, peft=peft.__version__) + "\n".join(rows) + "\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
