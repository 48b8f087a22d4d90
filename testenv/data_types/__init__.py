"""Particular data types, one package or module each."""
