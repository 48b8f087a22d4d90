"""Notes below a leaderboard, created once and shown by every view."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ianvs.exam.metrics.metric_columns import whole_of
from ianvs.results.report.columns import AGREES
from ianvs.results.report.document import FailureGroup, Note
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import FailedCase, LeaderboardRow
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.ranking_table import mean_and_spread, varied
from ianvs.results.report.values import method_name
from ianvs.results.stats.standing import unseen_failure, unsteady_methods

_SHOWN = 3  # subjects of one note


def notes_of(leaderboard: Leaderboard) -> tuple[Note, ...]:
    """Return all notes: the job's (`Leaderboard.notes`), the basis and certainty of the ranking, and warnings."""
    return (*_merged([*leaderboard.notes, *_notes(leaderboard)]), *_definitions(leaderboard))


def _merged(notes: Sequence[Note]) -> list[Note]:
    """Merge equal notes of several rows into one with their number."""
    same: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        same.setdefault((note.kind, note.text), []).append(note)
    merged = []
    for first, *others in same.values():
        subjects = list(dict.fromkeys(note.subject for note in (first, *others) if note.subject))
        more = f" and {len(subjects) - _SHOWN + 1} more" if len(subjects) > _SHOWN else ""
        merged.append(replace(first, subject=f"{'; '.join(subjects[: _SHOWN - 1 if more else _SHOWN])}{more}"))
    return merged


def _notes(leaderboard: Leaderboard) -> Iterator[Note]:
    yield from _partial(leaderboard)
    yield from _leaders(leaderboard)
    yield from _ranked_by(leaderboard)
    yield from (Note("statement", sentence) for sentence in leaderboard.statements)
    yield from (note for significance in leaderboard.significance for note in _limits(significance))
    yield from _unstable_rows(leaderboard)
    yield from _bounds(leaderboard)
    if stuck := [_full_name(row) for row in leaderboard.rows if row.adopted is not None and not row.adopted[0]]:
        yield Note("gate", f"Scores of the untrained model, since model_eval adopted no other: {'; '.join(stuck)}.")
    # Complete rows may still lack a metric for some seeds.
    odd = [row for row in leaderboard.rows if row.complete and row.status != "finished"]
    yield from (Note("row", f"{row.status.rstrip('.')}.", _full_name(row), "row") for row in odd)
    for row in leaderboard.rows:
        if row.overlap:
            text = f"Its weights were trained on {row.overlap}: these were not new to it."
            yield Note("row", text, method_name(row.algorithm, row.testenv), "row")
    seeds = sorted({seed for row in leaderboard.rows for seed in (*row.seeds, *(f.seed for f in row.failures))})
    if seeds:
        yield Note("seeds", f"Seeds: {', '.join(map(str, seeds))}.")
    yield from (Note("published", sentence) for sentence in _published(leaderboard))
    yield from _training_notes(leaderboard)
    for group in failures_of(leaderboard):
        remedy = f"`ianvs logs {group.first.id[:8]}` shows more." if group.first else ""
        yield Note("failed", group.reason, group.which, "case", remedy)


def _partial(leaderboard: Leaderboard) -> Iterator[Note]:
    """Yield the number of rows that lack cases, reference runs included."""
    rows = [*leaderboard.rows, *leaderboard.references]
    if lacking := [row for row in rows if not row.complete]:
        counts = {
            "failed": sum(len(row.failures) for row in lacking),
            "not finished": sum(row.waiting for row in lacking),
        }
        parts = [f"{count} case{'s' * (count > 1)} {state}" for state, count in counts.items() if count]
        of_rows = f"{len(rows) - len(lacking)} of {len(rows)} row{'s' * (len(rows) > 1)}"
        remedy = "`ianvs run` completes them; without all cases a row has no rank."
        yield Note("partial", f"{of_rows} complete: {', '.join(parts)}.", remedy=remedy)


