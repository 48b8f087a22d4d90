"""The names that files may use (algorithms, scenarios, metrics, datasets, data types, ...), a line for each.

The line is the first sentence of the docstring, read from the source file without importing it: importing torch takes
seconds.
"""

import ast
import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path

from ianvs.base.entry_points import installed, is_ours
from ianvs.base.method_names import aliases_of
from ianvs.base.package import PACKAGE, shipped_jobs

_NETWORKS = {
    "linear": "networks:linear",
    "mlp": "networks:mlp",
    "resnet": "networks:resnet",
    "vit": "networks:small_vit",
}


@dataclass(frozen=True)
class Entry:
    """A thing with a name. aliases: other names. url: the `url` that a file must give where the name is not enough.

    value: the location of its code, in the form of an entry point; "" if the code is found in another way.
    """

    kind: str
    name: str
    summary: str
    url: str = ""
    value: str = ""
    package: str = ""  # the package that provides it, unless that is ianvs
    aliases: tuple[str, ...] = ()


def listed(kind: str) -> list[Entry]:
    """Return all entries of a kind, such as "algorithms"."""
    return list(_KINDS[kind]())


def _algorithms() -> Iterator[Entry]:
    for entry in _installed("algorithm", "ianvs.algorithms"):
        yield replace(entry, aliases=aliases_of(entry.name, None))
    registered = {point.value for point in installed("ianvs.algorithms").values()}
    carried = PACKAGE / "testalgorithms"
    for file in sorted(carried.rglob("basemodel.py")):
        module = ".".join((PACKAGE.name, "testalgorithms", *file.relative_to(carried).with_suffix("").parts))
        for name, summary in learners_of(file):
            if f"{module}:{name}" not in registered:
                aliases = aliases_of(name, module)
                yield Entry("algorithm", name, summary, module, f"{module}:{name}", aliases=aliases)


def _installed(kind: str, group: str) -> Iterator[Entry]:
    for name, point in installed(group).items():
        yield Entry(kind, name, entry_summary(point.value), value=point.value, package=_package(point))


def _package(point: EntryPoint) -> str:
    return "" if is_ours(point) or point.dist is None else point.dist.name


def _metrics() -> Iterator[Entry]:
    from ianvs.exam.metrics.metric_names import aliases_of as in_papers
    from ianvs.exam.metrics.registry import metrics

    for metric in metrics():
        names = (*metric.aliases, *in_papers(metric.name))
        yield Entry("metric", metric.name, metric.summary.rstrip("."), aliases=names)


def _datasets() -> Iterator[Entry]:
    for name, point in installed("ianvs.datasets").items():
        summary = str(getattr(point.load(), "summary", "")) if is_ours(point) else entry_summary(point.value)
        yield Entry("dataset", name, summary, value=point.value, package=_package(point))


def _networks() -> Iterator[Entry]:
    from ianvs.authoring.backbones import torchvision_names

    for name, function in _NETWORKS.items():
        value = f"ianvs.authoring.{function}"
        summary = entry_summary(value).partition(": ")[2]  # the shapes stand before
        yield Entry("network", name, summary, value=value)
    for name in torchvision_names():
        yield Entry(
            "network",
            name,
            "torchvision's network of that name; for its `weights` see docs/methods.md",
        )
    yield Entry("network", "timm/NAME", "any network of timm, for images")
    yield Entry("network", "hf/NAME", "any network of Hugging Face for images, or the folder of one")


def _paradigms() -> Iterator[Entry]:
    from ianvs.exam.paradigms import GROUP, PARADIGMS

    for name, paradigm in PARADIGMS.items():
        value = f"{paradigm.__module__}:{paradigm.__qualname__}"
        yield Entry("paradigm", name, entry_summary(value), value=value)
    yield from _installed("paradigm", GROUP)


def _jobs() -> Iterator[Entry]:
    for name, file in shipped_jobs().items():
        first = file.read_text(encoding="utf-8").splitlines()[0]
        yield Entry("job", name, first.removeprefix("#").strip().rstrip("."))


_KINDS: dict[str, Callable[[], Iterator[Entry]]] = {
    "algorithms": _algorithms,
    "scenarios": partial(_installed, "scenario", "ianvs.scenarios"),
    "metrics": _metrics,
    "datasets": _datasets,
    "data_types": partial(_installed, "data type", "ianvs.data_types"),
    "evaluation_tasks": partial(_installed, "evaluation task", "ianvs.evaluation_tasks"),
    "networks": _networks,
    "paradigms": _paradigms,
    "engines": partial(_installed, "engine", "ianvs.engines"),
    "jobs": _jobs,
}
KINDS = tuple(_KINDS)
WIDTH = 100  # characters of a line


def entry_summary(value: str) -> str:
    """Return the first sentence of the docstring of an entry point ("package.module:Class") or of its module, or "".

    Finding a module of another package may run its parent packages; if they raise an error, the summary is "".
    """
    module, _, name = value.partition(":")
    try:
        spec = importlib.util.find_spec(module)
    except Exception:
        return ""
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return ""
    tree = _tree(Path(spec.origin))
    if tree is None:
        return ""
    defined = next((node for node in _definitions(tree) if node.name == name), None)
    return first_sentence((defined and ast.get_docstring(defined)) or ast.get_docstring(tree) or "")


def learners_of(file: Path) -> list[tuple[str, str]]:
    """Return (name, first sentence) of the public classes in a file that inherit from one of our learners."""
    tree = _tree(file)
    classes = [] if tree is None else [node for node in _definitions(tree) if isinstance(node, ast.ClassDef)]
    learners = [node for node in classes if any(ast.unparse(base).endswith("Learner") for base in node.bases)]
    summaries = [(node.name, first_sentence(ast.get_docstring(node) or "")) for node in learners]
    return [(name, summary) for name, summary in summaries if not name.startswith("_")]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's first paragraph, on one line, without its full stop."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    end = re.search(r"(?<![ (]al)(?<!\be\.g)(?<!\bi\.e)[.](?= [A-Z`]|$)", paragraph)
    return paragraph[: end.start()] if end else paragraph


@lru_cache(maxsize=256)
def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def _definitions(tree: ast.Module) -> list[ast.ClassDef | ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
