"""What differs between kinds of data once they are loaded. A kind is one file, and an entry here."""

from collections.abc import Mapping
from types import MappingProxyType

from ianvs.exam.kinds.class_kind import ClassKind
from ianvs.exam.kinds.conversation_kind import ConversationKind
from ianvs.exam.kinds.kind import LONGEST_ANSWER, Kind, perfect_answers
from ianvs.exam.kinds.picture_kind import PictureKind
from ianvs.exam.kinds.text_kind import TextKind

__all__ = ["KINDS", "LONGEST_ANSWER", "Kind", "perfect_answers"]

_ALL: tuple[Kind, ...] = (ClassKind(), PictureKind(), TextKind(), ConversationKind())
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By the name that a Dataset has as its `kind`."""
