"""Systems that answer from what they were told, and the memories and agents that they are made of."""
