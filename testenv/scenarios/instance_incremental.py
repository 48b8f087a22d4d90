"""Instance-incremental learning: one task whose samples arrive in batches.

METHODS: survey arXiv 2302.00487, scenario IIL. There is only one task, so task identity does not matter.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ianvs.base.seeding import generator
from ianvs.exam.scenarios.exam import Exam, Rules, TestSet
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, classes_in, named_rounds, refuse, whole_test_set
from ianvs.testenv.scenarios.streaming import as_stream, stream_option_errors


class InstanceIncremental(Scenario):
    """The training samples, shuffled once and cut.

    rounds, seed: of the cut. mode: "equal" parts (sizes differ by one at most) or those in `sizes`.
    test: one "shared" test set, or "per_round": the test part is cut likewise, always into equal parts.
    shuffled: false keeps the order of the data. batch: the samples come as a stream, in chunks of so many, without a
    word on where a round ends; eval_every: samples between two examinations beside those at the end of a round.
    """

    names: ClassVar[tuple[str, ...]] = ("instance-incremental", "IIL")

    seed: int = Field(0, ge=0)
    mode: Literal["equal", "sizes"] | None = None
    sizes: list[int] | None = Field(None, min_length=1)
    test: Literal["shared", "per_round"] = "shared"
    shuffled: bool = True
    batch: int | None = Field(None, ge=1)
    eval_every: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _one_mode(self) -> Self:
        if self.mode == "sizes" and self.sizes is None:
            raise ValueError("`mode: sizes` needs `sizes`, the number of samples of each round.")
        if self.mode == "equal" and self.sizes is not None:
            raise ValueError(
                "`sizes` says how large each round is, `mode: equal` that all are alike. Keep one of them."
            )
        return self

    def option_errors(self) -> Iterator[tuple[str, str]]:
        yield from stream_option_errors(self.batch, self.eval_every)

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        return None if self.sizes is None else ("sizes", len(self.sizes))

    def build(self, request: ScenarioRequest) -> Exam:
        dataset = request.dataset
        sizes = self._sizes(request, len(dataset.train))
        order = np.arange(len(dataset.train))
        if self.shuffled:
            order = generator(self.seed, 0, "instance-incremental train").permutation(order)
        rounds = named_rounds(request, np.split(order, np.cumsum(sizes)[:-1]))
        tests = whole_test_set(request)
        if self.test == "per_round":
            if len(dataset.test) < len(rounds):
                refuse(request, f"{len(dataset.test)} test samples can't be cut into {len(rounds)} test sets.", "test")
            order = generator(self.seed, 0, "instance-incremental test").permutation(len(dataset.test))
            cut = np.array_split(order, len(rounds))
            named = zip(rounds, cut, strict=True)
            tests = tuple(TestSet(r.name, part, classes_in(dataset, dataset.test, part)) for r, part in named)
        rules = Rules("instance-incremental", task_in_training=False, task_in_testing=False, output_space="all")
        exam = Exam(dataset, rounds, tests, rules)
        return exam if self.batch is None else as_stream(exam, self.batch, self.eval_every, shuffled=False)

    def _sizes(self, request: ScenarioRequest, count: int) -> list[int]:
        sizes = self.sizes
        if sizes is None:
            return [len(part) for part in np.array_split(np.arange(count), rounds_required(request, count))]
        if min(sizes) < 1 or sum(sizes) != count:
            message = (
                f"`sizes` sums to {sum(sizes)}; it must share out all {count} training samples, at least 1 to a round."
            )
            refuse(request, message, "sizes")
        return sizes


def rounds_required(request: ScenarioRequest, count: int) -> int:
    """Return the number of rounds into which `count` samples are cut."""
    rounds = request.rounds
    if rounds is None:
        refuse(request, f"say how many `rounds` the {count} samples arrive in.")
    if rounds > count:
        message = f"{count} samples can't be cut into {rounds} rounds. Set `rounds` to {count} or less."
        refuse(request, message, "rounds")
    return rounds
