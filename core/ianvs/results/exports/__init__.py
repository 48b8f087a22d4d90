"""Exports of a job's results to other tools, one file for each; found by entry points of the group `ianvs.exports`."""
