"""Scores that measure how far a wrong answer is from the truth in the dataset's tree of classes.

depth(n): edges from the root to node n. height(n): edges of the longest path from it down to a leaf. lca(y, a): the
lowest node above, or equal to, both the true class y and the answer a. Classes may be inner nodes. An answer that is no
class (-1 for "unseen", an ignored pixel) counts as the root. Without any sample every score is nan.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.config.models.class_tree import ClassTree
from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord, Metric

Counts = NDArray[np.int64]
DEPTHS = range(1, 7)  # levels below the root; a biological tree from kingdoms down has a seventh, the species
_BERTINETTO = "Bertinetto et al. 2020 (Making better mistakes, CVPR, arXiv 1912.09393)"
_KIRITCHENKO = "Kiritchenko et al. 2006 (Canadian AI), ancestors without the root; Silla & Freitas 2011 (DMKD 22)"


class _Answers(NamedTuple):
    """Arrays of equal length, with an entry for each sample, or for each counted pair of classes.

    common, height: depth and height of the lowest common ancestor.
    """

    samples: Counts
    wrong: Counts
    depth_true: Counts
    depth_answered: Counts
    common: Counts
    height: Counts


@lru_cache(maxsize=8)  # a case scores thousands of records with one tree
def _paths(tree: ClassTree, classes: tuple[str, ...]) -> tuple[Counts, Counts]:
    """Return paths and heights.

    Paths: (C+1, D) nodes from the root to each class, -1 after it; the last row is for answers that are no class.
    Heights: by node.
    """
    parents = dict(tree)
    named = [[name] for name in (*classes, *parents)]
    for path in named:
        while path[0] in parents:
            path.insert(0, parents[path[0]])
    nodes = {name: index for index, name in enumerate(dict.fromkeys(name for path in named for name in path))}
    heights = np.zeros(len(nodes), dtype=np.int64)
    for path in named:
        for above, name in enumerate(reversed(path)):
            heights[nodes[name]] = max(heights[nodes[name]], above)
    paths = np.full((len(classes) + 1, max(map(len, named))), -1, dtype=np.int64)
    for row, path in zip(paths, [*named[: len(classes)], named[0][:1]], strict=True):
        row[: len(path)] = [nodes[name] for name in path]
    return paths, heights


def _compared(record: EvaluationRecord, true: Counts, answered: Counts) -> Counts:
    """Return (N, 5) for these pairs of classes: the fields of `_Answers` after the first."""
    paths, heights = _paths(record.column("hierarchy"), record.classes)
    depths = (paths >= 0).sum(axis=1) - 1
    alike = np.logical_and.accumulate((paths[true] == paths[answered]) & (paths[true] >= 0), axis=1)
    common = alike.sum(axis=1) - 1
    columns = (true != answered, depths[true], depths[answered], common, heights[paths[true, common]])
    return np.stack(columns, axis=1, dtype=np.int64)


def _answers(record: EvaluationRecord) -> _Answers:
    if record.counts is not None:
        true, answered = np.nonzero(record.counts)
        return _Answers(record.counts[true, answered], *_compared(record, true, answered).T)
    rows = record.by_sample("hierarchy", lambda whole: _compared(whole, *whole.class_indices))
    return _Answers(np.ones(len(rows), dtype=np.int64), *rows.T)


def _share(part: Counts, whole: Counts) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() else float("nan")


def _accuracy_at(depth: int) -> Metric:
    @score_metric(
        f"accuracy_at_depth_{depth}",
        aliases=("superclass_accuracy",) if depth == 1 else (),
        needs=("hierarchy",),
        formula=f"|{{n: A(y_pred[n]) = A(y_true[n])}}| / N, A(c) the ancestor of c at depth {depth}, or c if that is "
        "not deeper",
        source="ianvs; at depth 1 accuracy on superclasses, as on the 20 of CIFAR-100 (Krizhevsky 2009)",
    )
    def accuracy_at_depth(record: EvaluationRecord) -> float:
        """Share of answers that have the ancestor of the truth at this depth below the root of the hierarchy."""
        answers = _answers(record)
        return _share(answers.samples * ((answers.common >= depth) | (answers.wrong == 0)), answers.samples)

    return accuracy_at_depth


AT_DEPTHS = tuple(map(_accuracy_at, DEPTHS))


@score_metric(
    "lca_height",
    higher_is_better=False,
    needs=("hierarchy",),
    formula="mean_n height(lca(y_true[n], y_pred[n]))",
    source=f"hierarchical distance of {_BERTINETTO}, over all samples; Deng et al. 2010 (ECCV)",
)
def lca_height(record: EvaluationRecord) -> float:
    """Mean height of the lowest common ancestor of truth and answer, 0 for a right answer that is a leaf."""
    answers = _answers(record)
    return _share(answers.samples * answers.height, answers.samples)


@score_metric(
    "mistake_severity",
    higher_is_better=False,
    partial=True,
    needs=("hierarchy",),
    formula="mean height(lca(y_true[n], y_pred[n])) over n with y_pred[n] != y_true[n]",
    source=_BERTINETTO,
)
def mistake_severity(record: EvaluationRecord) -> float:
    """Mean height of the lowest common ancestor of truth and answer over wrong answers; nan if there are none."""
    answers = _answers(record)
    wrong = answers.samples * answers.wrong
    return _share(wrong * answers.height, wrong)


@score_metric(
    "tree_distance",
    higher_is_better=False,
    needs=("hierarchy",),
    formula="mean_n depth(y_true[n]) + depth(y_pred[n]) - 2 depth(lca(y_true[n], y_pred[n]))",
    source="tree-induced error, Dekel et al. 2004 (Large margin hierarchical classification, ICML)",
)
def tree_distance(record: EvaluationRecord) -> float:
    """Mean number of edges between truth and answer in the hierarchy."""
    answers = _answers(record)
    return _share(answers.samples * (answers.depth_true + answers.depth_answered - 2 * answers.common), answers.samples)


@score_metric(
    "hP",
    needs=("hierarchy",),
    formula="sum_n |A(y_true[n]) & A(y_pred[n])| / sum_n |A(y_pred[n])|, A(c) = {c and its ancestors} - {root}",
    source=_KIRITCHENKO,
)
def hierarchical_precision(record: EvaluationRecord) -> float:
    """Hierarchical precision: share of the answers' ancestors that are ancestors of the truth, over all samples."""
    answers = _answers(record)
    return _share(answers.samples * answers.common, answers.samples * answers.depth_answered)


@score_metric(
    "hR",
    needs=("hierarchy",),
    formula="sum_n |A(y_true[n]) & A(y_pred[n])| / sum_n |A(y_true[n])|, A(c) = {c and its ancestors} - {root}",
    source=_KIRITCHENKO,
)
def hierarchical_recall(record: EvaluationRecord) -> float:
    """Hierarchical recall: share of the truths' ancestors that are ancestors of the answer, over all samples."""
    answers = _answers(record)
    return _share(answers.samples * answers.common, answers.samples * answers.depth_true)


@score_metric(
    "hF1",
    needs=("hierarchy",),
    formula="2 hP hR / (hP + hR)",
    source=_KIRITCHENKO,
)
def hierarchical_f1(record: EvaluationRecord) -> float:
    """Harmonic mean of hierarchical precision and recall."""
    answers = _answers(record)
    return _share(2 * answers.samples * answers.common, answers.samples * (answers.depth_true + answers.depth_answered))
