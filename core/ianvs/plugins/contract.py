"""What an author of an algorithm implements, and what such a class is handed.

Nothing here has to be imported by an author: a class with these methods is a plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Generator, Tensor

CONTEXT = {
    "round": "int, counts the calls of train() from 1, in a stream its chunks; 0 when the untrained model is examined",
    "chunk": "int, which chunk of the stream was asked last, from 1; only where the exam asks before it tells",
    "classes": "tuple of str, names of all classes of the exam; a class index is a position in it",
    "classes_seen": "tuple of int, class indices taught up to and including this round; () before the first",
    "new_classes": "tuple of int, class indices taught in this round",
    "num_classes": "int, len(classes): the size of a head that will do until the end",
    "device": "str, 'cpu' or 'cuda'",
    "seed": "int, the case's seed",
    "generator": "numpy.random.Generator of this round, seeded by (seed, round)",
    "folder": "pathlib.Path, a place of this case to keep files",
    "progress": "callable(fraction, **numbers), reports how much of this call is done, 0 to 1, and say loss=0.3",
    "task": "int, identity of the task, only where the scenario's rules show it",
    "task_classes": "tuple of int, class indices of that task, only where answers are chosen among these",
    "passes": "int or None, how often a learner may go over the data that it is handed; None is as often as it likes",
    "pretraining": "bool, only in continual pre-training: True in a stage, whose labels are hidden, False when a copy "
    "is adapted to a downstream task and answers for it",
    "generation": "Generation or None, in predict(): writes replies to prompts, by whom the job wants them written",
    "train_rounds": "tuple of TrainData, one per round so far; only for a class with `sees_past_rounds = True`",
}
"""The keyword arguments that a plugin may name in train() and predict(); it gets those that it names."""

EXAM_FACTS = {
    "kind": "str, the name of the exam's data type, such as 'classification'",
    "shape": "tuple of int, of one sample as train_data.x has it: (height, width, channels) of a picture, () of a text",
    "classes": "tuple of str, names of all classes of the exam",
    "num_classes": "int, len(classes)",
    "rounds": "int, how many rounds are trained",
    "conversations": "for ianvs's own methods alone, (what users said, replies) of each round that will be trained; "
    "else None",
    "feedback": "str, what is told of an answer, 'label', 'correctness', 'score' or 'text', where the exam asks before "
    "it tells; else ''",
    "server": "dict with url, name and root of the model on the server that is to write replies, where the job says "
    "`generation: {engine: server}`; else None",
}
"""The keyword arguments that a plugin may name in check_exam(); it gets those that it names."""


class TrainData(Protocol):
    """The data of one round, valid until the round ends."""

    @property
    def x(self) -> NDArray[Any]:
        """(N, ...) samples; pictures are uint8 (N, height, width, channels).

        A conversation is {"id", "system", "user": [...]}, with the texts of the user alone.
        """

    @property
    def y(self) -> NDArray[Any]:
        """(N,) int64 class indices; label pictures are uint8 (N, height, width), 255 is ignored; texts are objects.

        A class index of -1 is a label that is withheld. Of a conversation it is the list of the assistant's replies.
        """

    @property
    def ids(self) -> NDArray[np.str_]:
        """(N,) names of the samples."""

    def __len__(self) -> int: ...

    def tensors(self, device: str = "cpu") -> tuple[Tensor, Tensor]:
        """(x, y) as torch tensors on `device`: pictures uint8 (N, C, H, W) channels_last, features float32.

        y is int64, or uint8 (N, H, W) where labels are pictures.
        """

    def loader(
        self, batch_size: int, shuffle: bool = True, generator: Generator | None = None, device: str = "cpu"
    ) -> Iterator[Any]:
        """One pass in batches of (x, y) tensors; `generator` is a torch.Generator that fixes the order."""


class TestData(Protocol):
    """Samples to predict. It has no labels: `y` is an error that says so."""

    __test__: ClassVar[bool] = False  # the name is not an invitation to pytest

    @property
    def x(self) -> NDArray[Any]: ...

    def __len__(self) -> int: ...

    def tensors(self, device: str = "cpu") -> Tensor:
        """x as a torch tensor on `device`, as in TrainData."""


class Adapter(NamedTuple):
    """y = W x + alpha / rank B A x in the layers that `modules` names. tensors: peft's, as safetensors keeps them."""

    rank: int
    alpha: float
    modules: Sequence[str]
    tensors: bytes


