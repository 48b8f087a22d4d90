"""CLEAR-10 and CLEAR-100, as released."""
