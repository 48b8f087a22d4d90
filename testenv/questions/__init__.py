"""What a testenv can ask beside answers. Each is a file, and an entry point of the group `ianvs.questions`."""
