"""The exam in a manifest file, whatever scenario produced it."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ianvs.base.errors import DataError, shown_path
from ianvs.exam.scenarios.exam import Exam
from ianvs.exam.scenarios.manifest import load_manifest, read_manifest
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, refuse


class FromManifest(Scenario):
    """The exam of a manifest. file: its path."""

    names: ClassVar[tuple[str, ...]] = ("manifest",)

    file: str = ""

    def option_errors(self) -> Iterator[tuple[str, str]]:
        if not self.file:
            yield "file", "a manifest needs `file`, its path."
        elif not Path(self.file).is_file():
            yield "file", f"{shown_path(self.file)} is not there. It is a manifest, as an exam's folder keeps one."
        if self.modifiers is not None:
            yield "modifiers", "a manifest says what rounds bring; modify the scenario that made it instead."

    def build(self, request: ScenarioRequest) -> Exam:
        try:
            exam = load_manifest(request.dataset, read_manifest(Path(self.file)), shown_path(self.file))
        except DataError as error:
            refuse(request, str(error), "file")
        if request.rounds is not None and request.rounds != len(exam.rounds):
            refuse(request, f"the manifest has {len(exam.rounds)} rounds, not {request.rounds}.", "rounds")
        return exam
