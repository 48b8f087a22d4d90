"""A simulated link between an edge and a cloud: transfer times and sizes of messages."""

from collections.abc import Mapping

from pydantic import Field

from ianvs.exam.data.options import Options


class Link(Options):
    """A link without losses or other traffic.

    Attributes:
        rtt_ms: Round trip time of an empty message, in ms.
        up_mbps: Rate from the edge, in 10^6 bit/s.
        down_mbps: Rate to the edge, in 10^6 bit/s.
    """

    rtt_ms: float = Field(0.0, ge=0)
    up_mbps: float = Field(gt=0)
    down_mbps: float = Field(gt=0)

    def milliseconds(self, up: float = 0.0, down: float = 0.0) -> float:
        """Return the time to send `up` and receive `down` bytes: rtt + 8 up / up_mbps + 8 down / down_mbps."""
        return self.rtt_ms + 8 * up / (1000 * self.up_mbps) + 8 * down / (1000 * self.down_mbps)


def size_of(message: object) -> int:
    """Return the bytes of a message: the content of arrays and tensors, the sum of containers, 8 of other numbers."""
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
