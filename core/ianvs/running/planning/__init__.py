"""Plans test cases from grids: their identities, and which are new, finished or failed, with the reason."""
