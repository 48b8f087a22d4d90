"""What runs next and where: checks before a run, the loop over cases, limits, retries, interruptions."""
