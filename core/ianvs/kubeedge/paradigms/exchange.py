"""What a scheme of joint inference talks through: the edge's model and the cloud's, with a simulated link between them.

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
    """The two models as a scheme calls them for one item, and a record of what that took."""

    def __init__(self, case: Case, edge: Any, cloud: Any, types: tuple[str, ...] = ("edgemodel", "cloudmodel")) -> None:
        self._case, self._types = case, types
        self.edge_model, self.cloud_model = edge, cloud
        self.edge_calls = 0
        self.rounds: list[tuple[int, int]] = []

    def edge(self, method: str, *arguments: object, **named: object) -> Any:
        """What a method of the edge's model returns."""
        self.edge_calls += 1
        return self.edge_aside(method, *arguments, **named)

    def cloud(self, method: str, *arguments: object, **named: object) -> Any:
        """The same of the cloud's, after a trip up and before one down."""
        answer = self.cloud_aside(method, *arguments, **named)
        self.sent([*arguments, *named.values()], answer)
        return answer

    def edge_aside(self, method: str, *arguments: object, **named: object) -> Any:
        """The same of the edge's, where it counts for nothing: a session begins or ends."""
        with self._case.calling(self._types[0], method), self._case.timed("edge"):
            return getattr(self.edge_model, method)(*arguments, **named)

    def cloud_aside(self, method: str, *arguments: object, **named: object) -> Any:
        """The same of the cloud's."""
        with self._case.calling(self._types[1], method), self._case.timed("cloud"):
            return getattr(self.cloud_model, method)(*arguments, **named)

    def sent(self, up: object, down: object) -> None:
        """Count a round of the link."""
        self.rounds.append((size_of(up), size_of(down)))


def costs(exam: ExamSettings, edge_calls: Sequence[int], items: Sequence[Rounds]) -> dict[str, object]:
    """By name a value for each item: whether the cloud was asked, and bytes. Of all the share that the edge gave alone.

    Where the testenv has a link, mean and 95th percentile of the simulated time in ms, too: edge_ms for each of the
    item's edge_calls; for each round rtt, both transfers, cloud_ms.
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
