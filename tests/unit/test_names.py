"""No variable, function or module has a name that says nothing of what it holds (CONTRIBUTING, "How we write")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "core"

BANNED = {
    *("anew", "asked", "dear", "found", "handed", "here", "kept", "known", "lent", "lies", "of"),
    *("one", "own", "said", "stands", "telling", "there", "told", "what", "who", "whose", "wild"),
}
# Names that authors' files and stored files use, and others that have not been renamed yet. Nothing is added here.
ALLOWED = {
    "authoring/fisher.py": "of",
    "authoring/replay_learner.py": "known told",
    "authoring/sample_gradients.py": "known",
    "base/errors.py": "of",
    "base/kept_pictures.py": "kept of",
    "base/secrets.py": "known",
    "base/types.py": "of told",
    "cli/ianvs_examples/one_example.py": "whose",
    "config/models/testenv.py": "asked of",
    "config/overrides.py": "said",
    "exam/data/__init__.py": "known",
    "exam/data/cache_entries.py": "what",
    "exam/data/conversation_forms.py": "known of",
    "exam/data/conversation_pictures.py": "known of",
    "exam/data/labels.py": "of",
    "exam/data/parts.py": "kept told",
    "exam/data_types/data_type.py": "kept told",
    "exam/metrics/metric.py": "kept of",
    "exam/metrics/metric_columns.py": "of",
    "exam/metrics/stream_record.py": "said",
    "exam/paradigms/test_time.py": "asked told",
    "exam/questions/question.py": "kept said",
    "exam/scenarios/build.py": "known",
    "exam/scenarios/exam.py": "asked",
    "exam/scenarios/feedback_view.py": "told",
    "exam/scenarios/manifest.py": "asked",
    "results/comparing/merging.py": "said",
    "running/inspector/inspector.py": "here known",
    "running/inspector/plugin_check.py": "asked",
    "running/planning/cases.py": "said",
    "running/planning/references.py": "of",
    "running/planning/stored_cases.py": "said",
    "running/planning/studies.py": "said",
    "running/progress.py": "told",
    "running/scheduler/case_loop.py": "told",
    "running/scheduler/scorer.py": "own",
    "running/scoring.py": "of",
    "store/job_store.py": "said",
}
LINKS = ("configs", "testalgorithms", "testenv")  # in a checkout, to folders beside core


def names_bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, line) of all that a module binds: variables, parameters, attributes, functions, classes, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, getattr(node, "lineno", 0)


def banned_in(source: str) -> list[str]:
    return [f"{line}: {name}" for name, line in names_bound(ast.parse(source)) if name.strip("_") in BANNED]


def modules() -> list[Path]:
    return [path for path in sorted((CORE / "ianvs").rglob("*.py")) if path.relative_to(CORE).parts[1] not in LINKS]


def test_names_say_what_they_hold() -> None:
    wrong = []
    for path in modules():
        place = path.relative_to(CORE / "ianvs").as_posix()
        allowed = set(ALLOWED.get(place, "").split())
        bound = names_bound(ast.parse(path.read_text(encoding="utf-8")))
        wrong += [
            f"{place}:{line}: {name}"
            for name, line in bound
            if (plain := name.strip("_")) in BANNED and plain not in allowed
        ]
        if path.stem in BANNED:
            wrong.append(place)
    assert not wrong


def test_no_exception_outlives_its_name() -> None:
    for place, names in ALLOWED.items():
        bound = {name.strip("_") for name, _ in names_bound(ast.parse((CORE / "ianvs" / place).read_text("utf-8")))}
        assert set(names.split()) <= bound, place


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def f(told): ...", "def asked(): ...", "for one in (): ...", "import json as said", "x.known = 1"],
)
def test_each_kind_of_binding_is_seen(source: str) -> None:
    assert banned_in(source)
