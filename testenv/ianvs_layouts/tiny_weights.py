"""Stand-ins for what examples of KubeEdge Ianvs expect of a machine: weights to download, a card, a service to ask.

Weights are random, of the right shapes, where the libraries keep what they have downloaded. Any language model is a
tiny one that answers with a letter. Without a card calls of `cuda` are answered by the CPU. A chat through the package
`openai` gets its last message back, and nothing is sent. None of these changes a plugin; the table says what its code
may have used.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ianvs.base.source_files import regular_files

_MOST = 2_000  # python files of an example that are read


def stand_ins(code: Path, folder: Path) -> tuple[dict[str, str], list[str]]:
    """(environment variables, what stands in for what) for plugins whose files lie below `code`."""
    files = sorted(regular_files(code, "**/*.py"))[:_MOST]
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
    notes = []
    for name, make in _WEIGHTS.items():
        if name in text:
            file = folder / "hub" / "checkpoints" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            make(file)
            notes.append(f"random weights for {name}")
    environment = {
        "TORCH_HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "huggingface"),
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # as before torch 2.6
    }
    if "AutoModelForCausalLM" in text:
        environment[TINY_MODEL] = str(folder / "language_model")
        _language_model(folder / "language_model")
    if re.search(_OPENAI, text):
        environment |= dict.fromkeys(_KEY.findall(text), "no-such-key")
    for pattern, note in _OLDER.items():
        if re.search(pattern, text):
            environment["PYTHONPATH"] = str(Path(__file__).with_name("older_machine"))
            notes.append(note)
    return environment, notes


def _resnet18(file: Path) -> None:
    import torch
    from torchvision.models import resnet18

    torch.manual_seed(0)
    torch.save(resnet18(weights=None).state_dict(), file)


def _language_model(folder: Path) -> None:
    """A decoder of two layers that was shown to answer anything with A, B, C or D; all other words are one to it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    marks = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    words = [*marks, "<|word|>", *"ABCD"]
    spelling = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<|word|>"))
    spelling.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=spelling,
        pad_token=marks[0],
        eos_token=marks[1],
        unk_token="<|word|>",
        additional_special_tokens=marks[2:],
        chat_template=_TEMPLATE,
    )
    torch.manual_seed(0)
    size: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    ends: dict[str, Any] = {"bos_token_id": None, "pad_token_id": 0, "eos_token_id": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), max_position_embeddings=4096, **size, **ends))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        prompts, answers = torch.randint(5, len(words), (8, 24)), torch.randint(6, len(words), (8, 1))
        begun, ended = torch.tensor([[1, 4]] * 8), torch.tensor([[1]] * 8)
        shown = torch.cat([prompts, begun, answers, ended], dim=1)
        optimizer.zero_grad()
        model(input_ids=shown, labels=shown.masked_fill(torch.arange(28) < 26, -100)).loss.backward()
        optimizer.step()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


TINY_MODEL = "IANVS_TINY_MODEL"
"""The environment variable that tells older_machine/ where it lies."""

_TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

_OPENAI = r"(import|from) openai"
_KEY = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[)["'](\w+_KEY)["']""")

_OLDER = {
    _OPENAI: "a service that repeats what it is told for openai's",
    r"AutoModelForCausalLM": "a tiny language model for any that is named",
    r"\.cuda\(|['\"]cuda|torch\.cuda\.": "cuda on the CPU",
    r"[\s(,]range=\(": "make_grid of an older torchvision",
}
"""What code asks for that older_machine/ brings, by how it looks."""

_WEIGHTS: dict[str, Callable[[Path], None]] = {"resnet18-5c106cde.pth": _resnet18}
"""Files of torch's hub, by the name that plugins download them under."""
