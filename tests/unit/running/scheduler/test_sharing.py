"""`cases_per_gpu: auto` against cards that are computed, and the cards that a machine's files and tools name."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from pathlib import Path

import pytest

from ianvs.running.scheduler.slots import GpuId, Sharing, Slot, Slots, gpu_memory_bytes, visible_gpus

GIB = 1 << 30


class Simulated:
    """Cards on which a round of a case that has the card for itself takes one second.

    width: as many cases as keep a card busy; what comes beyond it only divides its time. peak: bytes of each case.
    """

    def __init__(
        self, cards: Sequence[GpuId], memory: int, *, width: float, peak: int, cases: int, rounds: int
    ) -> None:
        self.sharing = Sharing(cards, dict.fromkeys(cards, memory))
        self.slots = Slots(8, tuple(cards), sharing=self.sharing)
        self.width, self.peak, self.rounds, self.memory = width, peak, rounds, memory
        self.left = {f"case {k}": float(rounds) for k in range(cases)}  # rounds that each has still to do
        self.running: dict[str, Slot] = {}
        self.now, self.most, self.failed = 0.0, 0, 0
        self.waiting = [(k, key) for k, key in enumerate(self.left)]

    def on(self, card: GpuId | None) -> list[str]:
        return [key for key, slot in self.running.items() if slot.gpu == card]

    def rate(self, key: str) -> float:
        """Rounds per second."""
        return min(1.0, self.width / len(self.on(self.running[key].gpu)))

    def go(self) -> float:
        """Seconds until all is done."""
        while self.running or self.waiting:
            while self.waiting and (slot := self.slots.take()) is not None:
                assert slot.gpu is not None
                _, key = heapq.heappop(self.waiting)
                self.running[key] = slot
                self.sharing.started(slot.gpu, key)
                self.sharing.round_began(slot.gpu, key, self.now)
                self.most = max(self.most, len(self.on(slot.gpu)))
            # The next end of a round, at the present rates.
            wait = {key: (self.left[key] % 1 or 1.0) / self.rate(key) for key in self.running}
            pause = min(wait.values())
            rates = {key: self.rate(key) for key in self.running}
            ends = [key for key in self.running if wait[key] <= pause + 1e-9]
            self.now += pause
            for key, rate in rates.items():
                self.left[key] -= pause * rate
            for key in ends:
                self.left[key] = float(round(self.left[key]))
                slot = self.running[key]
                assert slot.gpu is not None
                if len(self.on(slot.gpu)) * (self.peak + GIB // 2) > self.memory:
                    self.failed += 1
                if self.left[key] > 0:
                    self.sharing.round_began(slot.gpu, key, self.now, self.peak)
                else:
                    del self.running[key]
                    self.slots.give(slot)
                    self.sharing.ended(slot.gpu, key)
        return self.now


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_a_card_gets_as_many_cases_as_make_it_do_more(width: int) -> None:
    card = Simulated((0,), 80 * GIB, width=width, peak=GIB, cases=24, rounds=40)
    took = card.go()
    assert card.most == min(8, width + 1)  # one more, to see that it brings nothing
    assert card.sharing.most == width
    alone = 24 * 40
    assert alone / width <= took <= 1.35 * alone / width  # finding out costs something, once


def test_cases_that_do_not_fit_beside_each_other_do_not_share() -> None:
    card = Simulated((0,), 8 * GIB, width=5, peak=2 * GIB, cases=12, rounds=6)
    card.go()
    assert card.most == 2 and card.failed == 0  # 2 x (2 GiB x 1.2 + 1 GiB) in 8 GiB x 0.9, and a third does not fit


def test_several_cards_are_filled_evenly() -> None:
    machine = Simulated((0, "MIG-1"), 80 * GIB, width=2, peak=GIB, cases=16, rounds=8)
    took = machine.go()
    assert machine.sharing.most == 2
    assert took <= 1.4 * 16 * 8 / 4


def test_a_card_of_unknown_memory_takes_one_case() -> None:
    sharing = Sharing((0,), {})
    slots = Slots(4, (0,), sharing=sharing)
    assert slots.take() == Slot(0)
    sharing.started(0, "a")
    sharing.round_began(0, "a", 0.0)
    sharing.round_began(0, "a", 1.0, GIB)
    assert slots.take() is None


def test_a_second_case_waits_until_the_first_has_said_what_it_takes() -> None:
    sharing = Sharing((0,), {0: 80 * GIB})
    assert sharing.has_room(0)
    sharing.started(0, "a")
    sharing.round_began(0, "a", 0.0)
    assert not sharing.has_room(0)
    sharing.round_began(0, "a", 1.0, GIB)
    assert sharing.has_room(0)


def test_a_card_that_was_too_small_takes_fewer_from_then_on() -> None:
    sharing = Sharing((0,), {0: 80 * GIB})
    slots = Slots(4, (0,), sharing=sharing)
    first = slots.take()
    assert first == Slot(0)
    sharing.started(0, "a")
    sharing.round_began(0, "a", 0.0)
    sharing.round_began(0, "a", 1.0, GIB)
    second = slots.take()
    assert second == Slot(0)
    sharing.started(0, "b")
    slots.give(second)
    sharing.ended(0, "b")
    sharing.out_of_memory(0)
    assert sharing.most == 1
    assert slots.take() is None and slots.take(alone=True) is None
    slots.give(first)
    sharing.ended(0, "a")
    assert slots.take(alone=True) == Slot(0, alone=True)
    assert slots.take() is None


TWO_DIVIDED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaaaaaa-d33d-2b2c-524d-9e3d8d2b8a77)
"""
MEMORY = """\
0, GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 40960
1, GPU-aaaaaaaa-d33d-2b2c-524d-9e3d8d2b8a77, 40960
"""


