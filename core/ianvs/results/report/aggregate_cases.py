"""Reads a stream of results once, keeps only the few numbers of each case that a leaderboard needs, and makes rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import shown_path
from ianvs.base.types import CaseResult, Doubt, Failure, Measure, TestCase
from ianvs.exam.metrics.metric_columns import whole_of
from ianvs.exam.metrics.system import paradigm_value, system_value
from ianvs.results.report.leaderboard_row import COSTS, FailedCase, LeaderboardRow
from ianvs.results.report.values import Value, shown_hyperparameters
from ianvs.results.stats import Summary, summarise

_SHORT = 100  # characters of an error message in the Status column
_LONGEST_MESSAGE = 500  # characters; the log has all of it


@dataclass
class RowCases:
    """Accumulates the cases of one row while results are read one by one."""

    case: TestCase  # the first case: all others differ only in id and seed
    dataset: str
    rounds: int = 0
    bound: bool = False
    seen: set[str] = field(default_factory=set)  # ids
    seeds: list[int] = field(default_factory=list)  # seeds of finished cases
    metrics: dict[str, list[float | None]] = field(default_factory=dict)
    parts: dict[str, dict[int, dict[str, float | None]]] = field(default_factory=dict)  # by score and case: by column
    samples: dict[str, list[NDArray[np.float64] | None]] = field(default_factory=dict)  # CaseResult.samples
    test_samples: int = 0  # test sets evaluated after the last round
    texts: dict[str, dict[str, None]] = field(default_factory=dict)  # values of metrics that are not numbers
    costs: dict[str, list[float | None]] = field(default_factory=dict)
    measures: dict[str, Measure] = field(default_factory=dict)  # measures of its paradigm
    first_score: str = ""
    # By position of the test set, for each seed: name, score just after its round (None without one), score at the end.
    tests: dict[int, list[tuple[str, float | None, float]]] = field(default_factory=dict)
    failures: list[FailedCase] = field(default_factory=list)
    latest: datetime | None = None
    over_budget: dict[str, None] = field(default_factory=dict)  # as text, each once
    warnings: dict[str, None] = field(default_factory=dict)  # on its evaluation, each once
    doubt: Doubt = ""
    notes: tuple[str, ...] = ()  # on the data
    remarks: dict[int, str] = field(default_factory=dict)  # by seed
    waiting: dict[str, None] = field(default_factory=dict)  # metrics whose reference run has not finished
    damaged: dict[str, None] = field(default_factory=dict)  # damaged files
    basemodel: str = ""
    passes: list[bool] = field(default_factory=list)  # for rounds with a gate: whether the new model was adopted

    def add(self, result: CaseResult, metrics: Sequence[str], root: Path | None) -> None:
        if result.case.id in self.seen:
            raise ValueError(f"case {result.case.id} comes twice in the results")
        self.seen.add(result.case.id)
        self.dataset = self.dataset or result.dataset  # a case that never began has neither
        self.rounds = max(self.rounds, len(result.round_names))
        self.bound = self.bound or result.bound
        self.notes = self.notes or result.notes
        self.over_budget |= dict.fromkeys(result.over_budget)
        self.damaged |= dict.fromkeys(result.damaged)
        self.waiting |= dict.fromkeys(result.waiting)
        if result.finished_at:
            ended = utc(result.finished_at)
            self.latest = ended if self.latest is None else max(self.latest, ended)
        if result.status == "failed":
            self.failures.append(_failed(result, root))
        elif result.status == "finished":
            self.seeds.append(result.case.seed)
            self.doubt = self.doubt or result.doubt
            self.warnings |= dict.fromkeys(result.warnings)
            self.basemodel = self.basemodel or result.basemodel
            self.test_samples = max(self.test_samples, result.rounds[-1].test_samples if result.rounds else 0)
            self.passes += gate_passes(result) or []
            if result.remark:
                self.remarks[result.case.seed] = result.remark
            for name in metrics:
                self.metrics.setdefault(name, []).append(result.metrics.get(name))
                self.samples.setdefault(name, []).append(result.samples.get(name))
                if name in result.texts:
                    self.texts.setdefault(name, {})[result.texts[name]] = None
            for column in result.metrics:
                if (score := whole_of(column)) in self.metrics:
                    of_case = self.parts.setdefault(score, {}).setdefault(len(self.seeds) - 1, {})
                    of_case[column] = result.metrics[column]
            self.measures |= result.measures
            for key, cost in case_costs(result).items():
                self.costs.setdefault(key, []).append(cost)
            self._add_tests(result)

    def add_parts(self) -> None:
        """Make a metric of each part of a score that yields several numbers; without a number, the score is none."""
        for score, by_case in self.parts.items():
            if not any(value is not None for value in self.metrics[score]):
                del self.metrics[score]
            for column in dict.fromkeys(column for parts in by_case.values() for column in parts):
                values = [by_case.get(place, {}).get(column) for place in range(len(self.seeds))]
                self.metrics[column], self.samples[column] = values, [None] * len(values)

    def _add_tests(self, result: CaseResult) -> None:
        matrix = next(iter(result.matrices.values()), None)
        if matrix is None:
            return
        self.first_score = matrix.metric
        per_round = len(matrix.tests) == len(matrix.values) - 1
        for j, test in enumerate(matrix.tests):
            learned = float(matrix.values[j + 1, j]) if per_round else None
            self.tests.setdefault(j, []).append((test, learned, float(matrix.values[-1, j])))


def gather(results: Iterable[CaseResult], metrics: Sequence[str], root: Path | None) -> list[RowCases]:
    """Return the rows in order of first appearance.

    Algorithms of the same content but different names are separate rows.
    """
    metrics = tuple(dict.fromkeys(metrics))
    rows: dict[tuple[str, str], RowCases] = {}
    for result in results:
        key = (result.case.row, result.case.algorithm)
        if key not in rows:
            rows[key] = RowCases(result.case, result.dataset)
        rows[key].add(result, metrics, root)
    for row in rows.values():
        row.add_parts()
    return list(rows.values())


def common_name(names: Iterable[str], kind: str, position: int) -> str:
    """Return the common name of rounds or test sets of several seeds: their name if it is equal, else "round 2"."""
    different = set(names)
    return different.pop() if len(different) == 1 else f"{kind} {position + 1}"


def case_costs(result: CaseResult) -> Mapping[str, float | None]:
    """Return the costs of one case, by key of COSTS or by name of its paradigm's measure; None is "not measured"."""
    costs = {name: paradigm_value(name, measure, result.rounds) for name, measure in result.measures.items()}
    return costs | {key: system_value(key, result.rounds) for key in COSTS}


