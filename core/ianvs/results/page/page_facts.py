"""What stands below the pictures: failures with their logs, where it ran, the configuration, how to cite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import yaml

from ianvs.base.secrets import hide_secrets
from ianvs.base.types import CaseResult
from ianvs.results.report.document import FailureGroup

_LINES = 25
_BYTES = 20_000  # of a log's end that are read
_MOST = 30


def failed_groups(groups: Sequence[FailureGroup], failed: Iterable[CaseResult]) -> list[tuple[FailureGroup, str]]:
    """Each reason with the last lines of the first log.

    failed: results whose hyperparameters tell what has to be hidden in their logs.
    """
    hidden = {result.case.id: result.case.hyperparameters for result in failed}
    logs = ((group, group.first) for group in groups[:_MOST])
    return [
        (group, _log_tail(first.log, hidden.get(first.id, {})) if first and first.log else "") for group, first in logs
    ]


def _log_tail(log: Path, hyperparameters: Mapping[str, object]) -> str:
    """The last lines of a log, without secrets; "" where it can't be read."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    # Before it is cut: a secret that goes over several lines is hidden whole.
    text = hide_secrets(text, hyperparameters)
    printable = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
    return "\n".join(printable.splitlines()[-_LINES:])


def configuration_text(provenance: Mapping[str, object]) -> str:
    """The resolved configuration as yaml; "" where none is stored. Secrets are hidden in what is stored."""
    found = provenance.get("configuration")
    if not found:
        return ""
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)


def citation() -> tuple[str, str]:
    """As CITATION.cff has it: (text, BibTeX entry)."""
    told = yaml.safe_load(files("ianvs.results.page").joinpath("assets/CITATION.cff").read_text(encoding="utf-8"))
    authors = [_name(author) for author in told["authors"]]
    released = str(told["date-released"])
    text = (
        f"{', '.join(authors)} ({released[:4]}). {told['title']} (version {told['version']}) [software]. {told['url']}"
    )
    fields = {
        "title": f"{{{told['title']}}}: {told['abstract'].rstrip('.')}",
        "author": " and ".join(f"{{{name}}}" for name in authors),
        "year": released[:4],
        "version": str(told["version"]),
        "url": told["url"],
    }
    lines = [f"  {name:<7} = {{{value}}}," for name, value in fields.items()]
    return (f"{text}\n\n{told['message']}", "@software{ianvs,\n" + "\n".join(lines) + "\n}")


def _name(author: Mapping[str, str]) -> str:
    return author.get("name") or " ".join(filter(None, (author.get("given-names"), author.get("family-names"))))
