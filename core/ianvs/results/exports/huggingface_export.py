"""`--to huggingface`: a dataset of results and model cards, as folders that can be pushed. Nothing is uploaded."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from huggingface_hub import DatasetCardData, EvalResult, ModelCardData

from ianvs.base.types import CaseResult
from ianvs.exam.metrics.metric import Metric
from ianvs.results.exports.case_runs import leaderboard_markdown, matrix_table, notes_list, run_name
from ianvs.results.exports.parquet_export import write_tables
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import provenance_facts, shown_hyperparameters, shown_number
from ianvs.results.stored import Results
from ianvs.store import CaseStore, ExamStore

_TASKS = {
    "classification": "image-classification",
    "segmentation": "image-segmentation",
    "text": "text-generation",
    "conversation": "text-generation",
}
"""Hugging Face's name of a task, by data type."""

_BETTER = {True: "more", False: "less", None: ""}


def write(results: Results, folder: Path) -> None:
    """Write `folder`/dataset (tables, README.md) and `folder`/models/<case>/README.md of each algorithm's best row.

    The card of a row describes its median case by the metric that the leaderboard ranks by (the lower one of an even
    number), so that no card shows a lucky run.
    """
    data, models = folder / "dataset", folder / "models"
    data.mkdir()
    columns = write_tables(results, data, to="huggingface")
    chosen = {_median_case(row, results): row for row in _best_rows(results)}
    # Cases of the leaderboard, after a selection.
    finished = {(r.case.id, r.case.algorithm): r for r in results.reported if r.status == "finished"}
    reported = {key: finished[key] for key in chosen if key in finished}
    (data / "README.md").write_text(dataset_card(results, columns, _task(results, next(iter(reported.values()), None))))
    for key, result in reported.items():
        case_folder = models / run_name(result.case)
        case_folder.mkdir(parents=True)
        card = model_card(results, chosen[key], result, _task(results, result))
        (case_folder / "README.md").write_text(card)


def _best_rows(results: Results) -> Iterable[LeaderboardRow]:
    """Yield the best complete row of each algorithm in each exam, without upper bounds."""
    best: dict[tuple[str, str], LeaderboardRow] = {}
    for row in results.leaderboard.rows:
        if row.rank is not None:
            best.setdefault((row.testenv, row.algorithm), row)
    return best.values()


