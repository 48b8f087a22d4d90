"""Writes index files of datasets as downloaded, and generates street scenes. Knows nothing of exams.

`core.datasets.preparers.prepare` turns a download into index files; `core.datasets.streets` generates;
`core.datasets.command` is the command line of both. Nothing is imported here, so that the last stays light.
"""
