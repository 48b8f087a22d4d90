"""Numbers in place of classes: truths and answers are floats, (N,) or (N, D)."""
