"""Systems that answer from their feedback, and the memories and agents that they consist of."""
