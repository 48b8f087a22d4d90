"""Several labels for each sample: truths (N, C) of 0 and 1, answers (N, C) scores, higher being likelier."""
