"""Detection: boxes in labels and answers, their scores, and readers of common layouts."""
