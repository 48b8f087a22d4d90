"""Particular datasets: sources that a testenv names, generators, and what makes index files of downloads.

ianvs finds the sources by the entry points `ianvs.datasets` in pyproject.toml, as it finds those of other packages.
Nothing is imported here, so that the command line stays light.
"""
