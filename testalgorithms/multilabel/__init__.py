"""Pieces of methods for samples with several labels: losses, and memories that follow the share of each label."""
