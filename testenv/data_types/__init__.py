"""Particular data types: what labels and answers are, how they are checked and stored, and how they are scored."""
