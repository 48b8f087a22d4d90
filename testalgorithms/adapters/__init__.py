"""Contracts for unmodified methods of other libraries, which are evaluated like ours."""