def gate_passes(result: CaseResult) -> list[bool] | None:
    """Return for each round whether its new model was adopted; None without a gate."""
    gated = any(round_.gate_scores is not None for round_ in result.rounds)
    return [round_.adopted for round_ in result.rounds[1:]] if gated else None


def case_facts(result: CaseResult) -> dict[str, Value]:
    """Return the identity and status of a case: modules as `module.<type>`, hyperparameters as `hp.<name>`.

    The prefixes keep an author's names apart from ours.
    """
    case, adopted = result.case, gate_passes(result)
    return {
        "case": case.id,
        "row": case.row,
        "algorithm": case.algorithm,
        "seed": case.seed,
        "paradigm": case.paradigm,
        "dataset": result.dataset,
        "rounds": len(result.round_names),
        "status": result.status,
        "bound": result.bound,
        "doubt": result.doubt,
        "testenv": case.testenv,
        "role": case.role,
        "over_budget": "; ".join(result.over_budget),
        **({} if adopted is None else {"adopted": sum(adopted)}),
        **{f"module.{kind}": name for kind, name in case.modules},
        **{f"hp.{name}": value for name, value in shown_hyperparameters(case.hyperparameters).items()},
    }


def failure_facts(result: CaseResult) -> dict[str, str | None]:
    """Return error and message of a case; None each without a failure."""
    if result.failure is None:
        return {"error": None, "message": None}
    return {"error": describe_failure(result.failure), "message": result.failure.message}


def describe_failure(failure: Failure) -> str:
    """Return "RuntimeError", "killed by SIGKILL" or "timeout", to precede the message."""
    if failure.kind == "exception":
        return failure.error or "exception"
    if failure.kind == "killed":
        return f"killed by {failure.error}" if failure.error else "killed"
    return failure.kind if failure.error in ("", failure.kind) else f"{failure.kind} ({failure.error})"