def _median_case(row: LeaderboardRow, results: Results) -> tuple[str, str]:
    """Return (id, algorithm) of the median case."""
    ids = {(c.row, c.algorithm, c.seed): c.id for c in results.case_list if c.testenv == row.testenv}
    name, descending = results.leaderboard.sort_by[0]
    scores = {seed: value for seed, value in zip(row.seeds, row.by_seed[name], strict=True) if value is not None}
    from_worst = sorted(scores, key=lambda seed: (scores[seed], seed), reverse=not descending)
    return ids[row.id, row.algorithm, from_worst[(len(from_worst) - 1) // 2]], row.algorithm


def _task(results: Results, result: CaseResult | None) -> str:
    identity = None if result is None else CaseStore(results.workspace).identity(result.case.id)
    exam = ExamStore(results.workspace).record(str(identity.get("exam_id", ""))) if identity else None
    return _TASKS.get(exam.kind, "other") if exam is not None else "other"


_TABLES = {
    "leaderboard": "a row for each algorithm and choice of hyperparameters, in ranked order",
    "cases": "a row for each case: one algorithm, one choice of hyperparameters, one seed",
    "scores": "a row for each case, metric, round and test set",
    "rounds": "a row for each case and round: what it cost",
    "notes": "a row for each thing to know beside the numbers",
}


def dataset_card(results: Results, columns: Mapping[str, Mapping[str, str]], task: str) -> str:
    """Return the card of the dataset. columns: {table: {column: its meaning}}."""
    data = DatasetCardData(
        pretty_name=f"Results of {results.name}",
        task_categories=[task] if task != "other" else None,
        tags=["continual-learning", "benchmark", "ianvs"],
        configs=[{"config_name": name, "data_files": f"{name}.parquet"} for name in columns],
    )
    parts = [
        f"# Results of {results.name}",
        "What algorithms for continual learning scored in an exam, measured by ianvs: the ranking, every case behind "
        "it, every score after every round, and what each round cost.",
        "## Leaderboard",
        leaderboard_markdown(results),
        *results.leaderboard.statements,
        notes_list(results),
        "## Tables",
    ]
    for table, meanings in columns.items():
        parts.append(f"### {table}.parquet\n\n{_TABLES[table]}\n\n{_listed('column', 'meaning', meanings)}")
    parts.append(_provenance(results.provenance))
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(parts) + "\n"


def model_card(results: Results, row: LeaderboardRow, result: CaseResult, task: str) -> str:
    """Return the card of the final model of `result`, a case of `row`."""
    case = result.case
    metrics = {c.name: c.metric for c in results.metrics.get(case.testenv, ())}
    exam = case.testenv or results.name
    name = f"{case.algorithm} on {exam}"
    results_of_metrics = [
        EvalResult(
            task_type=task,
            dataset_type=result.dataset or exam,
            dataset_name=exam,
            metric_type=column,
            metric_name=column,
            metric_value=value,
            dataset_args={"rounds": len(result.round_names), "seed": case.seed},
        )
        for column in results.columns
        if (value := result.metrics.get(column)) is not None
    ]
    data = ModelCardData(
        model_name=name,
        tags=["continual-learning", "ianvs"],
        pipeline_tag=task if task != "other" else None,
        eval_results=results_of_metrics or None,
    )
    settings = shown_hyperparameters(case.hyperparameters)
    matrices = [f"### {score}\n\n{matrix_table(matrix)}" for score, matrix in result.matrices.items()]
    parts = [
        f"# {name}",
        f"The model that {case.algorithm} ended with after {len(result.round_names)} rounds of {exam}: case "
        f"`{case.id[:8]}`, seed {case.seed}, the median of {len(row.seeds)} by what the leaderboard ranks by. The row "
        f"took rank {row.rank}. Its weights are not in this folder; ianvs keeps what the learner saved in the case's.",
        "## Scores",
        _scores(row, result, metrics, results),
        "After each round, on each test set:" if matrices else "",
        *matrices,
        "## How it was trained",
        f"Paradigm {case.paradigm}, dataset {result.dataset}, "
        + ", ".join(f"{kind} `{module}`" for kind, module in case.modules)
        + ".",
        _listed("hyperparameter", "value", settings) if settings else "",
        *([f"What a reader must know: {'; '.join(result.warnings)}."] if result.warnings else ()),
        "## Limits",
        "It was trained to be examined, on this exam alone. The scores say nothing of other data.",
        _provenance(result.provenance or results.provenance, results.provenance.get("command")),
    ]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(filter(None, parts)) + "\n"


def _scores(row: LeaderboardRow, result: CaseResult, metrics: Mapping[str, Metric], results: Results) -> str:
    lines = ["| metric | this case | mean of all seeds | standard deviation | better |", "|---|---:|---:|---:|---|"]
    for column in results.columns:
        value, summary = result.metrics.get(column), row.metrics.get(column)
        if column not in metrics or value is None:
            continue
        over = [None, None] if summary is None else [summary.mean, summary.std]
        numbers = ["" if number is None else shown_number(number, 4) for number in (value, *over)]
        lines.append(f"| {_cell(column)} | {' | '.join(numbers)} | {_BETTER[metrics[column].direction]} |")
    return "\n".join(lines)


def _provenance(provenance: Mapping[str, object], command: object = None) -> str:
    facts = {"Command": str(command or provenance.get("command") or ""), **provenance_facts(provenance)}
    return "## Provenance\n\n" + "\n".join(f"- {name}: {fact}" for name, fact in facts.items() if fact)


def _listed(key_head: str, value_head: str, entries: Mapping[str, object]) -> str:
    rows = (f"| `{name}` | {_cell(str(value))} |" for name, value in entries.items())
    return "\n".join([f"| {key_head} | {value_head} |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
