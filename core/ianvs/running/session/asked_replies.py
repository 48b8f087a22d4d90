"""The learner's side of replies: it asks the keeper, who knows some, or a server that writes them."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from ianvs.plugins.contract import Adapter
from ianvs.processes.sealing.peer import Caller, Message
from ianvs.processes.sealing.shared_arrays import ArrayWriter, mapped, unpacked
from ianvs.running.session.learner_messages import AdapterTold, Replied, ReplyCall


class AskedReplies:
    """See ianvs.plugins.contract.Generation. asked: whether it was."""

    def __init__(self, keeper: Caller, engine: str) -> None:
        self._keeper, self.engine, self.asked = keeper, engine, False

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        adapter: Callable[[], Adapter],
        generate: Callable[[list[int]], Sequence[Sequence[int]]],
        **how: Any,
    ) -> list[list[int]]:
        writer, told, self.asked = ArrayWriter(), None, True
        if self.engine == "server":
            found = adapter()
            told = AdapterTold(**found._asdict() | {"tensors": writer.blob(found.tensors)})
        call = ReplyCall(prompts=writer.objects([list(prompt) for prompt in prompts]), adapter=told, **how)
        reply = self._call("replies", call, writer)
        known = list(unpacked(mapped(reply.files[0]), reply.body["replies"]))
        if missing := [number for number, one in enumerate(known) if one is None]:
            said, writer = [list(one) for one in generate(missing)], ArrayWriter()
            self._call("replied", Replied(replies=writer.objects(said)), writer)
            for number, one in zip(missing, said, strict=True):
                known[number] = one
        return known

    def _call(self, name: str, call: ReplyCall | Replied, writer: ArrayWriter) -> Message:
        try:
            return self._keeper.call(name, call.model_dump(), [writer.file])
        finally:
            os.close(writer.file)