def _leaders(leaderboard: Leaderboard) -> Iterator[Note]:
    """Describe the first row of each exam, and how certain its rank is."""
    metrics, names = [name for name, _ in leaderboard.sort_by], leaderboard.row_names
    exams = dict.fromkeys(row.testenv for row in leaderboard.rows)
    for exam in exams:
        rows = [row for row in leaderboard.rows if row.testenv == exam]
        if not (ranked := [row for row in rows if row.rank is not None]):
            continue
        first = ranked[0]
        tied, others = ([row for row in ranked if (row.rank == first.rank) is ties] for ties in (True, False))
        metric = next(name for name in metrics if first.mean(name) is not None)
        near = [row for row in others if row.to_best is None or not row.to_best.separated]
        if not others:
            sure = "it is the only row with a rank" if len(tied) == 1 else "no other row has a rank"
        elif first.standing is None:
            sure = "one seed can't say how sure that is" if leaderboard.seeds == 1 else "how sure that is can't be said"
        elif near:
            few = len(near) <= _SHOWN
            listed = (
                ", ".join(names[row.id, row.algorithm] for row in near)
                if few
                else f"{len(near)} of the {len(others)} others"
            )
            sure = f"not separated from {'it' if len(tied) == 1 else 'them'}: {listed}"
        else:
            sure = "separated from the next" if len(others) == 1 else f"separated from the {len(others)} others"
        leads = "leads so far" if any(row.waiting for row in rows) else "leads"
        score = mean_and_spread(first.metrics[metric], 3)
        leading = names[first.id, first.algorithm]
        if len(tied) > 1:
            leading, leads = f"{len(tied)} rows", leads.replace("leads", "lead")
            if len(tied) <= _SHOWN:
                leading = " and ".join(names[row.id, row.algorithm] for row in tied)
        text = f"{leading} {leads} with {metric} {score}; {sure}."
        yield Note("leader", text, exam if len(exams) > 1 else "", "testenv")


def _ranked_by(leaderboard: Leaderboard) -> Iterator[Note]:
    better = {column.key: column.higher_is_better for column in leaderboard.columns if column.kind == "metric"}

    def direction(name: str, descending: bool) -> str:
        if better.get(name, descending) is descending:
            return f"{'higher' if descending else 'lower'} is better"
        return "descending" if descending else "ascending"

    if keys := [f"{name} ({direction(name, descending)})" for name, descending in leaderboard.sort_by]:
        many = f"Mean ± sample standard deviation over {leaderboard.seeds} seeds."
        spread = many if leaderboard.seeds > 1 else "One seed: nothing is known of the spread."
        yield Note("ranked by", f"Ranked by {', then '.join(keys)}. {spread}")


def _limits(significance: ExamSignificance) -> Iterator[Note]:
    """Describe the sources of variance that an exam's intervals do not include."""
    fewest = significance.counts[0]
    rare = f"A failure that {fewest} seed{'s have' if fewest > 1 else ' has'} not shown may still be as probable as "
    sentences = [f"{rare}{100 * unseen_failure(fewest):.0f} %."]
    if fewest == 2:
        sentences.append("Two seeds separate next to nothing: run a third.")
    if fewest == 4 and significance.pairs.apart.any():
        sentences.append("From a fifth seed on variances are pooled by their median, which can undo a separation.")
    yield from (Note("limit", sentence, significance.testenv, "testenv") for sentence in sentences)
    for row, seeds in significance.outliers.items():
        scores = [score for score in significance.scores[:, row].tolist() if score == score]
        far, every = (", ".join(f"{score:.4g}" for score in some) for some in (significance.scores[seeds, row], scores))
        collapsed = (
            f"{len(seeds)} of {len(scores)} scores {'is' if len(seeds) == 1 else 'are'} far from their median ({far}; "
            f"all: {every}); intervals take scores for normal draws, which these are not."
        )
        yield Note("limit", collapsed, method_name(significance.rows[row], significance.testenv), "row")


def _unstable_rows(leaderboard: Leaderboard) -> Iterator[Note]:
    """Yield rows whose seeds differ so much that their settings may be unstable."""
    metric = leaderboard.sort_by[0][0] if leaderboard.sort_by else ""
    explained = {significance.keys[row] for significance in leaderboard.significance for row in significance.outliers}
    for exam in dict.fromkeys(row.testenv for row in leaderboard.rows):
        rows = [row for row in leaderboard.rows if row.testenv == exam and row.mean(metric) is not None]
        means = np.array([row.metrics[metric].mean for row in rows], np.float64)
        spreads = np.array([row.metrics[metric].std for row in rows], np.float64)  # nan for None
        for row in (rows[i] for i in unsteady_methods(means, spreads)):
            if (row.id, row.algorithm) in explained:
                continue
            scores = [score for score in row.by_seed[metric] if score is not None]
            text = (
                f"{metric} is {min(scores):.4g} to {max(scores):.4g} over {len(scores)} seeds, far more spread than "
                "the other rows have or a stable training would: its settings may be unstable."
            )
            remedy = "Look at its training loss, and try a fifth of its learning rate."
            yield Note("limit", text, method_name(row.named(varied(leaderboard)), row.testenv), "row", remedy)


