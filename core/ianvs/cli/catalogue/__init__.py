"""Names for `ianvs list` and `ianvs show`."""
