"""The exam that language methods take: three rounds of conversations, two epochs, AdamW, on a tiny transformer."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.batches import grouped_by_length
from ianvs.testalgorithms.language.models import build_model
from tests.nightly.conformance.harness import After, Check, Mutant, compared
from tests.unit.testalgorithms.conversation_fixtures import FIRST, SECOND, Talks, talks

THIRD = talks(
    ("It is 2022.", [("Who was mayor?", "Ada Cole")]),
    (None, [("What does milk cost?", "six cents")]),
    ("It is 2022.", [("Who won?", "Blue Foxes"), ("Where was the fair?", "Old Bryn, and it rained")]),
    (None, [("What does milk cost?", "two dimes")]),
    ("It is 2022.", [("Who lost the cup?", "Red Owls")]),
)
ROUNDS = (FIRST, SECOND, THIRD)
ASKED = Talks(np.array([FIRST.x[1], SECOND.x[0]]))  # two turns with a history of one's own, and one
ADAPTER = {"lora_r": 4, "lora_alpha": 6, "experts": 2}
SIZE = {"width": 32, "layers": 1, "heads": 2, "vocabulary": 300, "max_new_tokens": 4}

WHY = "AdamW divides by the size of a gradient: where that is nearly 0, the last bits of sums in another order show"

Talk = tuple[list[int], list[bool]]  # tokens of a conversation, and whether the assistant says them


def key(x: dict[str, Any], y: Sequence[str]) -> tuple[Any, ...]:
    """What a conversation is told by."""
    return (x["system"], *x["user"], *y)


NUMBERS = {key(x, y): i for i, (x, y) in enumerate((x, y) for r in ROUNDS for x, y in zip(r.x, r.y, strict=True))}


@cache
def first_weights(seed: int, tuning: str) -> tuple[Any, Any]:
    """(network, tokenizer) that a learner of this seed begins with, both made from the words of the first round."""
    texts = [text for x, y in zip(FIRST.x, FIRST.y, strict=True) for text in (x["system"] or "", *x["user"], *y)]
    options = LanguageLearner(**SIZE, tuning=tuning, **(ADAPTER if tuning != "full" else {})).options
    torch.manual_seed(stream_seed(seed, 0, "init"))
    return build_model(options, texts, None if tuning == "full" else tokenizer())


def tokenizer() -> Any:
    return first_weights(EXAM.seed, "full")[1]


@dataclass(frozen=True)
class Exam:
    """A naive statement takes from here what both have to share: first weights, tokens, batches, random draws."""

    seed: int = 3
    epochs: int = 2
    batch_size: int = 3
    learning_rate: float = 1e-3
    warmup: float = 0.3
    weight_decay: float = 0.5
    max_grad_norm: float = 1.0
    tuning: str = "full"

    rounds = (1, 2, 3)

    def talks(self, k: int) -> list[Talk]:
        """The conversations of round k."""
        data = ROUNDS[k - 1]
        return [self.encoded(x["system"], x["user"], y) for x, y in zip(data.x, data.y, strict=True)]

    def encoded(self, system: str | None, user: Sequence[str], said: Sequence[str]) -> Talk:
        """A conversation, or what there is of it up to where the assistant is to speak."""
        parts = [("<|system|>", False), (system, False), ("<|end|>", False)] if system else []
        for i, question in enumerate(user[: len(said) + 1]):
            parts += [("<|user|>", False), (question, False), ("<|end|>", False), ("<|assistant|>", False)]
            parts += [(said[i], True), ("<|end|>", True)] if i < len(said) else []
        tokens = [(token, learnt) for text, learnt in parts for token in tokenizer()(text)["input_ids"]]
        return [token for token, _ in tokens], [learnt for _, learnt in tokens]

    def network(self) -> Any:
        """With its first weights, and without adapters."""
        return copy.deepcopy(first_weights(self.seed, "full")[0])

    def adapted(self) -> tuple[Any, dict[str, dict[str, nn.Parameter]]]:
        """A network that does not learn, and for each adapted layer the first weights of its adapter, by part."""
        whole = copy.deepcopy(first_weights(self.seed, self.tuning)[0])
        parts: dict[str, dict[str, nn.Parameter]] = {}
        for name, weight in whole.named_parameters():
            if weight.requires_grad:
                layer, part = name.removeprefix("base_model.model.").removesuffix(".default.weight").rsplit(".", 1)
                parts.setdefault(layer, {})[part.removeprefix("lora_")] = nn.Parameter(weight.detach().clone())
        return self.network().requires_grad_(False), parts

    def draws(self, k: int, purpose: str) -> torch.Generator:
        """The random numbers of round k for "replay" (what comes back), "memory" (what is kept), ..."""
        return torch.Generator().manual_seed(stream_seed(self.seed, k, purpose))

    def batches(self, k: int, some: Sequence[Talk]) -> Iterator[list[Talk]]:
        """Batches of each step of round k, grouped as tests/unit/testalgorithms/test_language_tokens.py says."""
        order = self.draws(k, "order")
        for _ in range(self.epochs):
            for rows in grouped_by_length([len(tokens) for tokens, _ in some], self.batch_size, order):
                yield [some[i] for i in rows]

    def descend(
        self,
        k: int,
        some: Sequence[Talk],
        weights: Sequence[Tensor],
        loss: Callable[[list[Talk]], Tensor],
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Round k by AdamW: the rate goes up in a line and down in half a cosine, and gradients are clipped."""
        optimizer = torch.optim.AdamW(weights, self.learning_rate, weight_decay=self.weight_decay, fused=True)
        batches = list(self.batches(k, some))
        warm = math.ceil(self.warmup * len(batches))
        for step, batch in enumerate(batches):
            rising = (step + 1) / (warm + 1)
            falling = (1 + math.cos(math.pi * (step - warm) / max(len(batches) - warm, 1))) / 2
            optimizer.param_groups[0]["lr"] = self.learning_rate * (rising if step < warm else falling)
            optimizer.zero_grad()
            loss(batch).backward()
            before()
            torch.nn.utils.clip_grad_norm_(weights, self.max_grad_norm)
            optimizer.step()
            after()

    @torch.no_grad()
    def replies(self, network: Any, x: dict[str, Any]) -> str:
        """What the network says to each turn, its own replies before it: the likeliest token, one after the other."""
        said: list[str] = []
        for _ in x["user"]:
            tokens, _ = self.encoded(x["system"], x["user"], said)
            begun = len(tokens)
            while len(tokens) < begun + SIZE["max_new_tokens"] and tokens[-1:] != tokenizer()("<|end|>")["input_ids"]:
                tokens = [*tokens, int(network(input_ids=torch.tensor([tokens])).logits[0, -1].argmax())]
                if tokens[-1] == tokenizer().eos_token_id:
                    break
            said.append(tokenizer().decode(tokens[begun:], skip_special_tokens=True).strip())
        return "|".join(said)

    def answers(self, network: Any) -> np.ndarray:
        return np.array([self.replies(network, x) for x in ASKED.x])

    def after(
        self,
        network: Any,
        weights: Iterable[Tensor] | None = None,
        memory: Sequence[int] = (),
        more: Sequence[Tensor] = (),
        answers: np.ndarray | None = None,
    ) -> After:
        """memory: numbers of conversations, counted over all rounds."""
        weights = [w.detach().clone() for w in (network.parameters() if weights is None else weights)]
        kept = [torch.tensor(memory)] if memory else []
        said = self.answers(network) if answers is None else answers
        return After(weights, kept, said, [m.detach().clone() for m in more])


