"""Substitutes for resources that examples of KubeEdge Ianvs expect: weights to download, a GPU, a chat service.

Weights are random, created where a library would download them (older_machine/ianvs_random_weights.py). Any language
model is a tiny one that answers with a letter. Without a GPU, calls of `cuda` are executed on the CPU. A chat through
the package `openai` returns its last message, and nothing is sent. None of these changes a plugin; the table lists what
its code used.
"""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ianvs.base.source_files import regular_files
from ianvs.testenv.ianvs_layouts.tiny_gguf import write_gguf

_MOST = 2_000  # number of python files of an example that are read
_OLDER_MACHINE = Path(__file__).with_name("older_machine")


def source_text(code: Path) -> str:
    """Return all Python below `code`, in one text."""
    files = sorted(regular_files(code, "**/*.py"))[:_MOST]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def stand_ins(text: str, folder: Path, records: Path) -> tuple[dict[str, str], list[str]]:
    """Return (environment variables, descriptions of substitutes) for plugins with this source.

    folder: where substitutes are written. records: where the processes of plugins record which weights were random,
    whether a weight was changed, and what else was substituted.
    """
    records.mkdir(parents=True, exist_ok=True)
    environment = {
        "PYTHONPATH": str(_OLDER_MACHINE),
        "IANVS_RECORDS": str(records),
        "TORCH_HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "huggingface"),
        "YOLO_CONFIG_DIR": str(folder),
        "YOLO_OFFLINE": "true",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # as before torch 2.6
    }
    if "AutoModelForCausalLM" in text:
        environment[TINY_MODEL] = str(folder / "language_model")
        _language_model(folder / "language_model")
    if "llama_cpp" in text:
        environment["IANVS_TINY_GGUF"] = str(folder / "tiny.gguf")
        write_gguf(folder / "tiny.gguf")
    if re.search(_OPENAI, text):
        environment |= dict.fromkeys(_KEY.findall(text), "no-such-key")
    return environment, [note for pattern, note in _OLDER.items() if re.search(pattern, text)]


def checkpoints(algorithms: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    """Write checkpoints where algorithms name missing ones; `initial_model_url` is changed in place.

    A network that loads such a checkpoint keeps its initial weights. Where a hyperparameter `model` names a folder, the
    tiny language model is put there. Returns the names of the files and folders.
    """
    made = []
    for algorithm in algorithms:
        made += _tiny_models(algorithm, folder)
        written = Path(algorithm.get("initial_model_url") or "")
        fits = algorithm["paradigm_type"] == "multiedgeinference" and re.search(r"\.(pth|pt)(\.tar)?$", written.name)
        if fits and not written.exists():
            import torch

            sys.path.insert(0, str(_OLDER_MACHINE))
            try:
                random_weights = import_module("ianvs_random_weights").RandomWeights()
            finally:
                sys.path.remove(str(_OLDER_MACHINE))
            folder.mkdir(parents=True, exist_ok=True)
            torch.save(random_weights, folder / written.name)
            algorithm["initial_model_url"] = str(folder / written.name)
            made.append(written.name)
    return made


def _tiny_models(algorithm: dict[str, Any], folder: Path) -> list[str]:
    """Put the tiny language model where a hyperparameter `model` names a folder of the checkout that is not there."""
    made = []
    grids = [grid for module in algorithm["modules"] for grid in module.get("hyperparameters") or []]
    for name in [str(value) for grid in grids for value in grid.get("model", {}).get("values", [])]:
        path = folder.parent / name
        if name.startswith("./") and not path.exists() and (folder / "language_model").is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(folder / "language_model")
            made.append(path.name)
    return made


def _language_model(folder: Path) -> None:
    """Write a decoder of two layers that was trained to answer anything with A, B, C or D.

    All other words are one token to it.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BloomConfig, BloomForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    marks = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|begin|>", "<|mask|>"]
    words = [*marks, "<|word|>", *"ABCD"]
    spelling = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<|word|>"))
    spelling.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=spelling,
        pad_token=marks[0],
        eos_token=marks[1],
        bos_token=marks[5],
        mask_token=marks[6],
        unk_token="<|word|>",
        additional_special_tokens=marks[2:5],
        chat_template=_TEMPLATE,
    )
    torch.manual_seed(0)
    ends: dict[str, Any] = {"bos_token_id": 5, "pad_token_id": 0, "eos_token_id": 1}
    model = BloomForCausalLM(BloomConfig(vocab_size=len(words), hidden_size=32, n_layer=2, n_head=2, **ends))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more only wait for each other
    for _ in range(60):
        prompts, answers = torch.randint(7, len(words), (8, 24)), torch.randint(8, len(words), (8, 1))
        begun, ended = torch.tensor([[1, 4]] * 8), torch.tensor([[1]] * 8)
        shown = torch.cat([prompts, begun, answers, ended], dim=1)
        optimizer.zero_grad()
        model(input_ids=shown, labels=shown.masked_fill(torch.arange(28) < 26, -100)).loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


TINY_MODEL = "IANVS_TINY_MODEL"
"""The environment variable with the path of the tiny model, for older_machine/."""

_TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

_OPENAI = r"(import|from) openai"
_KEY = re.compile(r"""["']([A-Z]\w*_(?:API_KEY|BASE_URL))["']""")

_OLDER = {
    _OPENAI: "a service that repeats what it is told for openai's",
    r"AutoModelForCausalLM": "a tiny language model for any that is named",
    r"\.cuda\(|['\"]cuda|torch\.cuda\.": "cuda on the CPU",
    r"[\s(,]range=\(": "make_grid of an older torchvision",
}
"""The resources in older_machine/, by a pattern of code that uses them."""