def _bounds(leaderboard: Leaderboard) -> Iterator[Note]:
    several = {row.testenv for row in leaderboard.rows if row.rounds > 1}
    saw: dict[str, list[str]] = {}
    for row in leaderboard.rows:
        if row.bound:
            at_once = row.rounds == 1 and row.testenv in several
            advantage = "saw all rounds at once" if at_once else "was given earlier rounds"
            saw.setdefault(advantage, []).append(row.algorithm)
    if reasons := [f"{', '.join(dict.fromkeys(names))} {advantage}" for advantage, names in saw.items()]:
        yield Note("bound", f"bound: {'; '.join(reasons)}: a reference, not a competitor; it takes no rank.")


def _full_name(row: LeaderboardRow) -> str:
    return f"{method_name(row.algorithm, row.testenv)} ({row.settings() or 'no hyperparameters'})"


def _published(leaderboard: Leaderboard) -> list[str]:
    """Return a line for each published number with its source, without duplicates."""
    shown = [column.key for column in leaderboard.columns if column.kind == "published"]
    lines: dict[str, None] = {}
    for row in leaderboard.rows:
        for name in (name for name in shown if name in row.published):
            spec = row.published[name]
            mean, std, margin = spec.in_our_unit()
            spread = "" if std is None else f" ± {std:.4g}"
            runs = "" if spec.n is None else f", {spec.n} runs"
            lines[f"{row.algorithm}, {name}: {mean:.4g}{spread}{runs}, margin {margin:g}: {spec.source}"] = None
    return list(lines)


def _training_notes(leaderboard: Leaderboard) -> Iterator[Note]:
    """Yield the notes on the training of a row's cases."""
    differing = varied(leaderboard)
    for row in leaderboard.rows:
        which = ", ".join(filter(None, (row.testenv, row.settings(differing))))
        name = f"{row.algorithm} ({which})" if which else row.algorithm
        seeds: dict[str, list[int]] = {}
        for seed, remark in row.remarks.items():
            seeds.setdefault(remark, []).append(seed)
        yield from (
            Note("remark", remark, f"{name}, {_seeds(row_seeds)}", "case") for remark, row_seeds in seeds.items()
        )


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def _definitions(leaderboard: Leaderboard) -> Iterator[Note]:
    """Yield the definition of each metric column, and notes on published numbers."""
    from ianvs.exam.metrics.table import legend

    metrics = [
        (whole_of(column.key) or column.key, column.metric)
        for column in leaderboard.columns
        if column.metric is not None
    ]
    yield from (Note("definition", line) for line in legend(metrics))
    if any(row.published for row in leaderboard.rows):
        yield Note("definition", AGREES, "agrees")


def failures_of(leaderboard: Leaderboard) -> Iterator[FailureGroup]:
    """Yield distinct reasons in the order of the rows."""
    by_reason: dict[str, list[tuple[LeaderboardRow, FailedCase]]] = {}
    for row, failure in leaderboard.failures:
        by_reason.setdefault(failure.text(200), []).append((row, failure))
    for reason, cases in by_reason.items():
        first = next((failure for _, failure in cases if failure.log is not None), None)
        yield FailureGroup(_cases_text(cases), reason, len(cases), first)


def _cases_text(cases: Sequence[tuple[LeaderboardRow, FailedCase]]) -> str:
    """Return "ewc (strength=100; seeds 0, 1)", or "8 cases of ewc, lwf" if they belong to several rows."""
    rows = list({row.id: row for row, _ in cases}.values())
    names = list(dict.fromkeys(method_name(row.algorithm, row.testenv) for row, _ in cases))
    if len(rows) > 1:
        return f"{len(cases)} cases of {', '.join(names)}"
    seeds = _seeds([failure.seed for _, failure in cases])
    return f"{names[0]} ({'; '.join(filter(None, (rows[0].settings(), seeds)))})"