EXAM = Exam()


def scores(network: Any, some: Sequence[Talk]) -> tuple[Tensor, Tensor]:
    """(N, V) what the network says where the assistant speaks, and (N,) what it should say: one by one, unpadded."""
    rows, right = [], []
    for tokens, learnt in some:
        spoken = [i for i, of in enumerate(learnt) if of]
        rows.append(network(input_ids=torch.tensor([tokens])).logits[0, [i - 1 for i in spoken]])
        right += [tokens[i] for i in spoken]
    return torch.cat(rows), torch.tensor(right)


def surprise(network: Any, some: Sequence[Talk]) -> Tensor:
    """The mean over all learnt tokens of -log p."""
    z, right = scores(network, some)
    return -z.log_softmax(1)[range(len(right)), right].mean()


def with_adapters(network: Any, added: Callable[[str, Tensor], Tensor], layers: Iterable[str]) -> None:
    """From now on y = W x + added(layer, x) in these layers."""
    for name in layers:

        def hook(_: Any, x: Any, y: Tensor, name: str = name) -> Tensor:
            return y + added(name, x[0])

        network.get_submodule(name).register_forward_hook(hook)


class Kept:
    """Those of all that were offered whose random keys are the largest, in order of arrival."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.rows = capacity, []  # rows: (key, number of the conversation, its tokens)

    def offer(self, exam: Exam, k: int) -> None:
        before = sum(len(r) for r in ROUNDS[: k - 1])
        some = exam.talks(k)
        keys = torch.rand(len(some), dtype=torch.float64, generator=exam.draws(k, "memory")).tolist()
        self.rows += [(key, before + i, talk) for i, (key, talk) in enumerate(zip(keys, some, strict=True))]
        least = sorted((row[0] for row in self.rows), reverse=True)[: self.capacity][-1]
        self.rows = [row for row in self.rows if row[0] >= least]

    def numbers(self) -> list[int]:
        return [number for _, number, _ in self.rows]

    def drawn(self, n: int, draws: torch.Generator) -> list[Talk]:
        return [self.rows[i][2] for i in torch.randperm(len(self.rows), generator=draws)[:n].tolist()]


def ours(make: Callable[[], Any], exam: Exam, more: Callable[[Any], list[Tensor]]) -> Iterator[After]:
    """The learner's three rounds, as the benchmark runs them."""
    learner = make()
    learner._tokenizer = tokenizer()
    for k, data in enumerate(ROUNDS, start=1):
        seen = {"train_rounds": ROUNDS[:k]} if getattr(learner, "sees_past_rounds", False) else {}
        learner.train(data, None, round=k, seed=exam.seed, **seen)
        answers = np.array(["|".join(said) for said in learner.predict(ASKED, seed=exam.seed)])
        weights = [w.detach().clone() for w in learner.weights.values()]
        memory = getattr(learner, "memory", None)
        numbers = [NUMBERS[(c.system, *c.user, *c.replies)] for c in memory.conversations] if memory else []
        yield After(weights, [torch.tensor(numbers)] if numbers else [], answers, more(learner))


def language(
    method: type,
    naive: Callable[..., Iterable[After]],
    mutants: Sequence[Mutant],
    *,
    exam: Exam = EXAM,
    more: Callable[[Any], list[Tensor]] = lambda learner: [],
    **given: Any,
) -> Check:
    """`compared` in this exam."""
    training = {n: getattr(exam, n) for n in vars(exam) if n not in ("seed", "tuning")}
    adapter = {} if exam.tuning == "full" else {"tuning": exam.tuning, **ADAPTER}
    seen, near = partial(ours, exam=exam, more=more), {"tolerance": 1e-5, "why": WHY}
    return compared(method, {**SIZE, **training, **adapter}, seen, naive, mutants, exam, **{**near, **given})
