"""Systems that answer from feedback, and their memories and agents."""
