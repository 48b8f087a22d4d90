"""Builds a ranked leaderboard from the results of cases, and writes it as text, csv, markdown, images and frames."""
