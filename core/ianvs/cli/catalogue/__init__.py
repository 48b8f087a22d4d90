"""The names that `ianvs list` and `ianvs show` print."""
