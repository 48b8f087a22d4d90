"""Results of a job in the forms of other tools, a file for each; found by entry points of the group `ianvs.exports`."""
