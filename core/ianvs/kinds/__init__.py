"""What differs between kinds of data once they are loaded. A kind is one file, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ianvs.kinds.class_kind import ClassKind
from ianvs.kinds.conversation_kind import ConversationKind
from ianvs.kinds.kind import Kind, perfect_answers
from ianvs.kinds.picture_kind import PictureKind
from ianvs.kinds.text_kind import TextKind

__all__ = ["KINDS", "Kind", "perfect_answers"]

_ALL: tuple[Kind, ...] = (ClassKind(), PictureKind(), TextKind(), ConversationKind())
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By the name that a Dataset has as its `kind`."""
