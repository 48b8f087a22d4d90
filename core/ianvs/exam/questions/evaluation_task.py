"""The interface of evaluation tasks, and how they are found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError, closest, one_line
from ianvs.base.former_names import former_names
from ianvs.config.spec import EvaluationTaskSpec, TestEnvSpec
from ianvs.plugins.loader import load_once

ENTRY_POINTS = "ianvs.evaluation_tasks"


@dataclass(frozen=True)
class TaskContext:
    """What the results of an evaluation task belong to.

    Attributes:
        classes: Classes of the test set.
        count: Number of classes of the exam.
        fitted: The results for training samples of the test set's round, if the task `fits`.
        labels: The true labels of these samples.
    """

    classes: tuple[int, ...]
    count: int
    fitted: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None


@former_names(kept="stored_answers")
class EvaluationTask:
    """A method of the base model that is called for all test samples at the end of a round, besides predict().

    Attributes:
        name: The name in a testenv, and in the `asks` of a metric.
        method: The name of the method; it is called as method(data, **context).
        extras: Names under which its answers are stored (EvaluationRecord.extras).
        wanted: What the method must return, for messages.
        shows_labels: Whether `data.y` has the true labels. The task then comes last, and is skipped for a learner
            that adapts in testing.
        fits: Whether the method is also called for training samples of each test set's round.
        may_lack: What the leaderboard calls the answers of a learner without the method; "": every learner needs it.
        of_classes: Whether samples must have one class each.
        of_type: The only data type that it applies to, or "".
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
        """Return why a base model can't answer; "" if it can."""
        has = callable(getattr(plugin, self.method, None))
        return "" if has else f"{type(plugin).__name__} has no {self.method}(data, **context)"

    def checked(self, answers: object, samples: int, classes: int, caller: str) -> NDArray[Any]:
        """Return the answers as an array (samples, ...) of numbers.

        Args:
            answers: What the method returned.
            samples: Number of samples.
            classes: Number of classes of the exam.
            caller: The method, for messages.

        Raises:
            PluginError: They have another shape or type.
        """
        array = np.asarray(on_host(answers))
        if array.shape[:1] != (samples,) or array.dtype.kind not in "iufb":
            raise PluginError(
                f"{caller} returned {array.dtype} {array.shape}: return {self.wanted}, N = {samples}.",
                code="invalid-result",
            )
        return array

    def stored_answers(self, answers: NDArray[Any], about: TaskContext) -> dict[str, NDArray[Any]]:
        """Return what is stored of the answers for a test set, (N, ...) for each name in `extras`."""
        return {self.extras[0]: answers}


def on_host(values: Any) -> Any:
    """Return a tensor as an array, and anything else unchanged."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def find_evaluation_task(spec: EvaluationTaskSpec) -> EvaluationTask:
    """Return the evaluation task that a testenv names.

    Raises:
        PluginError: There is none, or it can't be loaded.
    """
    if spec.url is not None:
        target = load_once(str(spec.url), spec.name).target
    else:
        names = installed(ENTRY_POINTS)
        if spec.name not in names:
            hint = f"{closest(spec.name, names)} There are: {one_line([*names])}."
            raise PluginError(
                f"there is no evaluation task '{spec.name}'.{hint} One of your own needs the `url` of its file.",
                code="unknown-task-or-type",
            )
        target = names[spec.name].load()
    if isinstance(target, type) and issubclass(target, EvaluationTask):
        return target()
    raise PluginError(f"'{spec.name}' is no subclass of ianvs.exam.questions.EvaluationTask.", code="broken-contract")


def evaluation_tasks_of(testenv: TestEnvSpec) -> Sequence[EvaluationTask]:
    """Return the evaluation tasks of a testenv in their order: those that show labels come last."""
    return sorted(
        map(find_evaluation_task, testenv.all_evaluation_tasks), key=lambda each: each.fits + 2 * each.shows_labels
    )
