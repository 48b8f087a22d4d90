"""Writes index files of datasets as downloaded, and generates street scenes. Knows nothing of exams.

`ianvs.datasets.preparers.prepare` turns a download into index files; `ianvs.datasets.streets` generates;
`ianvs.datasets.command` is the command line of both. Nothing is imported here, so that the last stays light.
"""
