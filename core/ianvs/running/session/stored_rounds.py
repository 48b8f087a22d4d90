"""What is stored of a case, as its loop sees it: rounds that are whole, in the folder of the case."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ianvs.base.secrets import hide_secrets
from ianvs.base.types import RoundResult
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.running.loop import Answers, Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.measure import saved_bytes
from ianvs.running.session.own_folder import bring_back_notes, keep_notes
from ianvs.running.session.reporting import RoundReporter
from ianvs.store import CaseStore, RoundFolder, StoredModule
from ianvs.store.keys import digest


class StoredRounds:
    """Of the case of `request` (ianvs.running.loop.Rounds). The caller holds the case's lock."""

    def __init__(self, request: CaseRequest, store: CaseStore, reporter: RoundReporter) -> None:
        self._request, self._store, self._reporter = request, store, reporter
        self._id = request.case.id

    def complete(self) -> Sequence[RoundResult]:
        return self._store.complete_rounds(self._id, thoroughly=True)

    def why_damaged(self) -> str:
        broken = self._store.broken_round(self._id)
        return "" if broken is None else f"round {broken} was damaged, or changed after it was stored"

    def why_not_resumed(self) -> str:
        return read_memo(self._unsaved_memo) or ""

    def new(self, step: int) -> AbstractContextManager[RoundFolder]:
        return self._store.new_round(self._id, step)

    def fill(
        self, folder: RoundFolder, result: RoundResult, answers: Answers, model: Model, stream: Mapping[str, Any]
    ) -> None:
        size = saved_bytes(folder.model, self._request.saved_mb)
        keep_notes(self._store.files(self._id), folder.model)
        folder.fill(replace(result, model_bytes=size or None), answers, model.modules, stream)

    def empty(self, folder: RoundFolder) -> None:
        shutil.rmtree(folder.model)
        folder.model.mkdir()

    def model(self, step: int) -> Model:
        return Model(self._store.modules(self._id, step) or (), self._store.model_folder(self._id, step))

    def modules(self, step: int) -> Sequence[StoredModule]:
        return self._store.module_names(self._id, step)

    def bring_back_notes(self, model: Model) -> None:
        bring_back_notes(model.folder, self._store.files(self._id))

    def start_over(self, why: str) -> None:
        if why:
            said = hide_secrets(f"{why}; starting over from round 1", known=self._request.secrets)
            print(said)
            self._reporter.warn(said)
        self._store.reset(self._id, first_answers_count=True)

    def note_unsaved(self, why: str) -> None:
        """Further cases of this algorithm don't resume: it does not bring back what it saves."""
        with suppress(OSError):
            write_memo(self._unsaved_memo, why)

    @property
    def _unsaved_memo(self) -> Path:
        key = digest([self._request.identity["algorithm"]])
        return self._request.workspace / "cache" / "unsaved" / f"{key}.json"
