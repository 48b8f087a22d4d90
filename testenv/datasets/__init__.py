"""Specific datasets: sources named in a testenv, generators, and tools that write index files of downloaded data.

ianvs finds the sources by the entry points `ianvs.datasets` in pyproject.toml, like those of other packages. Nothing is
imported here, so the command line starts fast.
"""
