"""Results of several workspaces beside each other: compared, merged into one, and as a history."""
