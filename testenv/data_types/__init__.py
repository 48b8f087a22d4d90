"""Data types: what the labels of an exam may be. Each is a file, and an entry point of the group `ianvs.data_types`."""