def said(arguments: Sequence[str]) -> str:
    return TWO_DIVIDED if arguments == ["-L"] else MEMORY


@pytest.mark.parametrize(
    ("chosen", "cards"),
    [
        ("GPU-5d5ba0d6, 1", ("GPU-5d5ba0d6", 1)),
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f",)),
        ("MIG-GPU-5d5ba0d6/1/0,MIG-GPU-5d5ba0d6/2/0", ("MIG-GPU-5d5ba0d6/1/0", "MIG-GPU-5d5ba0d6/2/0")),
        ("2,-1,3", (2,)),
        ("NoDevFiles", ()),
        ("0,0", (0,)),
    ],
)
def test_cards_may_be_named_by_uuid_and_be_instances(chosen: str, cards: tuple[GpuId, ...], tmp_path: Path) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": chosen}, tmp_path) == cards
    assert Slot(cards[0]).environment["CUDA_VISIBLE_DEVICES"] == str(cards[0]) if cards else True


def test_instances_of_a_divided_card_are_cards_of_their_own(tmp_path: Path) -> None:
    driver, instances = tmp_path / "gpus", tmp_path / "capabilities"
    for folder in (driver / "0000:01", driver / "0000:02", instances / "gpu0" / "mig" / "gi1"):
        folder.mkdir(parents=True)
    cards = visible_gpus({}, driver, instances, said)
    assert cards == (
        "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f",
        "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb",
        1,
    )
    assert gpu_memory_bytes(cards, said) == {cards[0]: 5 * GIB, cards[1]: 20 * GIB, 1: 40 * GIB}
    assert visible_gpus({}, driver, tmp_path / "nowhere", said) == (0, 1)
    assert visible_gpus({}, driver, instances, lambda arguments: "") == (0, 1)  # nvidia-smi is not there


def test_memory_is_known_of_cards_that_are_named_by_the_beginning_of_their_uuid() -> None:
    assert gpu_memory_bytes(("GPU-5d5b", "GPU-"), said) == {"GPU-5d5b": 40 * GIB}  # "GPU-" may be either
    assert gpu_memory_bytes((0,), lambda arguments: "") == {}
