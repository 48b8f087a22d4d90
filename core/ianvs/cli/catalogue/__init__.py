"""What there is to choose from: `ianvs list` and `ianvs show`."""
