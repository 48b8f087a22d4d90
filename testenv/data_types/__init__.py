"""Data types: the kinds of labels an exam may have.

Each is a file, and an entry point of the group `ianvs.data_types`.
"""
