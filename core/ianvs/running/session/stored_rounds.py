"""Reads and writes the rounds of a case in its folder."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.base.types import RoundResult
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.running.loop import Model, Phase, PredictionsByTest
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.model_storage import mb_text, models_text
from ianvs.running.session.measure import saved_bytes
from ianvs.running.session.plugin_folder import restore_plugin_folder, store_plugin_folder
from ianvs.running.session.reporting import RoundReporter
from ianvs.store import CaseStore, RoundFolder, StoredModule
from ianvs.store.keys import digest


class StoredRounds:
    """Implements `ianvs.running.loop.Rounds`. The caller holds the lock of the case."""

    def __init__(
        self, request: CaseRequest, store: CaseStore, reporter: RoundReporter, phase: Phase, rounds: int
    ) -> None:
        self._request, self._store, self._reporter = request, store, reporter
        self._phase, self._rounds = phase, rounds
        self._id = request.case.id
        self.new_round = partial(store.new_round, request.case.id)

    def complete(self) -> tuple[Sequence[RoundResult], str]:
        if self._phase == "train":
            rounds = self.trained()
        else:
            rounds = self._store.complete_rounds(self._id, thoroughly=True)
        damaged = self._store.broken_round(self._id)
        return rounds, "" if damaged is None else f"round {damaged} was damaged, or changed after it was stored"

    def trained(self) -> Sequence[RoundResult]:
        return self._store.trained_rounds(self._id)

    def resume_blocker(self) -> str:
        return read_memo(self._unsaved_memo) or ""

    def write(
        self,
        folder: RoundFolder,
        result: RoundResult,
        predictions: PredictionsByTest,
        model: Model,
        stream: Mapping[str, Any],
    ) -> None:
        size = 0 if model.folder is None else saved_bytes(model.folder, self._request.saved_mb)
        if any((files := self._store.files(self._id)).iterdir()):
            store_plugin_folder(files, folder.model)
        result = replace(result, model_bytes=size or None)
        if self._phase == "train":
            folder.write(result, model.modules)
            if result.index == 1:
                self._check_disk(size)
        else:
            folder.write(result, model.modules, predictions, stream)

    def add_predictions(self, result: RoundResult, predictions: PredictionsByTest) -> None:
        self._store.add_predictions(self._id, result.index, result, predictions)

    def kept_bytes(self, model: Model) -> int:
        """Return the size of the saved model and of the learner's folder."""
        folders = filter(None, (model.folder, self._store.files(self._id)))
        return sum(saved_bytes(folder, self._request.saved_mb) for folder in folders)

    def _check_disk(self, size: int) -> None:
        """Report the disk use of models that await evaluation. Raises PluginError above the limit."""
        request, cases = self._request, self._request.cases_kept
        megabytes = size * self._rounds * cases / 1e6
        free = shutil.disk_usage(request.workspace).free / 1e6
        limit = free if request.models_mb is None else request.models_mb
        text = models_text(self._rounds, cases, size, request.workspace)
        self._reporter.report_disk_use(text)
        if megabytes > limit:
            raise PluginError(
                f"{text}, and the limit is {mb_text(limit)}. Save less, raise `limits: {{models_mb: ...}}`, or write "
                "`examine: after each case`, which keeps the models of one case at a time.",
                code="insufficient-resources",
            )

    def clear_model(self, folder: RoundFolder) -> None:
        shutil.rmtree(folder.model)
        folder.model.mkdir()

    def model(self, step: int) -> Model:
        return Model(self._store.modules(self._id, step) or (), self._store.model_folder(self._id, step))

    def modules(self, step: int) -> Sequence[StoredModule]:
        return self._store.module_names(self._id, step)

    def restore_plugin_folder(self, model: Model) -> None:
        restore_plugin_folder(model.folder, self._store.files(self._id))

    def restart(self, reason: str) -> None:
        if reason:
            message = self.redacted(f"{reason}; starting over from round 1")
            print(message)
            self._reporter.warn(message)
        self._store.reset(self._id, keep_journals=True)

    def redacted(self, text: str) -> str:
        """Return the text without secrets."""
        return str(self._store.redacted(text))

    def note_unsaved(self, reason: str) -> None:
        """Store that save() and load() of this algorithm lose state, so that its cases restart instead of resuming."""
        with suppress(OSError):
            write_memo(self._unsaved_memo, self.redacted(reason))

    @property
    def _unsaved_memo(self) -> Path:
        key = digest([self._request.identity["algorithm"]])
        return self._request.workspace / "cache" / "unsaved" / f"{key}.json"
