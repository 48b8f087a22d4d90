"""The interface of joint-inference schemes to the edge's and the cloud's model, with a simulated link between them.

A scheme is a module of the type `inference_scheme`: `answer(item, exchange)` returns an item's result, in as many
rounds as it takes. Each call of the cloud is one round of the link: its arguments go up, what it returns comes down.
"""

import math
from collections.abc import Sequence
from typing import Any

from ianvs.exam.paradigms.link import Link, size_of
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.yaml.settings import ExamSettings

Rounds = Sequence[tuple[int, int]]  # bytes (up, down) of each call of the cloud


class Exchange:
    """Calls of the edge's and the cloud's model for one item, with their number and bytes."""

    def __init__(self, case: Case, edge: Any, cloud: Any, types: tuple[str, ...] = ("edgemodel", "cloudmodel")) -> None:
        self._case, self._types = case, types
        self.edge_model, self.cloud_model = edge, cloud
        self.edge_calls = 0
        self.rounds: list[tuple[int, int]] = []

    def edge(self, method: str, *arguments: object, **named: object) -> Any:
        """Call a method of the edge's model."""
        self.edge_calls += 1
        return self.edge_uncounted(method, *arguments, **named)

    def cloud(self, method: str, *arguments: object, **named: object) -> Any:
        """Call a method of the cloud's model, and count the bytes in both directions."""
        answer = self.cloud_uncounted(method, *arguments, **named)
        self.sent([*arguments, *named.values()], answer)
        return answer

    def edge_uncounted(self, method: str, *arguments: object, **named: object) -> Any:
        """Call a method of the edge's model without counting it, as at the beginning and end of a session."""
        with self._case.calling(self._types[0], method), self._case.timed("edge"):
            return getattr(self.edge_model, method)(*arguments, **named)

    def cloud_uncounted(self, method: str, *arguments: object, **named: object) -> Any:
        """Call a method of the cloud's model without counting it."""
        with self._case.calling(self._types[1], method), self._case.timed("cloud"):
            return getattr(self.cloud_model, method)(*arguments, **named)

    def sent(self, up: object, down: object) -> None:
        """Count a round of the link."""
        self.rounds.append((size_of(up), size_of(down)))


def costs(exam: ExamSettings, edge_calls: Sequence[int], items: Sequence[Rounds]) -> dict[str, object]:
    """Return measures by name.

    Per item: `cloud` (whether the cloud was called), `uploaded_bytes`, `downloaded_bytes`. Over all items: `edge_share`
    (share answered without the cloud) and, if the testenv has a link, mean and 95th percentile of the simulated latency
    in ms: edge_ms per edge call; round trip, both transfers and cloud_ms per call of the cloud.
    """
    cloud = [bool(rounds) for rounds in items]
    figures: dict[str, object] = {
        "cloud": cloud,
        "uploaded_bytes": [sum(up for up, _ in rounds) for rounds in items],
        "downloaded_bytes": [sum(down for _, down in rounds) for rounds in items],
        "edge_share": 1 - sum(cloud) / len(cloud) if cloud else None,
    }
    if exam.link is not None and cloud:
        link = Link(rtt_ms=exam.link.rtt_ms, up_mbps=exam.link.up_mbps, down_mbps=exam.link.down_mbps)
        took = [
            calls * exam.edge_ms + sum(exam.cloud_ms + link.milliseconds(up, down) for up, down in rounds)
            for calls, rounds in zip(edge_calls, items, strict=True)
        ]
        figures |= {
            "latency_ms": sum(took) / len(took),
            "latency_p95_ms": sorted(took)[math.ceil(0.95 * len(took)) - 1],
        }
    return figures
