"""Open-world learning: classes of later rounds are tested from the beginning, and "unseen" is a valid answer to them.

Bendale & Boult 2015 (CVPR, open world recognition): after each round a learner is tested on samples of all classes,
knows some of them, and has to tell that it does not know the others. Here these are the classes or domains of later
rounds.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from ianvs.base.seeding import generator
from ianvs.exam.data.options import check_options
from ianvs.exam.data.split import stratified_split
from ianvs.exam.scenarios.exam import Exam, Round, Rules
from ianvs.exam.scenarios.request import ScenarioRequest
from ianvs.testenv.scenarios.class_incremental import ByClasses, labels_required
from ianvs.testenv.scenarios.domain_incremental import DomainIncremental


class OpenWorld(ByClasses):
    """Rounds of new classes, or of new domains; a test set for each, and a learner may answer -1, "unseen".

    domains: the options of domain-incremental, {} for the data's own domains; None: rounds bring classes.
    returning: share of the samples of each class that comes in later rounds, evenly, so that a round also brings what
    is known. seed: draws which.
    """

    names: ClassVar[tuple[str, ...]] = ("open-world", "OWR", "open-world-recognition")

    domains: dict[str, Any] | None = None
    returning: float = Field(0.0, ge=0, lt=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _classes_or_domains(self) -> Self:
        class_options = {
            "first",
            "sizes",
            "round_classes",
            "class_order",
            "order_seed",
            "returning",
            "seed",
        } & self.model_fields_set
        if self.domains is not None and class_options:
            raise ValueError(
                f"`{min(class_options)}` is for rounds of classes, and `domains` makes rounds of domains. Keep one."
            )
        return self

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        domains = self._domains()[0]
        return super().listed(using) if domains is None else domains.listed(using)

    def option_errors(self) -> Iterator[tuple[str, str]]:
        domains, wrong = self._domains()
        yield from (("domains", message) for message in wrong)
        if domains is not None:
            yield from (("domains", message) for _, message in domains.option_errors())

    def build(self, request: ScenarioRequest) -> Exam:
        domains = self._domains()[0]
        labels_required(request, "open-world")
        if domains is not None:
            exam = domains.build(request)
            return replace(exam, rules=self._rules("all", "rounds"))
        rounds, tests = self.class_rounds(request, "open-world")
        return Exam(request.dataset, self._with_returning(request, rounds), tests, self._rules("seen", "classes"))

    def _domains(self) -> tuple[DomainIncremental | None, list[str]]:
        """Return (the options of `domains`, errors in them)."""
        if self.domains is None:
            return None, []
        if self.domains.get("streaming"):
            return None, ["`streaming` tests later domains only, and an open world tests all. Take it out."]
        options, problems = check_options(DomainIncremental, self.domains, "domains", None, {})
        return options, [problem.message for problem in problems]

    def _rules(self, output_space: str, unseen: str) -> Rules:
        return Rules(
            "open-world", task_in_training=False, task_in_testing=False, output_space=output_space, unseen=unseen
        )

    def _with_returning(self, request: ScenarioRequest, rounds: tuple[Round, ...]) -> tuple[Round, ...]:
        if not self.returning:
            return rounds
        labels, _ = labels_required(request, "open-world")
        brought = [[round_.train] for round_ in rounds]
        for k, round_ in enumerate(rounds[:-1]):
            draws = generator(self.seed, k, "returning")
            staying, taken = stratified_split(labels[round_.train], len(round_.train), self.returning, draws)
            brought[k][0] = round_.train[staying]
            later = np.array_split(draws.permutation(round_.train[taken]), len(rounds) - 1 - k)
            for parts, part in zip(brought[k + 1 :], later, strict=True):
                parts.append(part)
        train_rows = [np.sort(np.concatenate(parts)) for parts in brought]
        return tuple(
            replace(round_, train=train, classes=tuple(np.unique(labels[train]).tolist()))
            for round_, train in zip(rounds, train_rows, strict=True)
        )
