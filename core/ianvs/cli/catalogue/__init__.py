"""What there is to choose from: `ianvs list` and `ianvs show`."""

from ianvs.cli.catalogue.nameable import KINDS, Entry, listed
from ianvs.cli.catalogue.shown_entry import shown

__all__ = ["KINDS", "Entry", "listed", "shown"]
