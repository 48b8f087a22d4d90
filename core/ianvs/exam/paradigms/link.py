"""A simulated link between an edge and a cloud: what bytes cost in time, and how many bytes something has."""

from collections.abc import Mapping

from pydantic import Field

from ianvs.exam.data.options import Options


class Link(Options):
    """rtt_ms: a round trip of an empty message, in ms. up_mbps, down_mbps: rates from and to the edge, in 10^6 bit/s.

    Nothing is lost, and nobody else is on the link.
    """

    rtt_ms: float = Field(0.0, ge=0)
    up_mbps: float = Field(gt=0)
    down_mbps: float = Field(gt=0)

    def milliseconds(self, up: float = 0.0, down: float = 0.0) -> float:
        """What sending `up` bytes and getting `down` bytes back takes: rtt + 8 up / up_mbps + 8 down / down_mbps."""
        return self.rtt_ms + 8 * up / (1000 * self.up_mbps) + 8 * down / (1000 * self.down_mbps)


def size_of(message: object) -> int:
    """Bytes of what is sent: of arrays and tensors their content, of containers the sum, of any other number 8."""
    if isinstance(message, Mapping):
        return sum(size_of(part) for part in message.values())
    if isinstance(message, list | tuple):
        return sum(size_of(part) for part in message)
    if isinstance(message, str):
        return len(message.encode())
    if isinstance(message, bytes | bytearray | memoryview):
        return len(message)
    if message is None:
        return 0
    size = getattr(message, "nbytes", None)
    return 8 if size is None else int(size)