def shown_log(log: Path | None, root: Path | None) -> str | None:
    """Return `log` relative to `root` if it is below it, else as a user would type it."""
    if log is None:
        return None
    if root is not None and log.is_relative_to(root):
        return log.relative_to(root).as_posix()
    return shown_path(log)


def utc(moment: str) -> datetime:
    """Return an ISO 8601 time in UTC; without an offset it is taken as UTC."""
    time = datetime.fromisoformat(moment)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _failed(result: CaseResult, root: Path | None) -> FailedCase:
    failure = result.failure or Failure("lost", "", "no reason was recorded")
    message = failure.message[:_LONGEST_MESSAGE]
    log, shown = failure.log, shown_log(failure.log, root)
    return FailedCase(result.case.id, result.case.seed, describe_failure(failure), message, log, shown)


def row_of(group: RowCases, seeds: int) -> LeaderboardRow:
    """Make a row. seeds: number of cases that belong to it."""
    expected = max(seeds, len(group.seen))
    complete = len(group.seeds) == expected
    order = np.argsort(group.seeds).tolist()
    by_seed = {name: tuple(values[i] for i in order) for name, values in group.metrics.items()} if complete else {}
    metrics = {name: summarise(values) for name, values in by_seed.items()}
    costs = {name: summarise(values) for name, values in group.costs.items()} if complete else {}
    modules: dict[str, str] = {}
    for kind, name in group.case.modules:
        modules[kind] = f"{modules[kind]}, {name}" if kind in modules else name
    if group.basemodel:
        modules["basemodel"] = group.basemodel
    return LeaderboardRow(
        id=group.case.row,
        algorithm=group.case.algorithm,
        paradigm=group.case.paradigm,
        rounds=group.rounds,
        dataset=group.dataset,
        modules=modules,
        hyperparameters=shown_hyperparameters(group.case.hyperparameters),
        seeds=tuple(sorted(group.seeds)),
        expected=expected,
        metrics=metrics,
        by_seed=by_seed,
        samples=_samples(group, order) if complete else {},
        test_samples=group.test_samples,
        costs=costs,
        tests=dict(_tests(group)) if complete else {},
        bound=group.bound,
        doubt=group.doubt,
        failures=tuple(group.failures),
        status=_status(group, expected, metrics),
        testenv=group.case.testenv,
        adopted=(sum(group.passes), len(group.passes)) if group.passes else None,
        over_budget=tuple(group.over_budget),
        urls=tuple(f"cases/{case_id}" for case_id in sorted(group.seen)),
        texts={name: "; ".join(texts) for name, texts in group.texts.items()} if complete else {},
        remarks=dict(sorted(group.remarks.items())),
        time=group.latest.strftime("%Y-%m-%d %H:%M:%S") if group.latest else "",
    )


def _tests(group: RowCases) -> Iterator[tuple[str, tuple[str, Summary, Summary]]]:
    for j, scores in group.tests.items():
        names, learned, final = zip(*scores, strict=True)
        yield common_name(names, "test set", j), (group.first_score, summarise(learned), summarise(final))


def _samples(group: RowCases, order: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Return group scores that all seeds have, with equal numbers of groups."""
    samples = {}
    for name, listed in group.samples.items():
        present = [values for i in order if (values := listed[i]) is not None]
        if len(present) == len(listed) and len({len(values) for values in present}) == 1:
            samples[name] = np.array(present)
    return samples


def _status(group: RowCases, expected: int, metrics: Mapping[str, Summary]) -> str:
    """Return the warnings of a row in one short line."""
    parts = []
    unfinished = expected - len(group.seeds) - len(group.failures)
    if group.failures:
        first = group.failures[0]
        log = f"; log {first.log_shown}" if first.log_shown else ""
        parts.append(f"{len(group.failures)} of {expected} failed: {first.text(_SHORT)}{log}")
    if unfinished:
        parts.append(f"{unfinished} of {expected} unfinished")
    if group.over_budget:
        parts.append(f"over the budget: {next(iter(group.over_budget))}")
    parts += group.warnings
    gaps = [name for name, summary in metrics.items() if 0 < summary.n < expected]
    parts += [f"{name} is missing in {expected - metrics[name].n} of {expected}" for name in gaps]
    parts += [f"{name} waits for its reference run" for name in group.waiting if name in metrics and name not in gaps]
    return "; ".join(["finished", *parts] if len(group.seeds) == expected else parts)
