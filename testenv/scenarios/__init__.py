"""Particular scenarios: the survey's eight, that of MDIL-SS, and what they are made of.

ianvs finds them by the entry points `ianvs.scenarios` and `ianvs.transforms` in pyproject.toml.
"""
