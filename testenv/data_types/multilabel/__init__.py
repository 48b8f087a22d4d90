"""Several labels for each sample: labels are (N, C) of 0 and 1, answers (N, C) scores; higher is more likely."""
