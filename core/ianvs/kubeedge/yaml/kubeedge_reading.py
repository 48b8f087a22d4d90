"""Reads the files of a job of KubeEdge Ianvs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ianvs.base.errors import Location
from ianvs.config.models import FILE_KINDS
from ianvs.config.models.base import at, entries, one_or_several
from ianvs.config.reading import Reading
from ianvs.config.strict_yaml import Document
from ianvs.kubeedge.yaml.file_models import KubeEdgeAlgorithm, KubeEdgeTestEnv
from ianvs.kubeedge.yaml.forms import algorithm_form, job_form, testenv_form
from ianvs.kubeedge.yaml.migration import migrated
from ianvs.kubeedge.yaml.path_lookup import KubeEdgeLookup
from ianvs.kubeedge.yaml.rewriting import Rewriting


@dataclass
class KubeEdgeReading(Reading):
    """Reads the files of a job of KubeEdge Ianvs. working_directory: where Ianvs would have been called."""

    lookup: KubeEdgeLookup
    models = FILE_KINDS | {"testenv": KubeEdgeTestEnv, "algorithm": KubeEdgeAlgorithm}
    _rewritings: dict[Path, Rewriting] = field(default_factory=dict)
    _renamed: set[tuple[str, str]] = field(default_factory=set)

    def rewrite(self, document: Document) -> Document:
        rewriting = self._rewritings[document.file] = Rewriting(document)
        forms: dict[str, Callable[[Rewriting, KubeEdgeLookup], None]] = {
            "benchmarkingjob": partial(job_form, metrics=lambda: self._metrics(rewriting.document())),
            "testenv": testenv_form,
            "algorithm": algorithm_form,
        }
        top = document.data if isinstance(document.data, dict) else {}
        kind = next((kind for kind in forms if kind in top), "")
        if isinstance(top.get(kind), dict):
            forms[kind](rewriting, replace(self.lookup, folder=document.file.parent))
        return rewriting.document()

    def validated(self, document: Document | None, kind: str, link: Location | None = None) -> Any:
        """Read as the base class does, with the changes; a renamed folder is reported at the first path into it."""
        made = super().validated(document, kind, link)
        rewriting = None if document is None else self._rewritings.get(document.file)
        for change in rewriting.changes if rewriting else ():
            if change.renamed is None or change.renamed not in self._renamed:
                self.rewritten.append(change.problem)
            if change.renamed:
                self._renamed.add(change.renamed)
        self.rewritten += rewriting.problems if rewriting else ()
        return made.spec() if isinstance(made, KubeEdgeTestEnv | KubeEdgeAlgorithm) else made

    def _metrics(self, job: Document) -> list[str]:
        """Return the names that the testenvs of a job list."""
        files = [self.follow(job, link) for link in one_or_several(job.data, "benchmarkingjob", "testenv")]
        metrics = [metric for file in files if file for _, metric in entries(file.data, "testenv", "metrics")]
        return [name for metric in metrics if isinstance(name := at(metric, "name"), str)]

    def migrated(self, folder: Path) -> dict[Path, str]:
        assert self.working_directory is not None
        return migrated(self._rewritings, self.working_directory, folder)
