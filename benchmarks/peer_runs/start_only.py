"""Imports PyTorch and nothing else: what every tool's process pays before it begins."""

from work import Clock, Work, child


def run(work: Work, clock: Clock) -> tuple[float, None]:
    return 0.0, None


if __name__ == "__main__":
    child(run)
