"""Contracts for methods of other libraries, as they are: each is examined as ours are."""
