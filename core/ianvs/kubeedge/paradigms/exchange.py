"""What a scheme of joint inference talks through: the edge's model and the cloud's, with a simulated link between them.

A scheme is a module of the type `inference_scheme`: `answer(item, exchange)` returns an item's result, in as many
rounds as it takes. Each call of the cloud is one round of the link: its arguments go up, what it returns comes down.
"""

from typing import Any

from ianvs.exam.paradigms.link import Link, size_of
from ianvs.kubeedge.plugin_case import Case


class Exchange:
    """The two models as a scheme calls them, and a record of what that took for each item."""

    def __init__(self, case: Case, edge: object, cloud: object) -> None:
        self._case, self._edge, self._cloud = case, edge, cloud
        self._rounds: list[list[tuple[int, int]]] = []  # bytes (up, down) of each call of the cloud, by item
        self._edge_calls: list[int] = []

    def begin(self) -> None:
        """What follows is of the next item."""
        self._rounds.append([])
        self._edge_calls.append(0)

    def edge(self, method: str, *arguments: object, **named: object) -> Any:
        """What a method of the edge's model returns."""
        self._edge_calls[-1] += 1
        with self._case.calling("edgemodel", method), self._case.timed("edge"):
            return getattr(self._edge, method)(*arguments, **named)

    def cloud(self, method: str, *arguments: object, **named: object) -> Any:
        """The same of the cloud's, after a trip up and before one down."""
        with self._case.calling("cloudmodel", method), self._case.timed("cloud"):
            found = getattr(self._cloud, method)(*arguments, **named)
        self._rounds[-1].append((size_of([*arguments, *named.values()]), size_of(found)))
        return found

    def measures(self) -> dict[str, list[Any]]:
        """By name a value for each item: whether the cloud was asked, how often, bytes, and the simulated time.

        Time in ms is there with a link alone: edge_ms for each call of the edge; for each round rtt, both transfers,
        cloud_ms.
        """
        exam = self._case.work.exam
        found: dict[str, list[Any]] = {
            "cloud": [bool(rounds) for rounds in self._rounds],
            "cloud_rounds": [len(rounds) for rounds in self._rounds],
            "uploaded_bytes": [sum(up for up, _ in rounds) for rounds in self._rounds],
            "downloaded_bytes": [sum(down for _, down in rounds) for rounds in self._rounds],
        }
        if exam.link is not None:
            link = Link(rtt_ms=exam.link.rtt_ms, up_mbps=exam.link.up_mbps, down_mbps=exam.link.down_mbps)
            found["took"] = [
                calls * exam.edge_ms + sum(exam.cloud_ms + link.milliseconds(up, down) for up, down in rounds)
                for calls, rounds in zip(self._edge_calls, self._rounds, strict=True)
            ]
        return found
