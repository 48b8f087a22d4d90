"""Grid -> test cases, their identities, and what is new, finished or failed, with the reason."""
