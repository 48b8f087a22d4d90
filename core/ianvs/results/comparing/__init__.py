"""Results of several workspaces beside each other: compared, and merged into one."""
