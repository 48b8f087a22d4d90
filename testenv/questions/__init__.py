"""Questions that a testenv can ask besides predictions.

Each is a file, and an entry point of the group `ianvs.evaluation_tasks`.
"""
