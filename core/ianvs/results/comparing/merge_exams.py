"""The exams of a merged job: which exam of one job is which of another, and what is computed in each."""

from __future__ import annotations

from collections.abc import Mapping

from ianvs.config.spec import BudgetSpec
from ianvs.exam.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.exam.metrics.registry import resolve
from ianvs.results.comparing.merge_sources import Source
from ianvs.results.stored import Results

__all__ = ["MergedExams"]


class MergedExams:
    """Exams by name, each as the first job has it that has it. `add` the sources in order."""

    def __init__(self, first: Results) -> None:
        self._first = first
        self._signatures: dict[str, str] = {}
        self._columns: dict[str, tuple[MetricColumn, ...]] = {}
        self._shown: dict[str, None] = dict.fromkeys(first.columns)
        self.budgets: dict[str, BudgetSpec] = {}
        self.notes: dict[str, None] = {}  # of the jobs that brought an exam: what is said of exams names them

    def add(self, source: Source, said: list[str]) -> dict[str, str]:
        """{name of an exam in `source`: in the merged job} of those that fit; what does not fit is added to `said`."""
        found, results = {}, source.results
        if results.contract != self._first.contract:
            said.append(f"{source.name}: its plugins were called as `contract: {results.contract}` has it; left out.")
            return {}
        for name, signature in source.exam_signatures().items():
            same = next((known for known, other in self._signatures.items() if other == signature), None)
            if same is not None:
                self._hold_against(source, name, same, said)
                found[name] = same
            elif name in self._signatures or (self._signatures and "" in (name, *self._signatures)):
                said.append(f"{source.name}: {_other_exam(name, name in self._signatures)}")
            else:
                self._signatures[name] = signature
                self._columns[name] = results.metrics[name]
                self.notes |= dict.fromkeys(results.notes)
                if name in results.budgets:
                    self.budgets[name] = results.budgets[name]
                found[name] = name
        return found

    def metrics(self) -> Mapping[str, tuple[MetricColumn, ...]]:
        """A column's name tells of which score it is where the job has several: more exams may need other names."""
        asked = [
            [(c.spec, resolve(c.spec) if c.metric.level == "matrix" else c.metric, c.key) for c in columns]
            for columns in self._columns.values()
        ]
        return dict(zip(self._columns, metric_columns(asked), strict=True))

    def columns(self) -> tuple[str, ...]:
        """Those that the first job shows, then those of the exams that it does not have."""
        shown: dict[str, None] = {}
        pairs = [
            (old, new.name, exam)
            for exam, named in self.metrics().items()
            for old, new in zip(self._columns[exam], named, strict=True)
            if not old.metric.mapping
        ]
        for name in self._shown:
            shown |= dict.fromkeys(new for old, new, _ in pairs if old.name == name)
        own = set(self._first.metrics)
        return tuple(shown | dict.fromkeys(new for _, new, exam in pairs if exam not in own))

    def _hold_against(self, source: Source, name: str, same: str, said: list[str]) -> None:
        known = {column.key for column in self._columns[same]}
        more = [column.name for column in source.results.metrics[name] if column.key not in known]
        where = f" of {same}" if same else ""
        if more:
            listed = ", ".join(more)
            said.append(f"{source.name}: the metrics {listed}{where} are left out: the first job has not them.")
        if source.results.budgets.get(name) != self.budgets.get(same):
            said.append(f"{source.name}: the budget{where} is another one; that of the first job holds for all rows.")

    def needed(self, exam: str) -> dict[str, str]:
        """{key: name} of what has to be stored of a case."""
        every = not self._first.keeps_exams
        kept = (column for column in self._columns[exam] if every or column.metric.level == "score")
        return {column.key: column.name for column in kept}


def _other_exam(name: str, known: bool) -> str:
    if known:
        which = f"the exam {name}" if name else "the exam"
        return f"{which} is left out: it is another exam under the same name (other data, scenario or rules)."
    which = f"the exam {name}" if name else "the exam, which has no name since it is the only one,"
    return f"{which} is left out: the exams of one of the jobs have no names. Name the job with several exams first."
