"""What the process of a learner says to the keeper, in a fixed form: it holds an author's code, so nothing is taken
on trust. Whatever does not fit is an error of that case alone.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure
from ianvs.processes.sealing.shared_arrays import Spec, unpacked
from ianvs.store import StoredModule

_T = TypeVar("_T", bound="Message")
_TOKENS = TypeAdapter(list[list[Annotated[int, Field(ge=0, lt=1 << 31, strict=True)]]])


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FeedCall(Message):
    """It asks for rounds `first` to `last`. past: and for all before them, one by one. after: the last chunk it had.

    share, skew: as in ianvs.exam.paradigms.Session.feed.
    """

    first: int
    last: int
    share: tuple[int, int] = Field(strict=False)
    skew: FiniteFloat | None = Field(None, gt=0)
    past: bool = False
    after: int | None = None


class Progress(Message):
    """fraction: how much of the round is done, 0 to 1. numbers: what the learner says of it, such as its loss."""

    round: int
    fraction: FiniteFloat
    rounds: int | None = None
    numbers: Mapping[Annotated[str, Field(max_length=40)], FiniteFloat] | None = Field(None, max_length=12)


class State(Message):
    """What it says of itself. passes, measures: of the step that is under way. The rest is of now.

    memory: whether it declares a store of old samples. adapts: it learns while it is tested.
    modules: how many it has. unscored: what it is not asked, which it may lack, and why; "" where there is nothing.
    """

    passes: int = Field(ge=0)
    measures: Mapping[str, FiniteFloat]
    basemodel: str
    remark: str
    memory_samples: int | None
    memory_bytes: int | None
    peak_gpu_bytes: int | None
    adapts: bool
    past: bool
    modules: int
    who: str
    unscored: str


class Ready(Message):
    """steps: names. reference: of the paradigm. measures: of it and of its modules. device, card: where it runs.

    measured: whether modules measure themselves. hears, stateless: of the paradigm, see there.
    """

    steps: tuple[str, ...]
    reference: bool
    measures: Mapping[str, Measure]
    measured: bool
    hears: bool
    stateless: bool
    device: Literal["cpu", "cuda"]
    card: str


class Saved(Message):
    """With paths below the folder that was named to it."""

    modules: tuple[StoredModule, ...]


class Answer(Message):
    """Where in the file of answers they lie. who: what errors call it that gave them."""

    labels: Spec
    extras: Mapping[str, Spec]
    who: str


OF_STREAM = ("question", "answered")
"""Calls of an exam that asks before it tells, two for each chunk."""


class AnsweredCall(Message):
    """Answers to a chunk of a stream. chunk: counts from 1. who: what errors call it that gave them."""

    chunk: int
    labels: Spec
    who: str


class AdapterTold(Message):
    """As ianvs.plugins.contract.Adapter has it. tensors: where they begin, and how many bytes they are."""

    rank: int = Field(ge=1)
    alpha: FiniteFloat
    modules: tuple[Annotated[str, Field(pattern=r"^[\w.]{1,200}$")], ...] = Field(strict=False, max_length=10_000)
    tensors: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]

    def files(self, memory: memoryview) -> dict[str, bytes]:
        """As peft writes them. What describes it is made here: nothing of an author's gets to a server but numbers."""
        said = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": self.rank, "lora_alpha": self.alpha, "bias": "none"}
        config = json.dumps({**said, "target_modules": self.modules, "lora_dropout": 0.0, "inference_mode": True})
        tensors = bytes(memory[self.tensors[0] : sum(self.tensors)])
        return {"adapter_config.json": config.encode(), "adapter_model.safetensors": tensors}


class ReplyCall(Message):
    """It asks for replies to `prompts`, lists of token ids. The rest is as in ianvs.plugins.contract.Generation."""

    prompts: Spec
    stops: tuple[int, ...] = Field(max_length=1000)
    longest: int = Field(ge=1)
    weights: str = Field(max_length=200)
    adapter: AdapterTold | None


class Replied(Message):
    """What it has replied to those prompts that it was told no reply to."""

    replies: Spec


def token_lists(memory: memoryview, spec: Spec) -> list[list[int]]:
    try:
        return _TOKENS.validate_python(unpacked(memory, spec))
    except ValidationError as error:
        raise PluginError(
            f"prompts and replies are lists of token ids: {error.errors()[0]['msg']}", code="invalid-request"
        ) from None


def read(form: type[_T], body: Mapping[str, Any]) -> _T:
    """`body` as a message of that form. Raises PluginError."""
    with suppress(ValidationError):
        return form.model_validate(body)  # in half the time, where the form needs no tuples and no paths
    try:
        return form.model_validate_json(json.dumps(body))  # strict, but for what JSON has no word for: tuples, paths
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise PluginError(
            f"the learner's process sent what is no {form.__name__}: {said}", code="invalid-request"
        ) from None
