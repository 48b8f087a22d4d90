"""The contract of a question, and how one is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError, closest, one_line
from ianvs.base.former_names import former_names
from ianvs.config.spec import QuestionSpec, TestEnvSpec
from ianvs.plugins.loader import load_once

ENTRY_POINTS = "ianvs.questions"


@dataclass(frozen=True)
class About:
    """What answers are about. classes: of the test set. count: of all classes of the exam.

    fitted, labels: what the same model said of training samples of the test set's round, and their true labels; only of
    a question that `fits`.
    """

    classes: tuple[int, ...]
    count: int
    fitted: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None


@former_names(kept="stored_answers")
class Question:
    """Something that the base model is asked of all test samples at the end of a round, in the order of its answers.

    name: by which a testenv asks it, and a metric says that it needs it (`asks`). method: of the base model,
    method(data, **context). extras: names of what is kept of its answers (EvaluationRecord.extras). wanted: what the
    method is to return, in words. shows_labels: the true labels are `data.y`; it is asked last, and not of who learns
    while it is tested. fits: training samples of each test set's round are asked, too. may_lack: what the leaderboard
    calls it where a learner has no such method, and goes on without; "": every learner needs the method. of_classes:
    it makes sense only where samples have a class each. of_type: the one data type that it is about, or "".
    """

    name: ClassVar[str]
    method: ClassVar[str]
    extras: ClassVar[tuple[str, ...]]
    wanted: ClassVar[str]
    shows_labels: ClassVar[bool] = False
    fits: ClassVar[bool] = False
    may_lack: ClassVar[str] = ""
    of_classes: ClassVar[bool] = False
    of_type: ClassVar[str] = ""

    def lacks(self, plugin: object) -> str:
        """Why a base model can't be asked; "" where it can."""
        has = callable(getattr(plugin, self.method, None))
        return "" if has else f"{type(plugin).__name__} has no {self.method}(data, **context)"

    def checked(self, answers: object, samples: int, classes: int, caller: str) -> NDArray[Any]:
        """(samples, ...) numbers that `answers` holds. Raises PluginError. classes: how many the exam has."""
        array = np.asarray(on_host(answers))
        if array.shape[:1] != (samples,) or array.dtype.kind not in "iufb":
            raise PluginError(
                f"{caller} returned {array.dtype} {array.shape}: return {self.wanted}, N = {samples}.",
                code="invalid-result",
            )
        return array

    def stored_answers(self, answers: NDArray[Any], about: About) -> dict[str, NDArray[Any]]:
        """By the names of `extras`, (N, ...) each, what is kept of the answers to a test set."""
        return {self.extras[0]: answers}


def on_host(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def question(spec: QuestionSpec) -> Question:
    """The one that a testenv asks. Raises PluginError."""
    if spec.url is not None:
        target = load_once(str(spec.url), spec.name).target
    else:
        names = installed(ENTRY_POINTS)
        if spec.name not in names:
            hint = f"{closest(spec.name, names)} There are: {one_line([*names])}."
            raise PluginError(
                f"there is no question '{spec.name}'.{hint} One of your own needs the `url` of its file.",
                code="unknown-question",
            )
        target = names[spec.name].load()
    if isinstance(target, type) and issubclass(target, Question):
        return target()
    raise PluginError(f"'{spec.name}' is no subclass of ianvs.exam.questions.Question.", code="broken-contract")


def questions_of(testenv: TestEnvSpec) -> Sequence[Question]:
    """In the order in which they are asked: what shows labels comes last."""
    return sorted(map(question, testenv.all_questions), key=lambda each: each.fits + 2 * each.shows_labels)
