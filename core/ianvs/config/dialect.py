"""How the files of a job are read: in our own form, or as a contract has it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ianvs.base.errors import ValidationError
from ianvs.config.models import AlgorithmSpec, TestEnvSpec
from ianvs.config.models.form import Spec
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Document


@dataclass
class Dialect:
    """This one is our own form: files are read as they stand. A contract derives its own from it.

    lookup: of the job's file. working_directory: where the processes of plugins work; None: that is left open.
    testenv_model, algorithm_model: of what stands below these keys. base_model_first: whether it comes first among the
    modules, wherever it stands in its file.
    """

    testenv_model: ClassVar[type[Spec]] = TestEnvSpec
    algorithm_model: ClassVar[type[Spec]] = AlgorithmSpec
    base_model_first: ClassVar[bool] = True

    lookup: Lookup
    working_directory: Path | None = None

    def rewritten(self, document: Document, lookup: Lookup, metrics: Callable[[Document], Sequence[str]]) -> Document:
        """`document`, which is of the job, as the models read it.

        lookup: of this file. metrics: the names that the testenvs of a job list, whose file is given in our form.
        """
        return document

    def testenv(self, given: Spec) -> TestEnvSpec:
        """What a file gives of `testenv_model`, as all others know it."""
        assert isinstance(given, TestEnvSpec)
        return given

    def algorithm(self, given: Spec) -> AlgorithmSpec:
        """What a file gives of `algorithm_model`, as all others know it."""
        assert isinstance(given, AlgorithmSpec)
        return given

    def problems(self) -> Iterator[ValidationError]:
        """What is to be told of the files that were rewritten."""
        return iter(())

    def migrated(self, folder: Path) -> dict[Path, str]:
        """{file below `folder`: its text} of the job's files in our form; {} where they are so already."""
        return {}
