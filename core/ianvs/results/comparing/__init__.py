"""Compares and merges the results of several workspaces."""
