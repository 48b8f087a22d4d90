"""What there is to choose from: `ianvs list` and `ianvs show`."""

from ianvs.catalogue.nameable import KINDS, Entry, listed
from ianvs.catalogue.shown_entry import shown

__all__ = ["KINDS", "Entry", "listed", "shown"]
