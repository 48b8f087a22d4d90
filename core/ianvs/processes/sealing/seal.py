"""How a copy that answers an examination is shut in, and what a learner is denied beforehand."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import synchronize
from pathlib import Path

from ianvs.processes.engines.forked import DUMPABLE, prctl, redirect
from ianvs.processes.sealing.namespaces import has_own_views, own_view
from ianvs.processes.sealing.peer import Peer
from ianvs.processes.sealing.seccomp import FILTERED, copy_filter, deny_watching, learner_filter, seal_calls

BY_CALLS = "what copies leave behind by system calls"
_ANY_CARD = Path("/dev/nvidiactl")


def prepare_seals(*, card: bool = False, audit: bool = False) -> None:
    """Do once what takes time, for all processes that are forked from this one."""
    copy_filter(card=card, audit=audit)
    learner_filter()
    has_own_views()


class Seal:
    """Of one case. how: "normal", "strict", "audit", which lets through and tells what copies would have been denied,
    or "open", which leaves out all of this. device: what the case may compute on.
    """

    def __init__(self, how: str, device: str) -> None:
        self.how = how
        self._audit = how == "audit"  # which tells what a card needs, too
        self._card = device != "cpu" and _ANY_CARD.exists() and not self._audit
        if how != "open":
            prepare_seals(card=self._card, audit=self._audit)
        self._views = how not in ("open", "audit") and has_own_views()

    def enter_own_view(self, folders: Sequence[Path]) -> None:
        """Let this process write in `folders` alone, as far as the kernel gives that."""
        if self._views:
            own_view(folders)

    def serve_as_learner(self, peer: Peer) -> None:
        """Deny this process what would tell it afterwards what its copies did, and do what the keeper orders."""
        if self.how == "open":
            _meet(peer, [])
        else:
            deny_watching()
            _meet(peer, [_own_output()])
        peer.serve()

    def serve_as_copy(self, peer: Peer, shut: Callable[..., None] = lambda **_: None) -> None:
        """Shut this process in, and answer what the keeper asks.

        shut: does the same, by `ianvs.processes.sealing.seccomp.copy_seal`, to those that this process has started.
        """
        prctl(DUMPABLE, 0)  # so that the learner can't read it from outside
        if self.how == "open":
            shut(card=False, audit=False, filtered=False)
            _meet(peer, [])
        else:
            _lock_among_threads()
            files = [_own_output()]
            listener = seal_calls(card=self._card, audit=self._audit)
            if self._audit and listener is not None:
                files.append(listener)
            shut(card=self._card, audit=self._audit, filtered=listener == FILTERED)
            _meet(peer, files, open_walls(filtered=listener == FILTERED, card=self._card))
        peer.serve()


def _meet(peer: Peer, files: Sequence[int], missing: Sequence[str] = ()) -> None:
    """Tell the keeper who this is; `files` are its from now on."""
    peer.call("sealed", {"pid": os.getpid(), "missing": missing}, files)
    for file in files:
        os.close(file)


def _own_output() -> int:
    """Standard input is empty from now on, and what is printed comes out of the descriptor that is returned.

    Before, others had them as well, with their flags and with what can be read from them.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    printed, output = os.pipe()
    redirect(output)
    return printed


def _lock_among_threads() -> None:
    """Make locks of multiprocessing those of threading: those need /dev/shm, and there are no processes to lock out.

    Thread pools, and so joblib and scikit-learn, take locks of multiprocessing.
    """
    for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"):
        setattr(synchronize, name, _without_context(getattr(threading, name)))


def _without_context(kind: Callable[..., object]) -> Callable[..., object]:
    def made(*arguments: object, ctx: object = None) -> object:
        return kind(*arguments)

    return made


def open_walls(*, filtered: bool, card: bool) -> tuple[str, ...]:
    """What a copy is not kept from, in words for the line below a leaderboard. filtered: whether its calls are."""
    if not filtered:
        return (BY_CALLS,)
    return ("what copies tell by sockets of this machine and by the card",) if card else ()
