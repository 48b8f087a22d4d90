"""Specific scenarios: the survey's eight, that of MDIL-SS, and their building blocks.

ianvs finds them by the entry points `ianvs.scenarios` and `ianvs.transforms` in pyproject.toml.
"""
