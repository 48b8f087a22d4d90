"""One case in one process: what a paradigm works with, and the rounds that are stored and resumed."""
