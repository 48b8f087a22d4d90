"""Scores of a tuned model on tasks of lm-evaluation-harness that it was not taught."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ianvs.base.errors import PluginError, closest
from ianvs.base.types import Measure
from ianvs.testalgorithms.language.model_places import require_installed
from ianvs.testalgorithms.language.numbers import at_least

FILES = (".yaml", ".yml")


class GeneralAbility:
    """tasks: names that lm-eval knows and paths of its yaml files, with commas between. limit: first questions of each.

    The number of a task is the first of its metrics of which more is better, as lm-eval computes it (Gao et al.,
    lm-evaluation-harness), from 0 to 1 for accuracies.
    """

    def __init__(self, tasks: str, limit: int | None = None) -> None:
        """Read the tasks. Raises PluginError for a file that is missing or names no task, and without lm-eval."""
        if not isinstance(tasks, str):
            raise PluginError(
                f"general_tasks is {tasks!r}; it is a text, names and files with commas between.", code="wrong-type"
            )
        if limit is not None:
            at_least(1, general_limit=limit)
        self.limit = limit
        self._tasks: dict[str, str] = {}  # requests to lm-eval, by name
        for entry in filter(None, map(str.strip, tasks.split(","))):
            is_file = entry.endswith(FILES)
            name = _task_of(entry) if is_file else entry
            if name in self._tasks:
                raise PluginError(f"general_tasks names {name} twice. Take one of them out.", code="conflicting-keys")
            self._tasks[name] = str(Path(entry).expanduser().absolute()) if is_file else entry
        if self._tasks:
            require_installed("general_tasks", "general", "lm_eval")

    @property
    def measures(self) -> dict[str, Measure]:
        limited = "" if self.limit is None else f", its first {self.limit} questions"
        return {_column(name): Measure(f"Task {name} of lm-eval{limited}.", "last", True) for name in self._tasks}

    def check(self) -> None:
        """Raise PluginError for a task that lm-eval does not know."""
        named = [name for name, task in self._tasks.items() if name == task]
        if not named:
            return
        names = _manager().all_tasks
        for name in named:
            if name not in names:
                raise PluginError(
                    f"general_tasks: lm-eval has no task '{name}'.{closest(name, names)} `lm-eval ls tasks` lists all.",
                    code="invalid-choice",
                )

    def scores(self, network: Any, tokenizer: Any, *, batch: int, longest: int | None) -> dict[str, float]:
        """Return scores by column; the network stays on its device. longest: number of tokens that it can read."""
        from lm_eval import simple_evaluate
        from lm_eval.models.huggingface import HFLM

        model = HFLM(network, tokenizer=tokenizer, batch_size=batch, max_length=longest, backend="causal")
        try:
            results = simple_evaluate(
                model, tasks=list(self._tasks.values()), task_manager=_manager(), limit=self.limit, bootstrap_iters=0,
                log_samples=False,
            )  # fmt: skip
        except Exception as error:
            raise PluginError(
                f"general_tasks: lm-eval failed: {type(error).__name__}: {error}", code="refused-arguments"
            ) from error
        return {_column(name): _score(results, name) for name in self._tasks}


@lru_cache(1)
def _manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager()


def _column(task: str) -> str:
    return "lm_eval_" + re.sub(r"\W", "_", task)


def _task_of(file: str) -> str:
    """Return the name in a yaml file of a task; its other values may have tags of lm-eval, which are left alone."""
    path = Path(file).expanduser()
    if not path.is_file():
        relative = "" if path.is_absolute() else " A relative path counts from where ianvs was started."
        raise PluginError(f"general_tasks: there is no file {path.absolute()}.{relative}", code="missing-file")
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PluginError(
            f"general_tasks: {path} can't be read as yaml: {' '.join(str(error).split())}", code="unreadable-file"
        ) from None
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "task" and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    raise PluginError(f"general_tasks: {path} has no key `task` that names it.", code="invalid-value")


def _score(results: Any, task: str) -> float:
    better = results["higher_is_better"].get(task, {})
    for key, value in results["results"].get(task, {}).items():
        metric = key.split(",")[0]
        if better.get(metric) and isinstance(value, int | float):
            return float(value)
    raise PluginError(
        f"general_tasks: lm-eval gives no number for '{task}' of which more is better. A group without a mean of its "
        "own has none: name its tasks.",
        code="refused-arguments",
    )
