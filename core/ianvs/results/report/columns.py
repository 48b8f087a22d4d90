"""The columns of a leaderboard, and the cells of those with published numbers.

Each column carries its meaning.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure
from ianvs.config.contracts import contract_named
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import PublishedSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import whole_of
from ianvs.results.report.aggregate_cases import RowCases
from ianvs.results.report.leaderboard_row import COSTS, LeaderboardRow
from ianvs.results.report.values import decimals_for, shown_number, signed_number
from ianvs.results.stats import Agreement, Summary, compare

_NamedByUser = Literal["metric", "metric_std", "published", "published_std", "agrees", "module", "hyperparameter"]
_About = Literal["algorithm", "testenv", "paradigm", "round", "dataset", "adopted", "tried", "seeds"]
_Last = Literal["pareto", "overlap", "cost", "status", "time", "url"]
Kind = Literal["rank", "rank_low", "rank_high", "tier", _NamedByUser, _About, _Last]


@dataclass(frozen=True)
class Column:
    """One column. `key` names what it shows: a metric's column, a module type, a hyperparameter or a cost.

    Attributes:
        full: The name of a hyperparameter with the type of its module, as in "basemodel-lr".
        only_in_csv: Whether only all_rank.csv shows it.
    """

    title: str
    kind: Kind
    key: str = ""
    meaning: str = ""
    higher_is_better: bool | None = None  # None: neither
    metric: Metric | None = field(default=None, compare=False, repr=False)  # only for a column of kind "metric"
    full: str = ""
    only_in_csv: bool = False


_RANK = (
    'place among those that play by the rules; "bound" is a reference, "over" went over the budget of the exam, '
    '"changed" was changed by its examination, "unsaved" is not what its save() wrote, '
    '"untrained" trained nothing, "-" no place'
)
_ALWAYS_SHOWN = ("train_seconds", "eval_seconds", "peak_memory_mb")
_MODULE = {"basemodel": "the network, where the plugin names it; else the name of its class in the algorithm's yaml"}
_ADOPTED = "rounds whose new model passed model_eval and replaced the one before, of all rounds of all seeds"


STANDING = (
    Column("Rank_low", "rank_low", meaning="1 + the number of methods that are surely better"),
    Column("Rank_high", "rank_high", meaning="the number of methods less those that are surely worse"),
    Column("Tier", "tier", meaning="A is the best; two methods of one tier are not separated"),
)


AGREES = (
    'the verdict (ours - published, its 95 % interval after Welch, in the unit of the column). "equal": the interval '
    'is inside the margin of the entry, 0.01 unless it names one; else "differs": the interval excludes 0; else '
    '"can\'t tell", and how many seeds of ours could, unless their runs are too few for any number. "no verdict": it '
    "says what is missing, and the interval is of our seeds alone"
)
_OVERLAP = "what its weights had been trained on before: samples of the exam, or its classes (docs/methods.md)"
_PARETO = (
    "no method that competes has a score that is no worse, no more training time and memory, and is better in one of "
    "them by more than noise (docs/statistics.md)"
)


def title_of(name: str) -> str:
    """Return `name` with its first letter in upper case: learning_rate -> Learning_rate.

    But epochs -> Epoch, as in Ianvs.
    """
    return "Epoch" if name == "epochs" else name[:1].upper() + name[1:]


def make_columns(
    metrics: Sequence[tuple[str, Metric]], cases: Sequence[RowCases], rows: Sequence[LeaderboardRow], *, chosen: bool
) -> Iterator[Column]:
    """Yield the columns of a leaderboard, in order; `with_distinct_titles` makes their titles unique.

    A cost that the testenv lists has no second column: it is among the metrics, under the title of the cost.

    Args:
        metrics: (column name, metric) in the testenv's order.
        cases: Those of `rows`, in the order of the plan.
        rows: The rows.
        chosen: Whether rows were selected from several configurations.
    """
    yield Column("Rank", "rank", meaning=_RANK)
    if any(row.standing for row in rows):
        # Whether intervals include the sampling error of the test samples.
        samples = all(row.standing_here for row in rows if row.standing)
        over = "over other seeds and other test samples" if samples else "over other seeds, on these test samples"
        for column in STANDING:
            yield replace(column, meaning=f"{column.meaning}, {over} (docs/statistics.md)")
    yield Column("Algorithm", "algorithm", meaning="name in the algorithm's yaml")
    if any(row.testenv for row in rows):
        yield Column("Testenv", "testenv", meaning="which testenv of the job; each has its own ranking")
    published = {name for row in rows for name in row.published}
    for name, metric in metrics:
        title = title_of(metric.name) if metric.level == "system" and metric.name in COSTS else name
        meaning = metric.summary or name
        if score := whole_of(name):
            meaning = f"{name.removeprefix(score).strip('[]')} of {score}: {meaning}"
        yield Column(title, "metric", name, meaning, metric.direction, metric)
        yield Column(f"{title}_std", "metric_std", name, f"sample standard deviation of {title} over seeds")
        if name in published:
            yield Column(f"{title}_published", "published", name, f"{title} as others published it", metric.direction)
            yield Column(f"{title}_published_std", "published_std", name, "its standard deviation over their runs")
            yield Column(f"{title}_agrees", "agrees", name, AGREES)
    yield Column("Paradigm", "paradigm", meaning="how a case is examined")
    yield Column("Round", "round", meaning="number of rounds")
    yield Column("Dataset", "dataset", meaning="name of the dataset")
    kinds = dict.fromkeys(kind for row in cases for kind, _ in row.case.modules)
    for kind in sorted(kinds, key=lambda kind: kind != "basemodel"):
        yield Column(title_of(kind), "module", kind, _MODULE.get(kind, f"class of the {kind}"))
    full = {name: row.case.with_module_type(name) for row in reversed(cases) for name in row.case.hyperparameters}
    for name in dict.fromkeys(name for row in cases for name in row.case.hyperparameters):
        yield Column(title_of(name), "hyperparameter", name, f"hyperparameter {name}", full=full[name])
    if any(row.adopted is not None for row in rows):
        yield Column("Adopted", "adopted", meaning=_ADOPTED)
    if chosen:
        yield Column("Tried", "tried", meaning="how many configurations it was chosen from")
    yield Column("Seeds", "seeds", meaning="n: number of finished seeds behind mean and std")
    if any(row.pareto for row in rows):
        yield Column("Pareto", "pareto", meaning=_PARETO)
    if any(row.overlap for row in rows):
        yield Column("Overlap", "overlap", meaning=_OVERLAP)
    measured = {key for row in rows for key in row.costs if row.cost(key) is not None}
    if "parameters" not in measured:  # without a network, speed is not worth a column
        measured.discard("inference_ms")
    shown = {*_ALWAYS_SHOWN, *measured} - {metric.name for _, metric in metrics if metric.level == "system"}
    costs: dict[str, Metric | Measure] = {key: metric for key, metric in COSTS.items() if key in shown}
    costs |= {key: measure for row in cases for key, measure in row.measures.items() if key not in COSTS}
    for key, cost in costs.items():
        yield Column(title_of(key), "cost", key, f"{cost.summary.rstrip('.')}. Mean over seeds")
    yield Column("Status", "status", meaning="finished, or what is missing and why")
    yield Column("Time", "time", meaning="when the row's last case ended, UTC")


def table_columns(columns: Iterable[Column], contract: str) -> tuple[Column, ...]:
    """Return the columns of all_rank.csv in the order of the plugins' contract.

    The native ones if it is not installed.
    """
    columns = [*columns, Column("url", "url", meaning="folder of the case, below the workspace")]
    try:
        shown = contract_named(contract)
    except PluginError:
        shown = contract_named(NATIVE)
    listed = shown.table([(c.kind, c.full or c.key, c.title) for c in columns])
    by_key: dict[tuple[str, str], Column] = {(column.kind, column.full or column.key): column for column in columns}
    return tuple(replace(by_key[kind, key], title=title) for kind, key, title in listed)


def with_distinct_titles(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Make titles unique, ignoring case.

    Fixed columns keep their titles: a hyperparameter `time` must not be mistaken for the column Time, nor the score
    `acc` for `ACC` over its matrix.
    """
    columns = list(columns)
    named_by_user = get_args(_NamedByUser)
    taken = {column.title.casefold() for column in columns if column.kind not in named_by_user}
    for kind in named_by_user:
        for position, column in enumerate(columns):
            if column.kind != kind:
                continue
            title = column.title
            while title.casefold() in taken:
                title = f"{title} ({kind})"
            taken.add(title.casefold())
            columns[position] = replace(column, title=title)
    return tuple(columns)