class Generation(Protocol):
    """Greedy replies to prompts, all in token ids. engine: "transformers" or "server", as the job says."""

    engine: str

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        stops: Sequence[int],
        longest: int,
        weights: str,
        adapter: Callable[[], Adapter],
        generate: Callable[[list[int]], Sequence[Sequence[int]]],
    ) -> list[list[int]]:
        """A reply to each, up to one of `stops`, which may be left out, or of `longest` tokens.

        weights: a digest of those that answer: a prompt that they have answered is not answered anew. adapter: of the
        base model, for a server. generate: without one, writes replies to the prompts of these numbers.
        """


@runtime_checkable
class Learner(Protocol):
    """A student. Its constructor's keyword arguments are its hyperparameters.

    Optional: `sees_past_rounds = True` (class attribute) declares a reference that is given all rounds so far; its row
    is marked as a bound. `memory` (attribute) with `len()` and, if it has one, `nbytes`: its store of old samples.
    `basemodel` (attribute), a text: the network that it trains, for the column Basemodel, which else has the name in
    the algorithm's yaml. `remark` (attribute): one line on how it went, read after each round; leaderboard.md shows the
    last.
    `measures` (attribute), a dict of names and Measure (base/types.py): what it measures of itself beside scores, a
    column each. `measured(**context)`: a dict of such names and numbers, asked for before training and after every
    round, outside of the time of training; a name may be left out. It is the author's own word: the benchmark can't
    check it. `check_exam(**facts)`: raises an error that says why the plugin, as it was just built, can't take an exam
    (a size of pictures, a part that the base model lacks); it is called by `validate` and before a run, on a plugin of
    its own. A text that it returns is a warning. `adapts_in_testing = True` (class attribute): it learns while it is
    tested: a second object that loads what save() wrote answers, and is gone afterwards. Without it the learner answers
    itself, and a row whose state predict() changes is marked. It is asked once, when it is built.
    `detect_unseen(data, **context)`, (N,): what is unlike all that was taught (ianvs.exam.paradigms.DetectsUnseen).
    `features(data, **context)`, (N, D): what its
    answers are made from, for `linear_probe: true`. `scores(data, **context)`, (N, num_classes): what its answers are
    chosen by, the higher the likelier, -inf for never, for `task_scores: true`: the benchmark looks for the likeliest
    class of the sample's task, which the learner is not told. `teacher_forced(data, **context)`, (N, 3): of each
    conversation how many tokens of the true replies, `data.y`, are the likeliest given the true ones before them, how
    many there are, and the sum of their log-likelihoods, for `teacher_forced: true`. `reference` (class attribute,
    "package.module:Class", "file.py:Class" or "Class" beside it): the class that trains the same network plainly, which
    reference runs (IM, FWT of the survey, delta_m) train in its place and share; without it they train the class
    itself.
    """

    def train(self, train_data: TrainData, valid_data: TrainData | None = None, **context: Any) -> object:
        """Learn from what a round brings. `valid_data` is the round's held-out part, if there is one."""

    def predict(self, data: TestData, **context: Any) -> object:
        """(N,) class indices, one for each sample; for label pictures (N, H, W), where 255 predicts nothing.

        For conversations N lists of replies, one for each turn of the user; None, or a list that ends early, is a
        missing reply and counts 0.
        """

    def save(self, path: Path) -> object:
        """Write the model at `path`, a name without suffix in a folder that exists. May return the path written."""

    def load(self, path: Path) -> object:
        """Bring back what `save` wrote at the path that it returned (or was given)."""
