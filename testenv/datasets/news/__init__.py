"""Generated conversations about facts that change from year to year."""
