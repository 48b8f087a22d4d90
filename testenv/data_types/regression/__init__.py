"""Numbers instead of classes: labels and answers are floats, (N,) or (N, D)."""