def published_summary(spec: PublishedSpec | None) -> Summary | None:
    """Return the published mean in the unit of our column; n is 0 if it is unknown."""
    return None if spec is None else Summary(*spec.in_our_unit()[:2], spec.n or 0)


def agreement(ours: Summary | None, spec: PublishedSpec | None) -> str | None:
    """Return "equal (+0.002, -0.005 to 0.009)" or "can't tell (+0.038, -0.029 to 0.105; 31 seeds could)"."""
    theirs = published_summary(spec)
    if ours is None or ours.mean is None or spec is None or theirs is None:
        return None
    margin = spec.in_our_unit()[2]
    result = compare(ours, theirs, margin)
    verdict, aside = agreement_words(result)
    decimals = decimals_for(margin)
    difference = signed_number(result.difference, decimals)
    if result.low is not None and result.high is not None:
        difference += f", {shown_number(result.low, decimals)} to {shown_number(result.high, decimals)}"
    return f"{verdict} ({'; '.join(filter(None, (difference, aside)))})"


def agreement_words(result: Agreement) -> tuple[str, str]:
    """Return the verdict and its qualification."""
    if result.verdict != "can't tell":
        return result.verdict or "no verdict", result.missing
    return result.verdict, "theirs are too few" if result.seeds is None else f"{result.seeds} seeds could"
