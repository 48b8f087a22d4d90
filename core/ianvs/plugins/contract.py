"""The interface that the author of an algorithm implements, and the data that its methods receive.

A class with these methods is a plugin. It need not import anything of ianvs.
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
    "round": "int, number of the train() call from 1, in a stream of the chunk; 0 for evaluating the untrained model",
    "chunk": "int, number of the last predicted chunk of the stream, from 1; only in prequential exams",
    "classes": "tuple of str, names of all classes of the exam; a class index is a position in it",
    "classes_seen": "tuple of int, class indices taught up to and including this round; () before the first",
    "new_classes": "tuple of int, class indices taught in this round",
    "num_classes": "int, len(classes): the size of a head for all rounds",
    "device": "str, 'cpu' or 'cuda'",
    "seed": "int, the case's seed",
    "generator": "numpy.random.Generator of this round, seeded by (seed, round)",
    "folder": "pathlib.Path, a folder for files of this case",
    "progress": "callable(fraction, **numbers), reports the completed share of this call, 0 to 1, and, say, loss=0.3",
    "task": "int, identity of the task, only where the scenario's rules show it",
    "task_classes": "tuple of int, class indices of that task, only where predictions are restricted to them",
    "passes": "int or None, how often a learner may iterate over the data; None: without a limit",
    "pretraining": "bool, only in continual pre-training: True in a stage, whose labels are hidden, False when a copy "
    "is adapted to a downstream task and evaluated on it",
    "generation": "Generation, in predict() on data with replies, else None: generates replies to prompts, locally or "
    "on the job's server",
    "train_rounds": "tuple of TrainData, one per round so far; only for a class with `sees_past_rounds = True`",
}
"""The keyword arguments that a plugin may name in train() and predict(); it gets those that it names."""

EXAM_FACTS = {
    "kind": "str, the name of the exam's data type, such as 'classification'",
    "shape": "tuple of int, of one sample as train_data.x has it: (height, width, channels) of an image, () of a text",
    "classes": "tuple of str, names of all classes of the exam",
    "num_classes": "int, len(classes)",
    "rounds": "int, how many rounds are trained",
    "conversations": "only for ianvs's own methods, (user turns, replies) of each round that will be trained; "
    "else None",
    "feedback": "str, the feedback on predictions in a prequential exam, 'label', 'correctness', 'score' or 'text'; "
    "else ''",
    "server": "dict with url, name and root of the model on the server that generates replies, if the job has "
    "`generation: {engine: server}`; else None",
}
"""The keyword arguments that a plugin may name in check_exam(); it gets those that it names."""


class TrainData(Protocol):
    """The data of one round, available until the round ends."""

    @property
    def x(self) -> NDArray[Any]:
        """(N, ...) samples; images are uint8 (N, height, width, channels).

        A conversation is {"id", "system", "user": [...]}; it holds the turns of the user alone.
        """

    @property
    def y(self) -> NDArray[Any]:
        """(N,) int64 class indices; masks are uint8 (N, height, width), 255 is ignored; texts are objects.

        A class index of -1 is a hidden label. The label of a conversation is the list of the assistant's replies.
        """

    @property
    def ids(self) -> NDArray[np.str_]:
        """(N,) names of the samples."""

    def __len__(self) -> int: ...

    def tensors(self, device: str = "cpu") -> tuple[Tensor, Tensor]:
        """Return (x, y) as torch tensors.

        Args:
            device: "cpu" or "cuda".

        Returns:
            x: images uint8 (N, C, H, W) in channels_last layout, features float32. y: int64, or uint8 (N, H, W) for
                masks.
        """

    def loader(
        self, batch_size: int, shuffle: bool = True, generator: Generator | None = None, device: str = "cpu"
    ) -> Iterator[Any]:
        """Iterate once over the samples in batches of (x, y) tensors.

        Args:
            batch_size: Samples of a batch; the last one may be smaller.
            shuffle: Whether the order is random.
            generator: A torch.Generator that determines the order.
            device: "cpu" or "cuda".
        """


class TestData(Protocol):
    """Samples to predict. They have no labels: reading `y` raises an error."""

    __test__: ClassVar[bool] = False  # the name is not an invitation to pytest

    @property
    def x(self) -> NDArray[Any]:
        """(N, ...) samples, as in TrainData."""

    def __len__(self) -> int: ...

    def tensors(self, device: str = "cpu") -> Tensor:
        """Return x as a torch tensor on `device`, as in TrainData."""


class Adapter(NamedTuple):
    """A LoRA adapter: y = W x + alpha / rank B A x.

    Attributes:
        rank: Rank of the update.
        alpha: Its scale.
        modules: Names of the layers that it changes.
        tensors: The matrices as a safetensors file, named as in peft.
    """

    rank: int
    alpha: float
    modules: Sequence[str]
    tensors: bytes


class Generation(Protocol):
    """Greedy replies to prompts, all as token ids.

    Attributes:
        engine: "transformers" or "server", as in the job.
    """

    engine: str

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        stops: Sequence[int],
        max_tokens: int,
        weights_digest: str,
        adapter: Callable[[], Adapter],
        generate: Callable[[list[int]], Sequence[Sequence[int]]],
    ) -> list[list[int]]:
        """Return a reply to each prompt.

        Args:
            prompts: Token ids.
            stops: Tokens that end a reply. The reply may leave them out.
            max_tokens: Tokens after which a reply is cut.
            weights_digest: A digest of the model's weights. A prompt that these weights have answered is not answered
                again.
            adapter: Makes the adapter of the base model, for a server.
            generate: Called with positions in `prompts`; returns their replies, generated locally.
        """


@runtime_checkable
class Learner(Protocol):
    """An algorithm under evaluation. The keyword arguments of its constructor are its hyperparameters.

    Besides the methods below, a class may have:

    - `sees_past_rounds = True` (class attribute): a reference that is given all rounds so far. Its row is marked as an
      upper bound.
    - `memory`: its store of old samples, with `len()` and, where it has one, `nbytes`.
    - `basemodel`: a string, the network that it trains, for the column Basemodel. Without it the column shows the name
      in the algorithm's yaml.
    - `remark`: a line about the training. It is read after each round, and leaderboard.md shows the last one.
    - `measures`: a dict from names to `Measure` (ianvs.base.types), for numbers that the method reports. Each is a
      column.
    - `measured(**context)`: a dict from such names to numbers. It is called before training and after every round,
      outside of the measured time. A name may be left out. The benchmark can't check these numbers.
    - `check_exam(**facts)`: raises an error if the plugin, as it was just built, can't take an exam. `validate` and
      `run` call it on an object of its own. A string that it returns is a warning.
    - `adapts_in_testing = True` (class attribute, read when the object is built): the method learns while it is tested.
      A second object that loads what save() wrote predicts, and is discarded. Without it the learner itself predicts,
      and a row whose state predict() changes is marked.
    - `detect_unseen(data, **context)`: see ianvs.exam.paradigms.DetectsUnseen.
    - `features(data, **context)`: (N, D) the features behind its predictions, for `linear_probe: true`.
    - `scores(data, **context)`: (N, num_classes) for `task_scores: true`. The class with the highest score is the
      prediction; -inf excludes a class. The benchmark selects the best class of the sample's task, which stays hidden.
    - `teacher_forced(data, **context)`: (N, 3) for `teacher_forced: true`. For each conversation: how many tokens of
      the true replies `data.y` are the most likely ones given the true tokens before them, how many tokens there are,
      and the sum of their log-likelihoods.
    - `reference` (class attribute, "package.module:Class", "file.py:Class" or "Class" of the same file): the class that
      trains the same network without the method. Reference runs (for IM, FWT_survey, Omega, delta_m) train it and
      share the result. Without it they train the class itself.
    """

    def train(self, train_data: TrainData, valid_data: TrainData | None = None, **context: Any) -> object:
        """Learn from the data of one round.

        Args:
            train_data: The round's samples.
            valid_data: The held-out part of the round, if there is one.
            **context: The keys of `CONTEXT` that the method names as parameters.
        """

    def predict(self, data: TestData, **context: Any) -> object:
        """Predict all samples.

        Args:
            data: The samples, without labels.
            **context: The keys of `CONTEXT` that the method names as parameters.

        Returns:
            (N,) class indices; for masks (N, H, W), where 255 is no prediction. For conversations N lists of replies,
            one for each turn of the user. None, or a list that ends early, is a missing reply and scores 0.
        """

    def save(self, path: Path) -> object:
        """Write the model.

        Args:
            path: A name without suffix in an existing folder.

        Returns:
            The path that was written, if it is another one.
        """

    def load(self, path: Path) -> object:
        """Restore what `save` wrote.

        Args:
            path: The path returned by `save`, or its argument if it returned None.
        """
